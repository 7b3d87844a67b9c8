//! What the database knows, and how it answers.

/// How many attempts a job may use.
pub const MOST: u8 = 2;

/// What a settle must match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fence {
    IdAndToken,
    Id,
    IdAndState,
    IdAndWorker,
    IdAndAttempt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum State {
    Pending,
    Processing,
    Completed,
    Failed,
}

/// A process, from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkerId(pub u8);

/// What a claim gave somebody. The token is the number of the job's claim: fresh each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Claim {
    pub worker: WorkerId,
    pub job: usize,
    pub token: u8,
    pub attempt: u8,
    pub suspect: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    Done,
    Retry,
    Release,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Row {
    pub state: State,
    pub attempt: u8,
    pub suspect: bool,
    pub holder: Option<(WorkerId, u8)>,
    /// How many claims there were.
    pub claims: u8,
    /// Only for judging: how often it was really charged, and how often it ended.
    pub paid: u8,
    pub ends: u8,
}

impl Row {
    pub fn new() -> Self {
        Self {
            state: State::Pending,
            attempt: 0,
            suspect: false,
            holder: None,
            claims: 0,
            paid: 0,
            ends: 0,
        }
    }

    pub fn claim(&mut self, worker: WorkerId, job: usize) -> Claim {
        self.claims += 1;
        self.attempt += 1;
        self.state = State::Processing;
        self.holder = Some((worker, self.claims));
        Claim {
            worker,
            job,
            token: self.claims,
            attempt: self.attempt,
            suspect: self.suspect,
        }
    }

    pub fn is_held_under(&self, claim: Claim) -> bool {
        self.holder == Some((claim.worker, claim.token))
    }

    pub fn accepts(&self, claim: Claim, fence: Fence) -> bool {
        let running = self.state == State::Processing;
        match fence {
            Fence::Id => true,
            Fence::IdAndState => running,
            Fence::IdAndToken => self.holder.is_some_and(|(_, token)| token == claim.token),
            Fence::IdAndWorker => self
                .holder
                .is_some_and(|(worker, _)| worker == claim.worker),
            Fence::IdAndAttempt => running && self.attempt == claim.attempt,
        }
    }

    pub fn settle(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Done => self.end(State::Completed),
            Verdict::Retry => {
                self.suspect = false;
                self.pay();
            }
            Verdict::Release => self.give_back(),
        }
    }

    /// Its worker was given up; it pays if it is the suspect whose start that worker had recorded.
    pub fn expire(&mut self, pays: bool) {
        self.suspect = true;
        match pays {
            true => self.pay(),
            false => self.give_back(),
        }
    }

    fn pay(&mut self) {
        self.paid += 1;
        self.state = State::Pending;
        self.holder = None;
        if self.attempt >= MOST {
            self.end(State::Failed);
        }
    }

    fn give_back(&mut self) {
        self.state = State::Pending;
        self.holder = None;
        self.attempt = self.attempt.saturating_sub(1);
    }

    fn end(&mut self, state: State) {
        self.state = state;
        self.holder = None;
        self.ends += 1;
    }
}
