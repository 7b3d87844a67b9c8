//! The worker of a soak: this binary again, so that its memory is its own. It tells how long its claims took.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rowlock::Clock;
use rowlock::run::task::Thread;
use rowlock::run::{Builtin, Options, Runner};

use super::jobs;
use crate::parent::until_it_is_done;
use crate::recorder::{self, Times, take};
use crate::server::Server;

/// How often a worker tells.
const TELL: Duration = Duration::from_millis(100);
/// What it says first if it can't go on.
const FAILED: &str = "failed: ";

/// Works on a server's schema until stdin is closed.
///
/// # Errors
/// When the store can't be used.
pub async fn work(url: &str, schema: &str) -> Result<()> {
    let times = recorder::install()?;
    let (stopper, _watching) = until_it_is_done()?;
    let rowlock = Server::at(url, schema)?.open().await?;
    let mut worker = rowlock::Worker::new(rowlock, ()).options(Options {
        concurrency: 32,
        ..Options::default()
    });
    for kind in jobs::kinds()? {
        let runner = match kind.name.as_str() {
            jobs::STUMBLES => Builtin::Flaky,
            _ => Builtin::Noop,
        };
        worker = worker.handle_kind(kind, Runner::Builtin(runner));
    }
    let telling = async {
        loop {
            Clock::system().sleep(TELL).await;
            let line: Vec<String> = take(&times).iter().map(|ms| format!("{ms:.3}")).collect();
            // A parent that is gone closes stdin as well.
            let _ = writeln!(std::io::stdout().lock(), "{}", line.join(" "));
        }
    };
    let worked = tokio::select! {
        worked = worker.run_until(stopper.stop()) => worked,
        never = telling => never,
    };
    if let Err(why) = worked {
        // Whoever started this one may still hold its stdin, and this waits for that.
        let _ = writeln!(std::io::stdout().lock(), "{FAILED}{why}");
    }
    Ok(())
}

/// Such a process, from outside.
pub(super) struct Worker {
    child: Child,
    stdin: Option<ChildStdin>,
    told: Arc<Told>,
    reading: Option<Thread>,
}

/// What it has said.
#[derive(Default)]
struct Told {
    up: AtomicBool,
    times: Times,
    failed: Mutex<Option<String>>,
}

impl Told {
    fn line(&self, line: &str) {
        match line.strip_prefix(FAILED) {
            Some(why) => {
                let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                *failed = Some(why.to_owned());
            }
            None => {
                let some = line.split(' ').filter_map(|ms| ms.parse::<f64>().ok());
                let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
                times.extend(some);
            }
        }
        self.up.store(true, Ordering::Release);
    }
}

impl Worker {
    pub(super) fn start(server: &Server) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["bench", "soak-worker", &server.schema])
            // Not as an argument: everybody can see those, and it may have a password.
            .env("ROWLOCK_URL", &server.url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child.stdout.take().context("it has a stdout")?;
        let told = Arc::new(Told::default());
        let listener = Arc::clone(&told);
        let reading = Thread::start("soak-worker", move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                listener.line(&line);
            }
        })?;
        Ok(Self {
            stdin: child.stdin.take(),
            child,
            told,
            reading: Some(reading),
        })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has begun to work.
    pub(super) fn is_up(&self) -> bool {
        self.told.up.load(Ordering::Acquire)
    }

    /// How long claims took since this was last asked for.
    pub(super) fn claims(&self) -> Result<Vec<f64>> {
        let failed = self.told.failed.lock();
        if let Some(why) = &*failed.unwrap_or_else(PoisonError::into_inner) {
            bail!("the worker of the soak failed: {why}");
        }
        Ok(take(&self.told.times))
    }

    pub(super) fn end(mut self) -> Result<()> {
        self.stdin = None;
        let ended = self.child.wait()?;
        ensure!(ended.success(), "the worker ended with {ended}");
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stdin = None;
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.reading = None;
    }
}
