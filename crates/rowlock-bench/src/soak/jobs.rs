//! What comes in a soak: several kinds, queues and priorities, some with a key, some later, some that fail first.

use std::time::Duration;

use anyhow::Result;
use rowlock::job::{Backoff, Name};
use rowlock::{Kind, NewJob, Payload};

const MAIL: &str = "mail";
pub(super) const STUMBLES: &str = "stumbles";
const SYNC: &str = "sync";
const REPORT: &str = "report";

/// They differ in queue and priority.
pub(super) fn kinds() -> Result<Vec<Kind>> {
    let kinds = [MAIL, STUMBLES, SYNC, REPORT].map(|name| {
        let mut kind = Kind::new(name)?;
        if name == REPORT {
            kind.queue = Name::new("slow")?;
            kind.priority = -5;
        }
        kind.backoff = Backoff::Linear {
            base: Duration::from_secs(2),
            jitter: 0.1,
        };
        Ok(kind)
    });
    kinds.into_iter().collect()
}

/// The n-th of all.
pub(super) fn job(n: usize) -> Result<NewJob> {
    let payload = Payload::parse(&format!(r#"{{"to":"reader{n}@example.org","failures":1}}"#))?;
    let job = |kind: &str| anyhow::Ok(NewJob::new(kind)?.payload(payload.clone()));
    Ok(match n % 10 {
        0 => job(STUMBLES)?,
        // Some of them meet one that hasn't ended.
        1 | 2 => job(SYNC)?.unique(format!("account:{}", n % 50_000))?,
        3 => job(MAIL)?.delay(Duration::from_secs(3)),
        4 => job(REPORT)?,
        more => job(MAIL)?.priority(i16::try_from(more)? - 7),
    })
}
