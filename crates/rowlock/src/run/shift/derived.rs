//! What a shift does for pairs: it leads ticks, and asks the rows before a run and after it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::claim::WorkerId;
use crate::clock::Clock;
use crate::error::Result;
use crate::job::{JobId, Token};
use crate::reconcile::{Answers, Key, Pair, Questions, Scheduler, Sources};
use crate::run::attempt::Ended;
use crate::run::task::Tasks;
use crate::settle::Verdict;
use crate::store::Rowlock;

pub(super) struct Derived {
    /// Taken while it runs beside the shift.
    pub(super) scheduler: Option<Scheduler>,
    /// None without a store to ask.
    pub(super) questions: Option<Arc<Questions>>,
    /// Done jobs whose rows are asked about once the verdict is accepted.
    doubted: HashMap<(JobId, Token), Key>,
    answers: Option<Answers>,
    asking: Tasks,
}

impl Derived {
    /// Of a worker that has no store: whoever fills its dispatcher asks and leads.
    pub(super) fn none() -> Self {
        Self {
            scheduler: None,
            questions: None,
            doubted: HashMap::new(),
            answers: None,
            asking: Tasks::default(),
        }
    }

    pub(super) fn new(
        rowlock: &Rowlock,
        pairs: &[Pair],
        worker: &WorkerId,
        lease: Duration,
    ) -> Result<Self> {
        let sources = Sources::new(&*rowlock.lead(), pairs)?;
        let questions = Arc::new(Questions::new(rowlock, sources.clone()));
        let holder = worker.to_string();
        let asked = Arc::clone(&questions);
        let mut asking = Tasks::default();
        Ok(Self {
            scheduler: Some(Scheduler::new(rowlock, sources, asked, holder, lease)),
            doubted: HashMap::new(),
            answers: Some(Answers::start(&mut asking, Arc::clone(&questions))),
            questions: Some(questions),
            asking,
        })
    }

    /// A job has ended: if it says that the work is done, its row will be asked.
    pub(super) fn ended(&mut self, ended: &Ended) {
        let Some(settlement) = &ended.settlement else {
            return;
        };
        let done = settlement.verdict == Verdict::Done || ended.by_itself;
        if done
            && let Some(questions) = &self.questions
            && let Some(key) = questions.after(&ended.job)
        {
            self.doubted.insert((settlement.id, settlement.token), key);
        }
    }

    /// A verdict was answered.
    pub(super) fn settled(&mut self, id: JobId, token: Token, accepted: bool) {
        if let Some(key) = self.doubted.remove(&(id, token))
            && accepted
            && let Some(answers) = &self.answers
        {
            answers.push(key);
        }
    }

    /// Waits until every done job was asked about. Whether it came to that within `limit`.
    pub(super) async fn finish(&mut self, clock: &Clock, limit: Duration) -> bool {
        self.answers = None;
        clock.timeout(limit, self.asking.join()).await.is_some()
    }
}
