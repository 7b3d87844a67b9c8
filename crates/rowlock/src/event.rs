//! What a worker counts and measures, through the `metrics` facade: without a recorder it costs next
//! to nothing. [`TABLE`] is the contract; docs/metrics.md is compared with it.

mod vitals;

pub use vitals::vitals;

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use metrics::{counter, gauge, histogram};

use crate::claim::{ClaimedJob, Expired};
use crate::engine::{PairRow, RouteRow, Stats, Ticked};
use crate::guard::{Did, Judged, What};
use crate::job::{Cron, Name};
use crate::settle::{Settled, Settlement, Verdict};
use crate::stage::{Enqueued, Status};

/// What kind of number it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Times, in seconds.
    Seconds,
    /// Sizes, in pieces.
    Sizes,
}

impl Type {
    /// The word of the exposition format.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Seconds | Self::Sizes => "histogram",
        }
    }

    /// The bounds worth telling apart.
    #[must_use]
    pub fn buckets(self) -> &'static [f64] {
        match self {
            Self::Counter | Self::Gauge => &[],
            Self::Seconds => &[
                0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0,
            ],
            Self::Sizes => &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0],
        }
    }
}

/// One metric.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// What kind of number it is.
    pub of: Type,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub says: &'static str,
}

const WAIT: &str = "rowlock_wait_seconds";
const RUN: &str = "rowlock_run_seconds";
/// How long claims take.
pub const CLAIM: &str = "rowlock_claim_seconds";
const CLAIMS: &str = "rowlock_claims_total";
const CLAIMED: &str = "rowlock_claimed_jobs_total";
const ATTEMPTS: &str = "rowlock_attempts_total";
const RETRIES: &str = "rowlock_retries_total";
const ACKS: &str = "rowlock_ack_batch_jobs";
const SETTLED: &str = "rowlock_settled_total";
const REFUSED: &str = "rowlock_verdicts_refused_total";
const STUCK: &str = "rowlock_verdicts_held";
const LEASES_LOST: &str = "rowlock_leases_lost_total";
const BEATS_FAILED: &str = "rowlock_heartbeats_failed_total";
const PANICS: &str = "rowlock_task_panics_total";
const DEAD_WORKERS: &str = "rowlock_expired_workers_total";
const EXPIRED: &str = "rowlock_expired_jobs_total";
const DEPTH: &str = "rowlock_queue_jobs";
const OLDEST: &str = "rowlock_queue_oldest_seconds";
const CRON_JOBS: &str = "rowlock_cron_jobs_total";
const CRON_MISSED: &str = "rowlock_cron_missed_total";
const CRON_FAILED: &str = "rowlock_cron_failures_total";
const STORE: &str = "rowlock_store_up";
const TICKS: &str = "rowlock_pair_ticks_total";
const TICK: &str = "rowlock_pair_tick_seconds";
const DERIVED: &str = "rowlock_pair_enqueued_total";
const PAIR_AGE: &str = "rowlock_pair_tick_age_seconds";
const PAIR_FOUND: &str = "rowlock_pair_found";
const PAIR_HELD_BACK: &str = "rowlock_pair_held_back";
const PAIR_UNCOVERED: &str = "rowlock_pair_uncovered_rows";
const PAIR_PAUSED: &str = "rowlock_pair_paused";
const PAIR_LOST: &str = "rowlock_pair_lost_enqueues_total";
const PAIR_INEFFECTIVE: &str = "rowlock_pair_ineffective_total";
const SWITCH_REJECTED: &str = "rowlock_switch_rejected_total";
const DRAIN_SENT: &str = "rowlock_drain_sent_total";
const DRAIN_LOST: &str = "rowlock_drain_lost_total";
const DRAIN_VERDICTS: &str = "rowlock_drain_verdicts_total";
const DRAIN_LAG: &str = "rowlock_drain_lag_seconds";
const DRAIN_HELD: &str = "rowlock_drain_held_jobs";
const SINK_UP: &str = "rowlock_drain_sink_up";
const PINS: &str = "rowlock_guard_pins";
const PIN_AGE: &str = "rowlock_guard_oldest_seconds";
const PIN_BEHIND: &str = "rowlock_guard_oldest_transactions";
const GUARDED: &str = "rowlock_guard_actions_total";
const BUDGET_WAIT: &str = "rowlock_budget_wait_seconds";
const BUDGET_GIVEN_UP: &str = "rowlock_budget_timeouts_total";
const SWITCH_ON: &str = "rowlock_switch_on";
const HORIZON: &str = "rowlock_horizon_age_seconds";
const HORIZON_BEHIND: &str = "rowlock_horizon_age_transactions";
const DEAD: &str = "rowlock_dead_rows";
const DEAD_ALL: &str = "rowlock_database_dead_rows";
const ROTATIONS: &str = "rowlock_ring_rotations_total";
const SEGMENT: &str = "rowlock_segment_bytes";
const WAL: &str = "rowlock_wal_bytes_total";
const SQLITE_WAL: &str = "rowlock_sqlite_wal_bytes";

const fn metric(
    name: &'static str,
    of: Type,
    labels: &'static [&'static str],
    says: &'static str,
) -> Metric {
    Metric {
        name,
        of,
        labels,
        says,
    }
}

/// Every metric there is.
#[rustfmt::skip]
pub const TABLE: &[Metric] = &[
    metric(WAIT, Type::Seconds, &["kind"], "from when a job was due to when its handler began"),
    metric(RUN, Type::Seconds, &["kind"], "how long a handler ran"),
    metric(CLAIMS, Type::Counter, &[], "rounds of asking the store for jobs"),
    metric(CLAIMED, Type::Counter, &[], "jobs that those rounds brought"),
    metric(CLAIM, Type::Seconds, &[], "how long such a round took"),
    metric(ATTEMPTS, Type::Counter, &["kind", "outcome"], "attempts that ended, by the verdict handed in: done, not_needed, retry, snooze, fail, cancelled, release, sent, completed_in (in a transaction of the handler), or dropped after a lost lease"),
    metric(RETRIES, Type::Counter, &["kind"], "attempts that failed and will be repeated"),
    metric(ACKS, Type::Sizes, &[], "verdicts written together"),
    metric(SETTLED, Type::Counter, &["answer"], "verdicts by the store's answer: accepted or lease_lost (which is also the answer after a committed complete_in)"),
    metric(REFUSED, Type::Counter, &[], "verdicts that the store refused, each try counted: the job stays claimed and the verdict is tried again"),
    metric(STUCK, Type::Gauge, &[], "jobs that are held because the store refuses whatever is said of them; doctor names them (R038)"),
    metric(LEASES_LOST, Type::Counter, &[], "times this worker was given up by others and began anew"),
    metric(BEATS_FAILED, Type::Counter, &[], "heartbeats that were not answered"),
    metric(PANICS, Type::Counter, &["task"], "tasks that panicked and were started again, by name: rowlock-slot runs jobs, the others are loops of a drain; a panic of a handler is none"),
    metric(DEAD_WORKERS, Type::Counter, &[], "silent workers that this process gave up"),
    metric(EXPIRED, Type::Counter, &["became"], "jobs of silent workers: returned to pending, or ended"),
    metric(CRON_JOBS, Type::Counter, &["cron"], "jobs that this process made as the leader of crons"),
    metric(CRON_MISSED, Type::Counter, &["cron", "policy"], "ticks that came more than a minute late, by what becomes of them: skip, one (one job for all) or all (a job each); at most 1,000 are counted at once"),
    metric(CRON_FAILED, Type::Counter, &["cron"], "times a cron could not be fired because of its own declaration"),
    metric(DEPTH, Type::Gauge, &["queue", "state"], "jobs by queue and state: pending, scheduled, retrying, held (parts of pending), processing, completed, failed, cancelled"),
    metric(OLDEST, Type::Gauge, &["queue"], "how long the job that is due longest has been waiting"),
    metric(TICKS, Type::Counter, &["pair", "outcome"], "ticks that this process led, by outcome: done, or failed"),
    metric(TICK, Type::Seconds, &["pair"], "how long a tick took"),
    metric(DERIVED, Type::Counter, &["pair"], "jobs that ticks of this process made"),
    metric(PAIR_AGE, Type::Gauge, &["pair"], "how long ago the last complete tick of a pair ended, or since it was declared if there was none"),
    metric(PAIR_FOUND, Type::Gauge, &["pair"], "rows that the last tick found, with a live job or without"),
    metric(PAIR_HELD_BACK, Type::Gauge, &["pair"], "keys that ticks leave alone now, after a failure, a cancel or a run without an effect"),
    metric(PAIR_UNCOVERED, Type::Gauge, &["pair"], "rows in a state that nobody claims, when last looked"),
    metric(PAIR_PAUSED, Type::Gauge, &["pair"], "1 while a switch keeps the pair from ticking"),
    metric(PAIR_LOST, Type::Counter, &["pair"], "rows that only ticks have found: their enqueue was lost"),
    metric(PAIR_INEFFECTIVE, Type::Counter, &["pair"], "jobs that were done twice in a row while their row still asked for it"),
    metric(SWITCH_REJECTED, Type::Counter, &["target", "name"], "enqueues that a switch has refused since it was set"),
    metric(SWITCH_ON, Type::Gauge, &["target", "name", "mode"], "1 while a switch of a kind, a queue or a pair is on, by its mode: reject, hold or pause"),
    metric(DRAIN_SENT, Type::Counter, &["route"], "jobs that this process sent to a sink, those sent again included"),
    metric(DRAIN_LOST, Type::Counter, &["route"], "jobs that a sink had lost, or never got, and that went back to be sent again"),
    metric(DRAIN_VERDICTS, Type::Counter, &["route", "answer"], "verdicts that came back from a sink, by the store's answer: accepted or lease_lost"),
    metric(DRAIN_LAG, Type::Gauge, &["route"], "how long the oldest job that is due and not sent has been waiting"),
    metric(DRAIN_HELD, Type::Gauge, &["route"], "jobs that were sent and are not settled, counted up to 10,000"),
    metric(SINK_UP, Type::Gauge, &["route"], "1 while the sink answers, otherwise 0 and jobs wait in the store"),
    metric(PINS, Type::Gauge, &["what"], "what pins the horizon: session, prepared, slot, standby"),
    metric(PIN_AGE, Type::Gauge, &[], "how long ago the oldest transaction began that pins the horizon"),
    metric(PIN_BEHIND, Type::Gauge, &[], "how many transactions have begun since the oldest one that somebody may still look at"),
    metric(GUARDED, Type::Counter, &["class", "did"], "what the guard did about transactions that were too old or too many: cancelled, terminated, idle (a cancel ends no idle transaction), refused (the role lacks rights), gone (it had ended by itself); the class is none for those of no class"),
    metric(BUDGET_WAIT, Type::Seconds, &["class"], "how long a transaction waited for its place in a budget"),
    metric(BUDGET_GIVEN_UP, Type::Counter, &["class"], "transactions that got no place within their time"),
    metric(HORIZON, Type::Gauge, &[], "how long the oldest transaction has been open that keeps dead rows of this database, as far as the role may see; PostgreSQL only, as the next six"),
    metric(HORIZON_BEHIND, Type::Gauge, &[], "how many transactions have begun since the oldest one that a session, a prepared transaction, a slot or a standby may still look at"),
    metric(DEAD, Type::Gauge, &["table"], "dead rows of our own tables, as the server counts them; segments and history as one each"),
    metric(DEAD_ALL, Type::Gauge, &[], "dead rows of all tables of the database"),
    metric(ROTATIONS, Type::Counter, &[], "how often the ring has turned since the store was made"),
    metric(SEGMENT, Type::Gauge, &["segment"], "bytes of each segment of the ring, without its indexes"),
    metric(WAL, Type::Counter, &[], "bytes that the whole server has written to its log since it was made"),
    metric(SQLITE_WAL, Type::Gauge, &[], "bytes of the file's write-ahead log; SQLite only"),
    metric(STORE, Type::Gauge, &[], "1 when the store could be read for this scrape, otherwise 0 and the gauges of queues are old"),
];

/// Tells the recorder what each one is, and begins those at nought whose labels are known.
pub fn describe() {
    for each in TABLE {
        match each.of {
            Type::Counter => metrics::describe_counter!(each.name, each.says),
            Type::Gauge => metrics::describe_gauge!(each.name, each.says),
            Type::Seconds | Type::Sizes => metrics::describe_histogram!(each.name, each.says),
        }
        // Those of the server are absolute, and a file has none.
        let ours = ![ROTATIONS, WAL].contains(&each.name);
        if each.of == Type::Counter && each.labels.is_empty() && ours {
            counter!(each.name).increment(0);
        }
    }
    for answer in ["accepted", "lease_lost"] {
        counter!(SETTLED, "answer" => answer).increment(0);
    }
    counter!(PANICS, "task" => "rowlock-slot").increment(0);
    for became in ["returned", "ended"] {
        counter!(EXPIRED, "became" => became).increment(0);
    }
}

/// A task has panicked and is started again.
pub(crate) fn task_panicked(task: &'static str) {
    // The recorder is the application's, as its log is.
    crate::log::say(|| counter!(PANICS, "task" => task).increment(1));
}

/// A tick of a pair has ended.
pub(crate) fn ticked(pair: &Name, outcome: &Result<Ticked, String>, took: Duration) {
    let word = if outcome.is_ok() { "done" } else { "failed" };
    counter!(TICKS, "pair" => pair.to_string(), "outcome" => word).increment(1);
    histogram!(TICK, "pair" => pair.to_string()).record(took);
    let jobs = outcome.as_ref().map_or(0, |sum| sum.enqueued);
    counter!(DERIVED, "pair" => pair.to_string()).increment(jobs);
}

/// Jobs were sent to a sink.
pub(crate) fn drained(route: &Name, jobs: usize) {
    counter!(DRAIN_SENT, "route" => route.to_string()).increment(as_u64(jobs));
}

/// A sink had lost jobs.
pub(crate) fn lost_by_sink(route: &Name, jobs: usize) {
    counter!(DRAIN_LOST, "route" => route.to_string()).increment(as_u64(jobs));
}

/// Verdicts came back from a sink.
pub(crate) fn collected(route: &Name, accepted: usize, refused: usize) {
    let count = |answer: &'static str, n: usize| {
        counter!(DRAIN_VERDICTS, "route" => route.to_string(), "answer" => answer)
            .increment(as_u64(n));
    };
    count("accepted", accepted);
    count("lease_lost", refused);
}

/// Whether a sink answers.
pub(crate) fn sink_up(route: &Name, up: bool) {
    gauge!(SINK_UP, "route" => route.to_string()).set(f64::from(u8::from(up)));
}

/// How a route is doing.
pub(crate) fn route(row: &RouteRow) {
    let seconds = Duration::from_millis(row.lag_ms).as_secs_f64();
    gauge!(DRAIN_LAG, "route" => row.route.to_string()).set(seconds);
    let held = f64::from(u32::try_from(row.sent).unwrap_or(u32::MAX));
    gauge!(DRAIN_HELD, "route" => row.route.to_string()).set(held);
}

/// A guard has looked.
#[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
pub(crate) fn pinned(judged: &[Judged]) {
    for what in What::ALL {
        let pins = judged.iter().filter(|each| each.pin.what == what).count();
        gauge!(PINS, "what" => what.as_str()).set(pins as f64);
    }
    let ages = judged.iter().filter_map(|each| each.pin.age);
    gauge!(PIN_AGE).set(ages.max().unwrap_or_default().as_secs_f64());
    let behind = judged.iter().map(|each| each.pin.transactions);
    gauge!(PIN_BEHIND).set(behind.max().unwrap_or(0) as f64);
}

/// A guard has done something, or tried to.
pub(crate) fn guarded(judged: &Judged, did: &Did) {
    if matches!(did, Did::Nothing | Did::Observed) {
        return;
    }
    let class = judged.class.as_ref().map_or("none", Name::as_str);
    counter!(GUARDED, "class" => class.to_owned(), "did" => did.as_str()).increment(1);
}

/// A transaction has its place in a budget.
#[cfg(feature = "postgres")]
pub(crate) fn budgeted(class: &Name, waited: Duration) {
    histogram!(BUDGET_WAIT, "class" => class.to_string()).record(waited);
}

/// A transaction got no place in a budget.
#[cfg(feature = "postgres")]
pub(crate) fn budget_given_up(class: &Name) {
    counter!(BUDGET_GIVEN_UP, "class" => class.to_string()).increment(1);
}

/// A round of claims was answered.
pub(crate) fn claimed(jobs: usize, took: Duration) {
    histogram!(CLAIM).record(took);
    counter!(CLAIMS).increment(1);
    counter!(CLAIMED).increment(as_u64(jobs));
}

/// A handler begins.
pub(crate) fn began(job: &ClaimedJob, now: Timestamp) {
    // A clock that was set back makes no negative waits.
    let waited = Duration::try_from(job.scheduled_at.duration_until(now)).unwrap_or_default();
    histogram!(WAIT, "kind" => &job.kind).record(waited);
}

/// A handler has ended.
pub(crate) fn ran(job: &ClaimedJob, time: Duration) {
    histogram!(RUN, "kind" => &job.kind).record(time);
}

/// An attempt has ended, with a verdict unless the lease was lost.
///
/// `completed` says that its handler finished it in a transaction of its own.
pub(crate) fn ended(job: &ClaimedJob, settlement: Option<&Settlement>, completed: bool) {
    let outcome = match settlement.map(|settlement| &settlement.verdict) {
        _ if completed => "completed_in",
        None => "dropped",
        Some(Verdict::Done) => "done",
        Some(Verdict::NotNeeded) => "not_needed",
        Some(Verdict::Retry { .. }) => "retry",
        Some(Verdict::Snooze(_)) => "snooze",
        Some(Verdict::Fail(_)) => "fail",
        Some(Verdict::Cancelled) => "cancelled",
        Some(Verdict::Release) => "release",
        Some(Verdict::Sent) => "sent",
        Some(Verdict::Expired { .. }) => "expired",
        Some(Verdict::Note(_)) => "note",
    };
    if outcome == "retry" {
        counter!(RETRIES, "kind" => &job.kind).increment(1);
    }
    counter!(ATTEMPTS, "kind" => &job.kind, "outcome" => outcome).increment(1);
}

/// A group of verdicts was answered.
pub(crate) fn acked(answers: &[Settled]) {
    let lost = answers.iter().filter(|each| **each == Settled::LeaseLost);
    let lost = lost.count();
    histogram!(ACKS).record(f64::from(u32::try_from(answers.len()).unwrap_or(u32::MAX)));
    counter!(SETTLED, "answer" => "accepted").increment(as_u64(answers.len() - lost));
    counter!(SETTLED, "answer" => "lease_lost").increment(as_u64(lost));
}

/// The store refused a verdict.
pub(crate) fn refused() {
    counter!(REFUSED).increment(1);
}

/// So many jobs are held because nothing that is said of them can be written.
pub(crate) fn held(jobs: usize) {
    gauge!(STUCK).set(f64::from(u32::try_from(jobs).unwrap_or(u32::MAX)));
}

/// A worker of this process was given up.
pub(crate) fn lease_lost() {
    counter!(LEASES_LOST).increment(1);
}

/// A heartbeat was not answered.
pub(crate) fn heartbeat_failed() {
    counter!(BEATS_FAILED).increment(1);
}

/// Silent workers were given up.
pub(crate) fn expired(expired: &Expired) {
    counter!(DEAD_WORKERS).increment(as_u64(expired.workers.len()));
    counter!(EXPIRED, "became" => "returned").increment(as_u64(expired.returned));
    counter!(EXPIRED, "became" => "ended").increment(as_u64(expired.ended));
}

/// Ticks of a cron were fired, or left out.
pub(crate) fn cron_fired(cron: &Cron, fired: &[(Timestamp, Enqueued)], missed: usize) {
    let name = cron.name.to_string();
    let made = |job: &&(Timestamp, Enqueued)| matches!(job.1.status, Status::Queued | Status::Held);
    let jobs = fired.iter().filter(made).count();
    counter!(CRON_JOBS, "cron" => name.clone()).increment(as_u64(jobs));
    let policy = cron.missed.as_str();
    counter!(CRON_MISSED, "cron" => name, "policy" => policy).increment(as_u64(missed));
}

/// A cron could not be fired.
pub(crate) fn cron_failed(cron: &Cron) {
    counter!(CRON_FAILED, "cron" => cron.name.to_string()).increment(1);
}

/// The gauges of the queues, set for a scrape.
#[derive(Debug, Default)]
pub struct Queues {
    seen: BTreeSet<Name>,
}

impl Queues {
    /// Sets them to what the store says; `None` when it could not be read.
    #[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
    pub fn set(&mut self, stats: Option<&Stats>) {
        gauge!(STORE).set(if stats.is_some() { 1.0 } else { 0.0 });
        let Some(stats) = stats else { return };
        self.seen.extend(stats.queues.keys().cloned());
        let gone = Default::default();
        for queue in &self.seen {
            // A queue that has gone is empty, not as it was.
            let counts = stats.queues.get(queue).unwrap_or(&gone);
            for (state, jobs) in [
                ("pending", counts.pending),
                ("scheduled", counts.scheduled),
                ("retrying", counts.retrying),
                ("held", counts.held),
                ("processing", counts.processing),
                ("completed", counts.completed),
                ("failed", counts.failed),
                ("cancelled", counts.cancelled),
            ] {
                gauge!(DEPTH, "queue" => queue.to_string(), "state" => state).set(jobs as f64);
            }
            let oldest = counts.oldest_pending_seconds.unwrap_or(0.0);
            gauge!(OLDEST, "queue" => queue.to_string()).set(oldest);
        }
    }
}

/// The numbers of the pairs, set for a scrape: they are of the whole store.
#[derive(Debug, Default)]
pub struct Pairs {
    seen: BTreeSet<Name>,
    on: BTreeSet<vitals::On>,
}

impl Pairs {
    /// Sets them to what the store says.
    #[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
    pub fn set(&mut self, rows: &[PairRow]) {
        for row in rows {
            let pair = row.pair.name.to_string();
            self.seen.insert(row.pair.name.clone());
            let uncovered: u64 = row.uncovered.iter().map(|(_, rows)| rows).sum();
            for (name, value) in [
                (PAIR_AGE, row.age.as_secs_f64()),
                (PAIR_FOUND, row.found as f64),
                (PAIR_HELD_BACK, row.held_back as f64),
                (PAIR_UNCOVERED, uncovered as f64),
                (PAIR_PAUSED, f64::from(u8::from(row.switch.is_some()))),
            ] {
                gauge!(name, "pair" => pair.clone()).set(value);
            }
            counter!(PAIR_LOST, "pair" => pair.clone()).absolute(row.lost_enqueues);
            counter!(PAIR_INEFFECTIVE, "pair" => pair).absolute(row.ineffective);
        }
        let gone = |name: &&Name| rows.iter().all(|row| row.pair.name != **name);
        for pair in self.seen.iter().filter(gone) {
            // One that was removed is not overdue for ever.
            for name in [
                PAIR_AGE,
                PAIR_FOUND,
                PAIR_HELD_BACK,
                PAIR_UNCOVERED,
                PAIR_PAUSED,
            ] {
                gauge!(name, "pair" => pair.to_string()).set(0.0);
            }
        }
    }
}

fn as_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
