//! `rowlock job list`: jobs by rising number.

use anyhow::Result;
use rowlock::Record;

use super::job::filter;
use super::job_show::{not_found, times};
use crate::cli::Which;
use crate::open::{Access, Setup};
use crate::show::Table;
use crate::{exit, out};

const PAGE: u32 = 50;
/// How many are read at once, however many are wanted.
const CHUNK: usize = 1_000;

pub async fn run(setup: &Setup, which: &Which, json: bool) -> Result<u8> {
    let rowlock = setup.open(Access::Read).await?;
    let now = rowlock.clock().now();
    if !which.ids.is_empty() {
        let mut found = Vec::new();
        let mut code = exit::OK;
        for id in &which.ids {
            match rowlock.operate().job(*id).await? {
                Some(job) => found.push(job),
                None => {
                    out::error(&not_found(*id).to_string());
                    code = exit::NOT_FOUND;
                }
            }
        }
        found.sort_by_key(|job| job.id);
        found.dedup_by_key(|job| job.id);
        print(&found, now, json, true)?;
        return Ok(code);
    }
    let mut left = usize::try_from(which.limit.unwrap_or(PAGE)).unwrap_or(usize::MAX);
    let mut next = filter(which, now, 0);
    let mut first = true;
    while left > 0 {
        next.limit = left.min(CHUNK);
        let page = rowlock.operate().jobs(next.clone()).await?;
        if first && page.is_empty() && !json {
            out::note("there are no such jobs");
        }
        print(&page, now, json, first)?;
        first = false;
        left -= page.len().min(left);
        if page.len() < next.limit {
            return Ok(exit::OK);
        }
        next.after = page.last().map(|job| job.id);
    }
    next.limit = 1;
    if let (Some(last), false) = (next.after, json)
        && !rowlock.operate().jobs(next).await?.is_empty()
    {
        out::note(&format!(
            "there are more: go on with --after {last}, or use a larger --limit"
        ));
    }
    Ok(exit::OK)
}

fn print(jobs: &[Record], now: jiff::Timestamp, json: bool, heading: bool) -> Result<()> {
    if json {
        let lines: Result<Vec<_>> = jobs.iter().map(out::to_json).collect();
        return out::lines(
            &lines?
                .iter()
                .map(|line| format!("{line}\n"))
                .collect::<String>(),
        );
    }
    if jobs.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&["ID", "KIND", "STATE", "ATTEMPT", "QUEUE", "TIME"], &[0]);
    for job in jobs {
        table.row(vec![
            job.id.to_string(),
            job.kind.to_string(),
            job.state.to_string(),
            format!("{} of {}", job.attempt, job.max_attempts),
            job.queue.to_string(),
            times(job, now).trim_start().to_owned(),
        ]);
    }
    let lines = table.lines();
    let body = match heading {
        true => lines.as_str(),
        false => lines.split_once('\n').map_or("", |(_, body)| body),
    };
    out::lines(body)
}
