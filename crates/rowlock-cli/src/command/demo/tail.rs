//! The ran log while it is being written: which attempts have begun and not ended.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result};
use rowlock::JobId;
use rowlock::job::Token;
use rowlock::verify::{Event, Phase};

/// One attempt: the job and the claim's token.
pub type Attempt = (JobId, Token);

/// Follows the log.
pub struct Tail {
    file: File,
    /// The beginning of a line whose end isn't there yet.
    part: Vec<u8>,
    open: HashMap<Attempt, String>,
    /// Whether the store took the end.
    ended: HashMap<Attempt, bool>,
}

impl Tail {
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::options()
            .create(true)
            .append(true)
            .read(true)
            .open(path);
        Ok(Self {
            file: file.context("can't open the ran log")?,
            part: Vec::new(),
            open: HashMap::new(),
            ended: HashMap::new(),
        })
    }

    /// Reads what is new.
    pub fn read(&mut self) -> Result<()> {
        let mut text = std::mem::take(&mut self.part);
        self.file
            .read_to_end(&mut text)
            .context("can't read the ran log")?;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if line.last() != Some(&b'\n') {
                self.part = line.to_vec();
                break;
            }
            let event: Event<'static> =
                serde_json::from_slice(line).context("a bad line in the ran log")?;
            let attempt = (event.id, event.token);
            match event.event {
                Phase::Start => {
                    self.open.insert(attempt, event.worker.into_owned());
                }
                Phase::End => {
                    self.open.remove(&attempt);
                    self.ended.insert(attempt, event.accepted == Some(true));
                }
            }
        }
        Ok(())
    }

    /// What a process has begun and not ended, with the name under which it did.
    pub fn open_of(&self, process: u32) -> Vec<(Attempt, String)> {
        let process = process.to_string();
        // host:process:random
        let is_its = |worker: &str| worker.rsplit(':').nth(1) == Some(&process);
        let open = self.open.iter().filter(|(_, worker)| is_its(worker));
        open.map(|(attempt, worker)| (*attempt, worker.clone()))
            .collect()
    }

    /// Whether the end of an attempt was accepted; nothing while it has none.
    pub fn end_of(&self, attempt: &Attempt) -> Option<bool> {
        self.ended.get(attempt).copied()
    }
}
