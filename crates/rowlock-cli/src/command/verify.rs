//! `rowlock verify`: one line for each invariant, and exit code 6 when one is broken.

use anyhow::Result;
use rowlock::verify::{Checked, RanLog, Report, ToldLog, check};

use crate::cli::Verify;
use crate::open::{Access, Setup};
use crate::{exit, out, show};

pub async fn run(setup: &Setup, what: &Verify, json: bool) -> Result<u8> {
    // The logs first: what is written while we read the store is in the store already, unless it isn't
    // kept at all after its end.
    let ran = what.ran.as_ref().map(RanLog::read).transpose()?;
    let told = what.told.as_ref().map(ToldLog::read).transpose()?;
    let (rowlock, _) = setup.open_quietly(Access::Read).await?;
    let report = check(rowlock.operate(), told.as_ref(), ran.as_ref()).await?;
    say(&report.checked, json)?;
    Ok(code(&report))
}

/// Writes what was found.
pub fn say(checked: &[Checked], json: bool) -> Result<()> {
    for each in checked {
        match json {
            true => out::json(each)?,
            false => out::line(&show::text(&each.to_string()))?,
        }
    }
    Ok(())
}

pub fn code(report: &Report) -> u8 {
    match report.is_clean() {
        true => exit::OK,
        false => exit::FINDINGS,
    }
}
