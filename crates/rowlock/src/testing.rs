//! For your own tests: a store that is gone at the end, a clock that you move, and short questions.
//!
//! ```
//! use std::time::Duration;
//!
//! use rowlock::testing::TestStore;
//! use rowlock::{Cx, Done, Job, NewJob, Worker};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Debug, PartialEq, Serialize, Deserialize)]
//! struct Remind {
//!     whom: String,
//! }
//!
//! impl Job for Remind {
//!     const KIND: &'static str = "remind";
//! }
//!
//! async fn remind(_job: Remind, _cx: Cx<()>) -> rowlock::Result {
//!     Ok(Done)
//! }
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> rowlock::Result<()> {
//!     let store = TestStore::new()?;
//!     let ada = Remind { whom: "ada".to_owned() };
//!     let tomorrow = Duration::from_secs(24 * 3600);
//!     let job = NewJob::of(&ada)?.delay(tomorrow);
//!     store.rowlock().enqueue(&job).await?;
//!     store.assert_enqueued(&ada).await?;
//!
//!     // Nothing is due today, and one job tomorrow.
//!     let worker = || Worker::new(store.rowlock().clone(), ()).handle(remind);
//!     assert_eq!(store.run_due(worker()).await?.settled, 0);
//!     store.advance(tomorrow)?;
//!     assert_eq!(store.run_due(worker()).await?.settled, 1);
//!     store.assert_none_enqueued::<Remind>().await?;
//!     Ok(())
//! }
//! ```

use std::fmt::Debug;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::clock::Clock;
use crate::engine::Filter;
use crate::engine::sqlite::{Address, Sqlite, Synchronous, migrate_up};
use crate::error::{Error, Result};
use crate::job::{Job, JobState, Name, Token};
use crate::run::{Tally, Worker};
use crate::store::Rowlock;

/// A store in a temporary folder, with a clock that stands still until it is moved.
#[derive(Debug)]
pub struct TestStore {
    // Closed before the folder goes: fields are dropped in this order.
    rowlock: Rowlock,
    clock: Clock,
    folder: Folder,
}

/// How many jobs a question looks through.
const LOOK: usize = 100_000;

impl TestStore {
    /// A new store; its clock starts at the present.
    ///
    /// # Errors
    /// [`Error::Unreachable`] when the system's temporary folder can't be written.
    pub fn new() -> Result<Self> {
        let folder = Folder::new()?;
        let clock = Clock::manual(Clock::system().now());
        let address = Address {
            path: folder.0.join("test.db"),
            // Nobody misses a test's jobs after a power cut.
            synchronous: Synchronous::Normal,
        };
        migrate_up(&address, &clock)?;
        let engine = Sqlite::open(address, clock.clone())?;
        Ok(Self {
            rowlock: Rowlock::with(engine, clock.clone()),
            clock,
            folder,
        })
    }

    /// The handle to give to the code under test.
    #[must_use]
    pub fn rowlock(&self) -> &Rowlock {
        &self.rowlock
    }

    /// The file, for code that stages in a transaction of its own.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.0.join("test.db")
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// None in practice: the clock is a manual one.
    pub fn advance(&self, by: Duration) -> Result<()> {
        self.clock.advance(by)
    }

    /// Runs everything that is due now, and what that makes due, then ends.
    ///
    /// What was staged in a transaction of the code's own has the system's time. So the clock first
    /// catches up with that, if it is behind.
    ///
    /// # Errors
    /// As [`Worker::run_until`].
    pub async fn run_due<S: Send + Sync + 'static>(&self, worker: Worker<S>) -> Result<Tally> {
        let behind = self.clock.now().duration_until(Clock::system().now());
        if let Ok(behind) = Duration::try_from(behind) {
            self.clock.advance(behind)?;
        }
        worker.run_once().await
    }

    /// The jobs of a type that wait to be run, whenever they are due.
    ///
    /// # Errors
    /// [`Error::Invalid`] when a payload doesn't fit the type.
    pub async fn enqueued<J: Job>(&self) -> Result<Vec<J>> {
        let filter = Filter {
            state: Some(JobState::Pending),
            kind: Some(Name::new(J::KIND)?),
            limit: LOOK,
            ..Filter::default()
        };
        let jobs = self.rowlock.operate().jobs(filter).await?;
        jobs.iter().map(|job| job.payload.to()).collect()
    }

    /// Fails the test unless such a job waits to be run.
    ///
    /// # Errors
    /// As [`TestStore::enqueued`].
    ///
    /// # Panics
    /// When there is none; the message shows what there is.
    pub async fn assert_enqueued<J: Job + Debug + PartialEq>(&self, job: &J) -> Result<()> {
        let found = self.enqueued::<J>().await?;
        assert!(
            found.contains(job),
            "{job:?} is not enqueued; these are: {found:?}"
        );
        Ok(())
    }

    /// Fails the test if a job of this type waits to be run.
    ///
    /// # Errors
    /// As [`TestStore::enqueued`].
    ///
    /// # Panics
    /// When there is one; the message shows all of them.
    pub async fn assert_none_enqueued<J: Job + Debug>(&self) -> Result<()> {
        let found = self.enqueued::<J>().await?;
        assert!(found.is_empty(), "these are enqueued: {found:?}");
        Ok(())
    }
}

#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        let random = Token::random()?.get();
        let path = std::env::temp_dir().join(format!("rowlock-test-{random:016x}"));
        std::fs::DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|why| Error::Unreachable(format!("can't make {}: {why}", path.display())))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Whatever is left is in the system's temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Kind, NewJob};
    use crate::settle::Outcome;

    #[tokio::test]
    async fn what_the_code_staged_in_its_own_transaction_is_due() {
        let store = TestStore::new().unwrap();
        let mut connection = rusqlite::Connection::open(store.path()).unwrap();
        let tx = connection.transaction().unwrap();
        crate::enqueue_blocking(&tx, &NewJob::new("mail").unwrap()).unwrap();
        tx.commit().unwrap();
        let worker = Worker::new(store.rowlock().clone(), ())
            .handle_kind(Kind::new("mail").unwrap(), |_: crate::Context| async {
                Outcome::Done
            });
        assert_eq!(store.run_due(worker).await.unwrap().settled, 1);
        let folder = store.folder.0.clone();
        drop(store);
        drop(connection);
        assert!(!folder.exists(), "it leaves nothing");
    }
}
