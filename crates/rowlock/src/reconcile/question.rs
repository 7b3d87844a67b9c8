//! The pair's own query, asked about single rows: before a run, whether it is still needed, and after
//! it, whether it had an effect.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};

use tokio::sync::mpsc;

use super::{Pair, Sources};
use crate::claim::ClaimedJob;
use crate::engine::Lead;
use crate::error::Result;
use crate::job::{JobId, Name};
use crate::run::task::Tasks;

/// Asks on behalf of a worker. Without pairs it costs nothing.
pub(crate) struct Questions {
    lead: Arc<dyn Lead>,
    sources: Sources,
    pairs: RwLock<Arc<Vec<Pair>>>,
}

/// A key of a kind.
pub(crate) type Key = (Name, String);

/// The most keys of a question.
const MOST: usize = 500;

impl Questions {
    pub(crate) fn new(lead: Arc<dyn Lead>, sources: Sources, pairs: Vec<Pair>) -> Self {
        Self {
            lead,
            sources,
            pairs: RwLock::new(Arc::new(pairs)),
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
                match self.ask(pair, keyed.iter().map(|(_, key)| key)).await {
                    Ok(wanted) => {
                        let both = keyed.iter().zip(wanted);
                        for ((id, _), _) in both.filter(|(_, wanted)| *wanted) {
                            unwanted.remove(id);
                        }
                    }
                    Err(why) => {
                        tracing::warn!(pair = %pair.name, %why, "can't ask whether jobs are still needed, they run");
                        unwanted.clear();
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
        pair.still_needed && self.sources.of(pair).is_some()
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
                tracing::warn!(pair = %pair.name, %why, "can't ask whether jobs had an effect");
            }
        }
    }

    async fn close_pair(&self, pair: &Pair, keys: &[String]) -> Result<()> {
        let wanted = self.ask(pair, keys.iter()).await?;
        let both = keys.iter().zip(wanted);
        let still: Vec<String> = both
            .filter_map(|(key, wanted)| wanted.then(|| key.clone()))
            .collect();
        if still.is_empty() {
            return Ok(());
        }
        let ineffective = self.lead.still_wanted(&pair.name, still).await?;
        if ineffective > 0 {
            tracing::warn!(
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
pub(crate) struct Answers(mpsc::UnboundedSender<Key>);

impl Answers {
    /// Starts asking. It ends once this is dropped and everything handed in was asked.
    pub(crate) fn start(tasks: &mut Tasks, questions: Arc<Questions>) -> Self {
        let (inbox, mut waiting) = mpsc::unbounded_channel();
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
        // The receiver ends only after this sender.
        let _ = self.0.send(asked);
    }
}

/// The job's key as its pair's query would spell it: a JSON array. Nothing when it can't be told.
fn key_of(job: &ClaimedJob, fields: &[Name]) -> Option<String> {
    if let Some(key) = &job.unique_key
        && let Ok(values) = serde_json::from_str::<Vec<serde_json::Value>>(key)
        && values.len() == fields.len()
    {
        return Some(key.clone());
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
