//! Verify: one checker over what producers were told, what workers did, and what the store holds.
//!
//! In: an open store, and two logs that are optional: [`Told`] (written by producers) and [`Ran`]
//! (written by workers, see [`Options::ran`](crate::run::Options)). Out: a [`Report`], one line per
//! [`Invariant`]. It only reads. Read the logs before the store, then it may run beside workers, except
//! for kinds with a retention of 0; and the question whether the queue has drained is for when the
//! caller says it is over.
//!
//! docs/verify.md has the formats, and what the checker can't know.

mod claims;
mod jobs;
mod lines;
mod ran;
mod report;
mod told;

pub use claims::RanLog;
pub(crate) use ran::Asked;
pub use ran::{Ending, Event, Phase, Ran};
pub use report::{Checked, Finding, Invariant, Report, SHOWN};
pub use told::{Answer, Op, Told, ToldLog};

use crate::engine::Operate;
use crate::error::{Error, Result};
use crate::verify::jobs::Look;

/// How many rows of the store are read at a time.
const PAGE: usize = 10_000;

/// Checks everything that can be checked: without logs I3, I4, I6 and I7 over the store alone; the
/// told log adds I1, both logs add I2 and I5.
///
/// # Errors
/// Whatever the store answers. What it contradicts itself with is no error but a finding; and so is
/// damage that keeps us from reading on: then what wasn't read through is left out of the report.
pub async fn check(
    store: &dyn Operate,
    told: Option<&ToldLog>,
    ran: Option<&RanLog>,
) -> Result<Report> {
    let mut report = Report::default();
    let both = told.is_some() && ran.is_some();
    for (invariant, can) in [
        (Invariant::I1, told.is_some()),
        (Invariant::I2, both),
        (Invariant::I3, true),
        (Invariant::I4, true),
        (Invariant::I5, both),
        (Invariant::I6, true),
        (Invariant::I7, true),
    ] {
        if can {
            report.look_at(invariant);
        }
    }
    let wrong = match store.integrity().await {
        Ok(wrong) => wrong,
        Err(why) => return damaged(report, false, why),
    };
    let known = !wrong.store.is_empty();
    for wrong in wrong.store {
        report.whole(Invariant::I7, wrong);
    }
    match wrong.ticks {
        Some(ticks) => {
            for tick in ticks {
                report.whole(Invariant::I6, tick);
            }
        }
        None => report.leave_out(Invariant::I6),
    }
    let mut look = Look::new(report, told, ran);
    let mut after = None;
    loop {
        let page = match store.facts(after, PAGE).await {
            Ok(page) => page,
            Err(why) => return damaged(look.stop(), known, why),
        };
        let Some(last) = page.last() else { break };
        after = Some(last.id);
        for rows in page.chunk_by(|one, next| one.id == next.id) {
            look.stored(rows);
        }
    }
    Ok(look.finish())
}

/// The store can't be read on. Whoever opened it had found its tables, so a word about the file is a
/// finding; rows that make no sense are one if it is `known` to be damaged.
fn damaged(mut report: Report, known: bool, why: Error) -> Result<Report> {
    match why {
        Error::Schema(why) => report.whole(Invariant::I7, why),
        Error::Bug(why) if known => report.whole(Invariant::I7, why),
        why => return Err(why),
    }
    report.keep_broken();
    Ok(report)
}
