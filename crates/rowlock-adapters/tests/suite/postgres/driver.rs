//! What a case asks of an application, whatever driver of PostgreSQL's it uses.

use rowlock::{Context, Enqueued, Error, NewJob, async_trait};

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Commit,
    Rollback,
}

/// What happens in the transaction beside the call that is tested.
#[derive(Clone, Copy)]
pub struct Steps<'a> {
    /// Run first; an error of it is the server's affair.
    pub prelude: &'a str,
    /// Called right before and right after the call.
    pub before: &'a (dyn Fn() + Send + Sync),
    pub after: &'a (dyn Fn() + Send + Sync),
    /// What fails is rolled back.
    pub end: End,
}

impl Steps<'_> {
    pub fn to(end: End) -> Self {
        Self {
            prelude: "SELECT 1",
            before: &|| (),
            after: &|| (),
            end,
        }
    }
}

/// An application with a connection of its own for each call. In one transaction it writes a note and
/// makes the call.
#[async_trait]
pub trait Driver: Send + Sync {
    fn name(&self) -> &'static str;

    /// Stages the jobs, then notes.
    async fn stage(
        &self,
        url: &str,
        jobs: &[NewJob],
        steps: Steps<'_>,
    ) -> Result<Vec<Enqueued>, Error>;

    /// Notes, then completes.
    async fn complete(&self, url: &str, cx: &Context, steps: Steps<'_>) -> Result<(), Error>;
}
