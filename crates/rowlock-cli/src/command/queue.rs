//! `rowlock queue`: look at queues, pause and resume them.

use anyhow::Result;
use rowlock::Name;
use rowlock::switch::{Mode, Setting, Target};
use serde_json::json;

use super::stats::oldest;
use crate::cli::Queue;
use crate::open::{Access, Setup};
use crate::show::{self, Table};
use crate::{exit, out};

pub async fn run(setup: &Setup, what: Queue, json: bool) -> Result<u8> {
    match what {
        Queue::List => list(setup, json).await,
        Queue::Pause { name, reason } => {
            let rowlock = setup.open(Access::Write).await?;
            let pause = Setting {
                reason,
                ..Setting::new(Mode::Pause)
            };
            let schedule = rowlock.schedule();
            schedule.switch(Target::Queue, &name, Some(pause)).await?;
            told(&name, true, json)
        }
        Queue::Resume { name } => {
            let rowlock = setup.open(Access::Write).await?;
            let schedule = rowlock.schedule();
            let on = schedule.switches().await?;
            // Another switch of the queue is cleared by its own verb.
            let paused = on
                .iter()
                .any(|on| (on.target, &on.name, on.mode) == (Target::Queue, &name, Mode::Pause));
            if !paused {
                return Err(exit::with(
                    exit::NOT_FOUND,
                    format!("queue {name} is not paused: `rowlock queue list` shows which are"),
                ));
            }
            schedule.switch(Target::Queue, &name, None).await?;
            told(&name, false, json)
        }
    }
}

fn told(queue: &Name, paused: bool, json: bool) -> Result<u8> {
    match (json, paused) {
        (true, _) => out::json(&json!({ "queue": queue, "paused": paused }))?,
        (false, true) => out::line(&format!("paused {queue}"))?,
        (false, false) => out::line(&format!("resumed {queue}"))?,
    }
    Ok(exit::OK)
}

async fn list(setup: &Setup, json: bool) -> Result<u8> {
    let rowlock = setup.open(Access::Read).await?;
    let queues = rowlock.operate().queues().await?;
    if json {
        for queue in &queues {
            out::json(queue)?;
        }
        return Ok(exit::OK);
    }
    let heading = ["QUEUE", "PENDING", "PROCESSING", "OLDEST", "STATE"];
    let mut table = Table::new(&heading, &[1, 2, 3]);
    for row in &queues {
        let state = match (&row.reason, row.paused) {
            (_, false) => "open".to_owned(),
            (None, true) => "paused".to_owned(),
            (Some(why), true) => format!("paused: {}", show::text(why)),
        };
        table.row(vec![
            row.queue.to_string(),
            show::count(row.counts.pending),
            show::count(row.counts.processing),
            oldest(&row.counts),
            state,
        ]);
    }
    out::lines(&table.lines())?;
    Ok(exit::OK)
}
