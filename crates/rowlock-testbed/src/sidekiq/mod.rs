//! An unmodified Sidekiq, which notes every job that it runs.

use crate::redis::Redis;
use crate::until;
use crate::warden::{Warden, unprivileged};
use std::path::{Path, PathBuf};

/// A Sidekiq of one process. Its classes are in `worker.rb`: `Noted` notes that it ran, `Failing` does
/// the same and fails. It is gone when this value or the test process is gone.
#[derive(Debug)]
pub struct Sidekiq {
    folder: PathBuf,
    warden: Warden,
}

/// A job that Sidekiq ran.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SidekiqRun {
    /// The job's id in Sidekiq.
    pub jid: String,
    /// Its arguments, as JSON.
    pub args: String,
}

#[expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't run its Sidekiq has failed"
)]
impl Sidekiq {
    /// Starts one for these queues of a server, with its files in `folder`, and waits until it works.
    /// For root, the folder becomes its user's own.
    ///
    /// # Panics
    /// When it isn't installed or doesn't start; shows what it said.
    #[must_use]
    pub fn start(redis: &Redis, folder: &Path, queues: &[&str]) -> Self {
        let work = folder.join("worker.rb");
        std::fs::write(&work, include_str!("worker.rb")).expect("a folder to write to");
        if let Some(user) = unprivileged() {
            for path in [folder, &work] {
                std::os::unix::fs::chown(path, Some(user.uid), Some(user.gid))
                    .unwrap_or_else(|why| panic!("can't give {} away: {why}", path.display()));
            }
        }
        let [home, work] = [folder, &work].map(|path| path.to_str().expect("a path in UTF-8"));
        let url = redis.url();
        let mut words = vec![home, &url, "-r", work, "-c", "5", "-e", "test"];
        words.extend(queues.iter().flat_map(|queue| ["-q", queue]));
        let sidekiq = Self {
            folder: folder.to_owned(),
            warden: Warden::start(include_str!("warden.sh"), &words),
        };
        let started = sidekiq.warden.order("start");
        started.unwrap_or_else(|why| panic!("no Sidekiq: {why}"));
        let said = until("Sidekiq is up", || {
            let said = sidekiq.log();
            let decided = ["has started", "not found", "rror"];
            decided
                .iter()
                .any(|word| said.contains(word))
                .then_some(said)
        });
        assert!(
            said.contains("sidekiq has started"),
            "Sidekiq doesn't start (apt-get install -y ruby-sidekiq installs it):\n{said}"
        );
        sidekiq
    }

    /// What it has run so far, in that order.
    ///
    /// # Panics
    /// When a line isn't one of ours.
    #[must_use]
    pub fn ran(&self) -> Vec<SidekiqRun> {
        let lines = std::fs::read_to_string(self.folder.join("ran")).unwrap_or_default();
        // The last line may be on its way.
        let whole = lines.rfind('\n').map_or("", |end| &lines[..end]);
        let run = |line: &str| {
            let (jid, args) = line.split_once(' ').expect("a jid and arguments");
            SidekiqRun {
                jid: jid.to_owned(),
                args: args.to_owned(),
            }
        };
        whole.lines().map(run).collect()
    }

    /// All that it has said.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Stops it with SIGTERM, and waits until it has ended: what it ran is complete.
    ///
    /// # Panics
    /// When it ends badly; shows what it said.
    pub fn stop(&self) {
        let stopped = self.warden.order("stop");
        stopped.unwrap_or_else(|why| panic!("no stop: {why}\n{}", self.log()));
    }
}
