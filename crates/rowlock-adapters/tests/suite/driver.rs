//! What a case asks of an application, whatever driver it uses.

use std::path::Path;

use rowlock::{Context, Enqueued, Error, NewJob, async_trait};

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Commit,
    Rollback,
    /// Says so, and waits to be killed, with the transaction open.
    HangBefore,
    /// The same after the commit.
    HangAfter,
}

impl End {
    pub fn say(self) {
        println!("waiting to be killed: {self:?}");
    }
}

/// An application with a connection of its own for each call.
#[async_trait]
pub trait Driver: Send + Sync {
    fn name(&self) -> &'static str;

    /// Runs `prelude`, then in one transaction: a note, and the jobs.
    async fn stage(
        &self,
        path: &Path,
        prelude: &str,
        jobs: &[NewJob],
        end: End,
    ) -> Result<Vec<Enqueued>, Error>;

    /// Runs `prelude`, then in one transaction: a note, and the job's end. Without the end the note
    /// is rolled back.
    async fn complete(
        &self,
        path: &Path,
        prelude: &str,
        cx: &Context,
        end: End,
    ) -> Result<(), Error>;
}

/// The effect of every case.
pub const NOTE: &str = "INSERT INTO notes VALUES ('noted')";

/// Blocks until the process is killed.
pub fn hang() -> ! {
    loop {
        std::thread::park();
    }
}
