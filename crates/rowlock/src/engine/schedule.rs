//! What is derived and what recurs: pairs, crons and switches, as people declare and see them, and as
//! a leader runs them.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::Serialize;

use super::Applied;
use crate::error::Result;
use crate::job::{Cron, Name, Token};
use crate::reconcile::Pair;
use crate::stage::Enqueued;
use crate::switch::{Setting, Switch, Target};

/// What people declare, look at and stop.
#[async_trait]
pub trait Schedule: Send + Sync + 'static {
    /// Sets a switch; without a setting clears it. `NotFound` for a pair that isn't declared, and for
    /// a switch to clear that isn't on. A kind or a queue without a row gets one.
    async fn switch(&self, target: Target, name: &Name, setting: Option<Setting>) -> Result<()>;

    /// The switches that are on, by target and name.
    async fn switches(&self) -> Result<Vec<Switch>>;

    /// Writes pairs; those that are there already only with `change`. Their posts come and go with
    /// their shards. Says for each what became of it, or with `change` off what would.
    async fn declare_pairs(&self, pairs: &[Pair], change: bool) -> Result<Vec<Applied>>;

    /// Every pair with how it is doing, by name.
    async fn pairs(&self) -> Result<Vec<PairRow>>;

    /// Removes a pair with its posts and held-back keys; its jobs stay. `NotFound` without one.
    async fn forget_pair(&self, name: &Name) -> Result<()>;

    /// The keys of a pair that are held back or were, by key, after `after`.
    async fn held_back(
        &self,
        pair: &Name,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<HeldBack>>;

    /// Forgets keys that were held back; `None`: all of the pair's. Says how many.
    async fn lift(&self, pair: &Name, keys: Option<Vec<String>>) -> Result<usize>;

    /// Writes crons; those that are there already only with `change`. A new one, and one whose pattern
    /// or zone changes, is due next at the time given beside it.
    async fn declare_crons(
        &self,
        crons: &[(Cron, Timestamp)],
        change: bool,
    ) -> Result<Vec<Applied>>;

    /// Every cron by name, and what time it is for the engine.
    async fn crons(&self) -> Result<(Timestamp, Vec<CronRow>)>;

    /// Stops a cron, or with `Some(next)` lets it go on from there. `NotFound` without one.
    async fn pause_cron(&self, name: &Name, resume_at: Option<Timestamp>) -> Result<()>;

    /// Removes a cron and its ticks; its jobs stay. `NotFound` without one.
    async fn forget_cron(&self, name: &Name) -> Result<()>;
}

/// What a leader does. Each call is one short transaction; those that carry a token are refused with
/// `LeaseLost` once another process leads.
#[async_trait]
pub trait Lead: Send + Sync + 'static {
    /// Counts on the posts that are kept, takes those that stood still or are empty, lets go of those
    /// given up, and answers with all posts. Writes nothing when there is nothing to write.
    async fn lead(&self, lead: Leading) -> Result<Posts>;

    /// One batch of a tick: every row of it without a live job and not held back gets one.
    async fn tick(&self, batch: Batch) -> Result<Ticked>;

    /// Notes how a tick went, and when the next is due.
    async fn tick_end(&self, end: TickEnd) -> Result<()>;

    /// Keys whose rows still want the work although a job was done: the first time they are noted,
    /// the second time in a row they are held back. Says how many were ineffective.
    async fn still_wanted(&self, pair: &Name, keys: Vec<String>) -> Result<u64>;

    /// Notes the states that nobody claims, with the number of rows; none: all is covered.
    async fn uncovered(&self, pair: &Name, states: Vec<(String, u64)>) -> Result<()>;

    /// Stages the jobs of a cron's ticks, each tick once whoever asks, and moves the cron on if its
    /// next tick is still the one that is expected. Answers for the ticks that were new.
    async fn fire(&self, fire: Fire) -> Result<Fired>;

    /// The user's tables beside the jobs.
    fn source(&self) -> std::sync::Arc<dyn Source>;
}

/// Where a pair's rows are.
#[async_trait]
pub trait Source: Send + Sync + 'static {
    /// The query's columns. `Invalid` with the reason when it can't be run or asked by its key: a key
    /// column is missing, or has a type that can't be compared.
    async fn columns(&self, pair: &Pair) -> Result<Vec<Column>>;

    /// The next rows by key after `cursor`. An error of the query's own is `Invalid`, in the
    /// database's words.
    async fn derive(
        &self,
        pair: &Pair,
        shard: u16,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Lines>;

    /// Which of these keys the query still returns, however their values are spelled. A key is a JSON
    /// array of the key columns' values; one that can't be asked about counts as returned.
    async fn ask(&self, pair: &Pair, keys: &[String]) -> Result<Vec<bool>>;

    /// What is wrong with how the query is run or what it leaves out.
    async fn examine(&self, pair: &Pair) -> Result<Examined>;
}

/// A pair and how it is doing.
#[derive(Debug, Clone, PartialEq)]
pub struct PairRow {
    /// As declared; its source is shown without a password.
    pub pair: Pair,
    /// When its last complete tick ended; with shards, that of the slowest.
    pub last_success: Option<Timestamp>,
    /// How long ago that is, or since it was declared if there was none, by the engine's clock.
    pub age: Duration,
    /// How long the last tick took.
    pub duration: Duration,
    /// How many rows it found.
    pub found: u64,
    /// How many of them got a job.
    pub enqueued: u64,
    /// How many rows only ticks have found, in all.
    pub lost_enqueues: u64,
    /// How many jobs were done without an effect, in all.
    pub ineffective: u64,
    /// How many keys are held back now.
    pub held_back: u64,
    /// How many ticks were complete, in all.
    pub ticks: u64,
    /// What went wrong in the last tick, if anything.
    pub error: Option<String>,
    /// Who leads it; with shards, the first of them.
    pub leader: Option<String>,
    /// States that nobody claims, with the number of rows, when last looked.
    pub uncovered: Vec<(String, u64)>,
    /// The switch that stops it.
    pub switch: Option<Switch>,
}

/// A key that ticks leave alone, or left alone once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeldBack {
    /// The key, as jobs have it.
    pub key: String,
    /// `failed`, `cancelled`, `ineffective`, or `done` after a first run without an effect.
    pub reason: String,
    /// Until when; nothing: until it is lifted.
    pub not_before: Option<Timestamp>,
    /// How often in a row.
    pub n: u32,
}

/// A cron and how it is doing.
#[derive(Debug, Clone, PartialEq)]
pub struct CronRow {
    /// As declared.
    pub cron: Cron,
    /// Whether it is stopped.
    pub paused: bool,
    /// When it is due next.
    pub next_at: Timestamp,
    /// The last tick that made a job, and the job.
    pub last: Option<(Timestamp, Option<crate::job::JobId>)>,
}

/// What a post is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Duty {
    /// A shard of a pair.
    Pair(Name, u16),
    /// All crons.
    Cron,
}

/// One look at the posts.
#[derive(Debug, Clone, Default)]
pub struct Leading {
    /// Who asks, for people to see.
    pub holder: String,
    /// Posts that are held, under these tokens.
    pub keep: Vec<(Duty, Token)>,
    /// Posts to be taken if they are still as they were seen, under new tokens.
    pub take: Vec<Take>,
    /// Posts that are given up.
    pub leave: Vec<(Duty, Token)>,
}

/// A post to be taken.
#[derive(Debug, Clone)]
pub struct Take {
    /// Which.
    pub duty: Duty,
    /// Its token and count when it was seen last.
    pub seen: (Option<Token>, i64),
    /// The new token.
    pub token: Token,
}

/// All posts.
#[derive(Debug, Clone)]
pub struct Posts {
    /// What time it is for the engine.
    pub now: Timestamp,
    /// One for each shard of a pair, and one for crons if there are any.
    pub posts: Vec<Post>,
}

/// A post.
#[derive(Debug, Clone)]
pub struct Post {
    /// What for.
    pub duty: Duty,
    /// The leader's fence; nothing when nobody leads.
    pub token: Option<Token>,
    /// Goes up while the leader lives.
    pub beat: i64,
    /// Where a tick that overran goes on.
    pub cursor: Option<String>,
    /// When its next tick is due; nothing: at once.
    pub due_at: Option<Timestamp>,
}

/// One batch of a tick.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The pair, as stored.
    pub pair: Pair,
    /// Which shard.
    pub shard: u16,
    /// The leader's fence; nothing: by hand, beside whoever leads.
    pub token: Option<Token>,
    /// Where its rows come from.
    pub from: From,
    /// Where in the window the first job is put, from 0 to 1.
    pub seed: f64,
    /// Counts only, and enqueues nothing.
    pub dry: bool,
}

/// Where the rows of a batch come from.
#[derive(Debug, Clone)]
pub enum From {
    /// The database that the jobs are in.
    Here {
        /// After this key.
        cursor: Option<String>,
        /// At the most.
        limit: usize,
    },
    /// Another one: these were read from it.
    Lines(Lines),
}

/// Rows of a query.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lines {
    /// Key and payload of each, by key. Rows that are known to have a live job may be left out.
    pub lines: Vec<Line>,
    /// How many rows there were, the ones left out included.
    pub found: u64,
    /// How many of them had no key.
    pub without_key: u64,
    /// How many had the key of another one.
    pub repeated: u64,
    /// The last key.
    pub cursor: Option<String>,
    /// Whether more come after it.
    pub more: bool,
    /// What is wrong with the first row that can't become a job.
    pub broken: Option<String>,
}

/// A row: its key as a JSON array, and itself as a JSON object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The key.
    pub key: String,
    /// The payload.
    pub payload: String,
}

/// What a batch did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ticked {
    /// Rows.
    pub found: u64,
    /// Rows that got a job.
    pub enqueued: u64,
    /// Those of them that were not known from an earlier failure: their enqueue was lost.
    pub lost: u64,
    /// Rows that had a live job.
    pub live: u64,
    /// Rows whose key is held back.
    pub held_back: u64,
    /// Rows that a switch refused.
    pub rejected: u64,
    /// Rows without a key.
    pub without_key: u64,
    /// Rows with the key of another one.
    pub repeated: u64,
    /// The last key.
    pub cursor: Option<String>,
    /// Whether more come after it.
    pub more: bool,
    /// Nothing was done, because somebody's open transaction has one of the keys: try fewer rows.
    pub blocked: bool,
    /// Keys that got a job, or would: a few of them, of a dry batch only.
    pub sample: Vec<String>,
    /// What is wrong with the first row that can't become a job.
    pub broken: Option<String>,
}

/// How a tick went.
#[derive(Debug, Clone)]
pub struct TickEnd {
    /// Which pair.
    pub pair: Name,
    /// Which shard.
    pub shard: u16,
    /// The leader's fence; nothing: by hand.
    pub token: Option<Token>,
    /// What all batches did together, or what went wrong, in words.
    pub outcome: std::result::Result<Ticked, String>,
    /// How long it took.
    pub took: Duration,
    /// Where it goes on, if it didn't get through; also after rows that make it a failure.
    pub cursor: Option<String>,
    /// When the next one is due; nothing: as soon as possible.
    pub due_at: Option<Timestamp>,
}

/// Ticks of a cron to be turned into jobs.
#[derive(Debug, Clone)]
pub struct Fire {
    /// Which.
    pub cron: Cron,
    /// The leader's fence; nothing: by hand, and the cron isn't moved on.
    pub token: Option<Token>,
    /// The next tick as it was read.
    pub expected: Timestamp,
    /// The ticks that get a job.
    pub ticks: Vec<Timestamp>,
    /// The next tick.
    pub next_at: Timestamp,
}

/// What became of a cron's ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fired {
    /// The ticks that were new, and what an enqueue of their jobs answered.
    pub ticks: Vec<(Timestamp, Enqueued)>,
    /// Nothing was done, because an open transaction has the key of its job or is changing the cron: try
    /// again soon.
    pub blocked: bool,
}

/// A column of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// The database's word for its type; may be empty.
    pub of: String,
}

/// What `reconcile check` finds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Examined {
    /// Statements that walk a whole table, or sort it.
    pub plans: Vec<PlanRemark>,
    /// Values of the state column that nobody claims, with the number of rows.
    pub unclaimed: Vec<(String, u64)>,
    /// Values that are declared pending, with the number of rows that the query misses.
    pub missed: Vec<(String, u64)>,
}

/// A statement that has no index to go by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanRemark {
    /// `derive` or `ask`.
    pub statement: String,
    /// What it does, in words.
    pub what: String,
    /// The CREATE INDEX that would help, if one can be told.
    pub remedy: Option<String>,
}
