//! A place in a budget: a workload class runs at most so many transactions at once, in all processes.

mod through;

pub use through::{Enter, Entered, On, Transact};

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::clock::{Clock, Elapsed};
use crate::engine::postgres::Schema;
use crate::error::{Error, Result};
use crate::event;
use crate::job::{Name, jitter};

/// The first pause between two tries, and the longest.
const SHORTEST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(1);

/// Lets transactions of a workload class run, as many at once as the table `budget` says: in order of
/// arrival within a process, in whichever order between processes.
///
/// ```no_run
/// # async fn report(client: &mut tokio_postgres::Client) -> Result<i64, Box<dyn std::error::Error>> {
/// let budget = rowlock::Budget::default(); // one for the whole process; clones share its line
/// budget
///     .run("analytics", client, async |tx| {
///         let row = tx.query_one("SELECT count(*) FROM orders", &[]).await?;
///         Ok(row.get(0))
///     })
///     .await
/// # }
/// ```
///
/// Whoever waits has no transaction open: a wait pins nothing. A process that dies frees its places with
/// its connections.
#[derive(Debug, Clone)]
pub struct Budget {
    schema: Schema,
    clock: Clock,
    patience: Duration,
    lines: Arc<Mutex<HashMap<Name, Arc<Line>>>>,
}

/// Those of this process who wait for a place.
#[derive(Debug, Default)]
struct Line {
    /// Whose turn it is to try: handed on in order of arrival.
    turn: tokio::sync::Mutex<()>,
    /// Somebody of this process has left.
    left: Notify,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            schema: Schema::default(),
            clock: Clock::system(),
            patience: Duration::from_secs(30),
            lines: Arc::default(),
        }
    }
}

impl Budget {
    /// The budgets of another schema than `rowlock`.
    #[must_use]
    pub fn schema(mut self, schema: Schema) -> Self {
        self.schema = schema;
        self
    }

    /// Waits so long for a place instead of 30 s.
    #[must_use]
    pub fn wait(mut self, time: Duration) -> Self {
        self.patience = time;
        self
    }

    /// Takes the time of waits from another clock, as a test does.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Runs `work` in a transaction that has a place of this class, and commits it; an error of `work`
    /// rolls it back.
    ///
    /// `on` is a `&mut tokio_postgres::Client`, or with the feature `sqlx-postgres` a `&PgPool` or a
    /// `&mut PgConnection`.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when no place became free in time, [`Error::NotFound`] for a class that
    /// nobody has declared, what the server answers, and whatever `work` returns.
    pub async fn run<O, T, E, F>(&self, class: &str, on: O, work: F) -> Result<T, E>
    where
        O: On,
        E: From<Error>,
        F: for<'a> AsyncFnOnce(&mut <O::Session as Transact>::Tx<'a>) -> Result<T, E>,
    {
        let class = Name::new(class)?;
        let line = self.line(&class);
        let mut session = on.hold();
        let began = self.clock.elapsed();
        let mut turn = None;
        let mut pause = SHORTEST;
        loop {
            if turn.is_none() {
                let left = self.left(began);
                turn = self.clock.timeout(left, line.turn.lock()).await;
                if turn.is_none() {
                    return Err(self.given_up(&class, None).into());
                }
            }
            let mut tx = session.begin().await?;
            let entered = tx.enter(&class, &self.schema).await?;
            if entered.slot.is_some() {
                drop(turn.take());
                event::budgeted(&class, self.clock.elapsed().saturating_sub(began));
                let done = work(&mut tx).await;
                let ended = tx.end(done.is_ok()).await;
                line.left.notify_one();
                let done = done?;
                ended?;
                return Ok(done);
            }
            #[cfg(feature = "test-hooks")]
            if crate::hooks::switched_off("budget.wait_outside") {
                self.clock.sleep(self.left(began)).await;
            }
            // Before the wait: a transaction that waits would pin the horizon.
            tx.end(false).await?;
            if entered.max.is_none() {
                return Err(unknown(&class).into());
            }
            let left = self.left(began);
            if left.is_zero() {
                return Err(self.given_up(&class, entered.max).into());
            }
            tokio::select! {
                () = line.left.notified() => pause = SHORTEST,
                () = self.clock.sleep(jittered(pause).min(left)) => pause = (pause * 2).min(LONGEST),
            }
        }
    }

    fn line(&self, class: &Name) -> Arc<Line> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(lines.entry(class.clone()).or_default())
    }

    fn left(&self, began: Elapsed) -> Duration {
        let waited = self.clock.elapsed().saturating_sub(began);
        self.patience.saturating_sub(waited)
    }

    fn given_up(&self, class: &Name, max: Option<u32>) -> Error {
        event::budget_given_up(class);
        let places = match max {
            Some(1) => "its one place is taken".to_owned(),
            Some(max) => format!("all of its {max} places are taken"),
            None => "others of this process wait before it".to_owned(),
        };
        Error::Unavailable(format!(
            "budget {class}: {places}, and none became free within {:?}: try again later, wait longer \
             with Budget::wait, see who runs with `rowlock guard --once --class {class}`, or let more \
             run with `rowlock budget set {class} --max N`",
            self.patience
        ))
    }
}

fn unknown(class: &Name) -> Error {
    Error::NotFound(format!(
        "a budget of class {class} (`rowlock budget set {class} --max N` makes it)"
    ))
}

/// Between half of a time and all of it, so that processes don't try in step.
fn jittered(time: Duration) -> Duration {
    time / 2 + jitter(time / 2)
}
