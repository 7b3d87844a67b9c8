//! What can be done from here. It is asked before, and the store decides.

use rowlock::engine::Cancel;
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{JobId, Name, Rowlock};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Pause(Name),
    Resume(Name),
    Retry(JobId),
    Cancel(JobId),
}

impl Action {
    pub fn question(&self) -> String {
        match self {
            Self::Pause(queue) => format!("pause queue {queue}? what runs goes on"),
            Self::Resume(queue) => format!("resume queue {queue}?"),
            Self::Retry(id) => format!("give job {id} all its attempts again?"),
            Self::Cancel(id) => format!("cancel job {id}? one that runs is asked to stop"),
        }
    }

    /// Does it; the answer is what to tell.
    pub async fn run(self, rowlock: Rowlock) -> Result<String, rowlock::Error> {
        match self {
            Self::Pause(queue) => pause(&rowlock, queue).await,
            Self::Resume(queue) => resume(&rowlock, queue).await,
            Self::Retry(id) => {
                let answers = rowlock.engine().redrive(vec![id]).await?;
                answers.into_iter().collect::<Result<(), _>>()?;
                Ok(format!("job {id} waits for its next attempt"))
            }
            Self::Cancel(id) => {
                let answers = rowlock.engine().cancel(vec![id]).await?;
                let mut told = format!("cancelled job {id}");
                for answer in answers {
                    if answer? == Cancel::Requested {
                        told = format!("asked the worker of job {id} to stop");
                    }
                }
                Ok(told)
            }
        }
    }
}

/// The switch that is on now: what the screen shows may be some seconds old.
async fn on(rowlock: &Rowlock, queue: &Name) -> Result<Option<Mode>, rowlock::Error> {
    let switches = rowlock.schedule().switches().await?;
    let mut switches = switches.into_iter();
    let on = switches.find(|on| on.target == Target::Queue && on.name == *queue);
    Ok(on.map(|on| on.mode))
}

async fn pause(rowlock: &Rowlock, queue: Name) -> Result<String, rowlock::Error> {
    match on(rowlock, &queue).await? {
        None => {
            let pause = Setting::new(Mode::Pause);
            let schedule = rowlock.schedule();
            schedule.switch(Target::Queue, &queue, Some(pause)).await?;
            Ok(format!("paused queue {queue}"))
        }
        Some(Mode::Pause) => Ok(format!("queue {queue} was paused already")),
        // A pause would take its place.
        Some(other) => Ok(format!(
            "queue {queue} is set to {other}: nothing was changed"
        )),
    }
}

async fn resume(rowlock: &Rowlock, queue: Name) -> Result<String, rowlock::Error> {
    match on(rowlock, &queue).await? {
        Some(Mode::Pause) => {
            let schedule = rowlock.schedule();
            schedule.switch(Target::Queue, &queue, None).await?;
            Ok(format!("resumed queue {queue}"))
        }
        None => Ok(format!("queue {queue} was not paused any more")),
        Some(other) => Ok(format!(
            "queue {queue} is set to {other}: nothing was changed"
        )),
    }
}
