//! The pair's own query, asked about single rows: before a run, whether it is still needed, and after
//! it, whether it had an effect.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::mpsc;

use super::{Pair, Sources};
use crate::claim::ClaimedJob;
use crate::clock::{Clock, Elapsed};
use crate::engine::{Lead, Schedule};
use crate::error::{Error, Result};
use crate::job::{JobId, Name};
use crate::log;
use crate::run::task::Tasks;
use crate::store::Rowlock;

/// Asks on behalf of a worker. Without pairs it costs nothing.
pub(crate) struct Questions {
    lead: Arc<dyn Lead>,
    schedule: Arc<dyn Schedule>,
    sources: Sources,
    pairs: RwLock<Arc<Vec<Pair>>>,
    /// Pairs that didn't answer in time, and until when they aren't asked.
    resting: Mutex<HashMap<Name, Elapsed>>,
    /// Keys that were done without an effect here: forgotten as soon as there is one.
    noted: Mutex<HashSet<(Name, String)>>,
}

/// A key of a kind.
pub(crate) type Key = (Name, String);

/// The most keys of a question.
const MOST: usize = 500;
/// The most done jobs that wait to be asked about; with a slower source some are left out, and what
/// has no effect comes by again.
const MOST_WAITING: usize = 20_000;
/// The most keys that are remembered as done without an effect.
const MOST_NOTED: usize = 10_000;
/// How long claimed jobs wait for the answers before they run unasked.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a pair that didn't answer in time isn't asked.
const REST: Duration = Duration::from_secs(30);

impl Questions {
    /// Knows no pair yet: what this process declares is not what rules.
    pub(crate) fn new(rowlock: &Rowlock, sources: Sources) -> Self {
        Self {
            lead: rowlock.lead(),
            schedule: rowlock.schedule(),
            sources,
            pairs: RwLock::default(),
            resting: Mutex::default(),
            noted: Mutex::default(),
        }
    }

    /// The pairs as they are now.
    pub(crate) fn know(&self, pairs: Vec<Pair>) {
        *self.pairs.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pairs);
    }

    fn pairs(&self) -> Arc<Vec<Pair>> {
        Arc::clone(&self.pairs.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The jobs whose rows need them no more. Whoever can't be asked about is needed: running a job
    /// once too often is allowed, and leaving one out is not.
    pub(crate) async fn not_needed(&self, jobs: &[ClaimedJob]) -> HashSet<JobId> {
        let pairs = self.pairs();
        let mut gone = HashSet::new();
        if pairs.is_empty() {
            return gone;
        }
        let began = Clock::system().elapsed();
        let kinds: HashSet<&Name> = jobs.iter().map(|job| &job.kind).collect();
        for kind in kinds {
            let of_kind: Vec<&Pair> = pairs.iter().filter(|pair| pair.kind == *kind).collect();
            if of_kind.is_empty() || of_kind.iter().any(|pair| !self.can_ask_before(pair)) {
                continue;
            }
            let keyed: Vec<(JobId, String)> = jobs
                .iter()
                .filter(|job| job.kind == *kind)
                .filter_map(|job| Some((job.id, key_of(job, &of_kind[0].key)?)))
                .collect();
            let mut unwanted: HashSet<JobId> = keyed.iter().map(|(id, _)| *id).collect();
            for pair in of_kind {
                let left = PATIENCE.saturating_sub(Clock::system().elapsed().saturating_sub(began));
                let asking = self.ask(pair, keyed.iter().map(|(_, key)| key));
                let answer = Clock::system().timeout(left, asking).await;
                let late = || Err(Error::Unavailable("no answer in time".to_owned()));
                match answer.unwrap_or_else(late) {
                    Ok(wanted) => {
                        let both = keyed.iter().zip(wanted);
                        for ((id, _), _) in both.filter(|(_, wanted)| *wanted) {
                            unwanted.remove(id);
                        }
                    }
                    Err(why) => {
                        log::warn!(pair = %pair.name, %why, "can't ask whether jobs are still needed, they run");
                        unwanted.clear();
                        let until = Clock::system().elapsed() + REST;
                        lock(&self.resting).insert(pair.name.clone(), until);
                    }
                }
            }
            gone.extend(unwanted);
        }
        gone
    }

    fn can_ask_before(&self, pair: &Pair) -> bool {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("question.before") {
            return false;
        }
        let now = Clock::system().elapsed();
        let rests = lock(&self.resting)
            .get(&pair.name)
            .is_some_and(|until| now < *until);
        pair.still_needed && !rests && self.sources.of(pair).is_some()
    }

    /// What is to be asked once this job is done.
    pub(crate) fn after(&self, job: &ClaimedJob) -> Option<Key> {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("question.after") {
            return None;
        }
        let pairs = self.pairs();
        let pair = pairs
            .iter()
            .find(|pair| pair.kind == job.kind && pair.closed_loop)?;
        Some((job.kind.clone(), key_of(job, &pair.key)?))
    }

    /// [`after`](Self::after) for a job of which no more than its key is known: one whose key is
    /// stored as a hash can't be asked about.
    pub(crate) fn after_key(&self, kind: &Name, unique_key: Option<&str>) -> Option<Key> {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("question.after") {
            return None;
        }
        let pairs = self.pairs();
        let pair = pairs
            .iter()
            .find(|pair| pair.kind == *kind && pair.closed_loop)?;
        Some((kind.clone(), spelled_key(unique_key?, &pair.key)?))
    }

    async fn ask(&self, pair: &Pair, keys: impl Iterator<Item = &String>) -> Result<Vec<bool>> {
        let Some(source) = self.sources.of(pair) else {
            return Ok(Vec::new());
        };
        let keys: Vec<String> = keys.cloned().collect();
        let mut wanted = Vec::with_capacity(keys.len());
        for some in keys.chunks(MOST) {
            wanted.extend(source.ask(pair, some).await?);
        }
        Ok(wanted)
    }

    /// Asks about rows whose jobs are done, and notes those that still want the work.
    async fn close(&self, done: Vec<Key>) {
        let mut by_kind: BTreeMap<Name, Vec<String>> = BTreeMap::new();
        for (kind, key) in done {
            by_kind.entry(kind).or_default().push(key);
        }
        for pair in self.pairs().iter().filter(|pair| pair.closed_loop) {
            let Some(keys) = by_kind.get(&pair.kind) else {
                continue;
            };
            if let Err(why) = self.close_pair(pair, keys).await {
                log::warn!(pair = %pair.name, %why, "can't ask whether jobs had an effect");
            }
        }
    }

    async fn close_pair(&self, pair: &Pair, keys: &[String]) -> Result<()> {
        let wanted = self.ask(pair, keys.iter()).await?;
        let mut still = Vec::new();
        let mut settled = Vec::new();
        for (key, wanted) in keys.iter().zip(wanted) {
            let noted = (pair.name.clone(), key.clone());
            if wanted {
                let mut all = lock(&self.noted);
                if all.len() < MOST_NOTED {
                    all.insert(noted);
                }
                still.push(key.clone());
            } else if lock(&self.noted).remove(&noted) {
                settled.push(key.clone());
            }
        }
        if !settled.is_empty() {
            // Not twice in a row.
            self.schedule.lift(&pair.name, Some(settled)).await?;
        }
        if still.is_empty() {
            return Ok(());
        }
        let ineffective = self.lead.still_wanted(&pair.name, still).await?;
        if ineffective > 0 {
            log::warn!(
                pair = %pair.name,
                jobs = ineffective,
                "done twice, and the rows still want the work: `rowlock reconcile list {}` shows them",
                pair.name
            );
        }
        Ok(())
    }
}

/// Where done jobs are handed in to be asked about.
pub(crate) struct Answers(mpsc::Sender<Key>);

impl Answers {
    /// Starts asking. It ends once this is dropped and everything handed in was asked.
    pub(crate) fn start(tasks: &mut Tasks, questions: Arc<Questions>) -> Self {
        let (inbox, mut waiting) = mpsc::channel(MOST_WAITING);
        tasks.start("rowlock-closed-loop", async move {
            let mut batch = Vec::new();
            while waiting.recv_many(&mut batch, MOST).await > 0 {
                questions.close(std::mem::take(&mut batch)).await;
            }
        });
        Self(inbox)
    }

    /// Hands one in.
    pub(crate) fn push(&self, asked: Key) {
        let _ = self.0.try_send(asked);
    }
}

/// Locks, whatever happened to the last holder: what is in there are hints.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stored key, if it is the values of these fields.
fn spelled_key(key: &str, fields: &[Name]) -> Option<String> {
    let values = serde_json::from_str::<Vec<serde_json::Value>>(key).ok()?;
    (values.len() == fields.len()).then(|| key.to_owned())
}

/// The job's key as its pair's query would spell it: a JSON array. Nothing when it can't be told.
fn key_of(job: &ClaimedJob, fields: &[Name]) -> Option<String> {
    if let Some(key) = job
        .unique_key
        .as_deref()
        .and_then(|key| spelled_key(key, fields))
    {
        return Some(key);
    }
    // A long key is stored as its hash: the payload has its parts.
    let payload: serde_json::Map<String, serde_json::Value> = job.payload.to().ok()?;
    let mut parts = Vec::with_capacity(fields.len());
    for field in fields {
        match payload.get(field.as_str())? {
            // Numbers may have lost digits on the way here.
            serde_json::Value::Number(number) if !number.is_i64() => return None,
            part => parts.push(part.to_string()),
        }
    }
    Some(format!("[{}]", parts.join(",")))
}
