//! Two million jobs while a transaction stays open: speed and space, part by part, beside the same without it.

use std::time::Duration;

use anyhow::Result;
use rowlock::Rowlock;

use super::{claims, ours, textbook};
use crate::databases::Databases;
use crate::measurement::{median, percentile};
use crate::pin::{Pin, Pinned};
use crate::server::Server;
use crate::stopwatch::as_f64;
use crate::{Bound, Measurement, Progress};

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Jobs that go through under the pin, and as many without.
    pub under: usize,
    /// Jobs of a part, whose rate is one figure.
    pub part: usize,
    /// How long the textbook's queue runs at each look.
    pub patience: Duration,
    /// Claims whose time is taken at the end.
    pub claims: usize,
    /// Jobs that are set aside and come back.
    pub aside: usize,
    /// How long until they are due.
    pub due: Duration,
}

impl Size {
    /// For figures.
    #[must_use]
    pub fn full() -> Self {
        Self {
            under: 2_000_000,
            part: 50_000,
            patience: Duration::from_secs(30),
            claims: 300,
            aside: 500_000,
            due: Duration::from_secs(90),
        }
    }

    /// For shape and counts: its times mean nothing.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            under: 4_000,
            part: 500,
            patience: Duration::from_millis(50),
            claims: 3,
            // What is due within a minute isn't set aside, and nobody waits that long.
            aside: 0,
            due: Duration::ZERO,
        }
    }
}

/// When the textbook's queue is looked at, as parts of all jobs.
const LOOKS: [(f64, &str, &str); 5] = [
    (0.0, "at_0", "textbook_at_0"),
    (0.125, "at_250k", "textbook_at_250k"),
    (0.25, "at_500k", "textbook_at_500k"),
    (0.5, "at_1m", "textbook_at_1m"),
    (1.0, "at_2m", "textbook_at_2m"),
];

/// What goes through, and what is expected.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    pub(super) step: &'static str,
    pub(super) pin: Pin,
    pub(super) keyed: bool,
    pub(super) goal: f64,
}

/// Something that is watched under a transaction that stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It has only read.
    Snapshot,
    /// It has written.
    Writer,
    /// Every job has a unique key.
    Keys,
    /// Jobs that were set aside come back.
    Aside,
}

/// All of them.
pub const STEPS: [Step; 4] = [Step::Snapshot, Step::Writer, Step::Keys, Step::Aside];

pub(super) const LOADS: [(Step, Load); 3] = [
    (
        Step::Snapshot,
        Load {
            step: "under_a_snapshot",
            pin: Pin::Reading,
            keyed: false,
            goal: 0.8,
        },
    ),
    (
        Step::Writer,
        Load {
            step: "under_a_writer",
            pin: Pin::Writing,
            keyed: false,
            goal: 0.8,
        },
    ),
    (
        Step::Keys,
        Load {
            step: "under_a_snapshot_with_keys",
            pin: Pin::Reading,
            keyed: true,
            goal: 0.7,
        },
    ),
];

/// A database of its own.
struct State {
    server: Server,
    rowlock: Rowlock,
    staged: Vec<f64>,
    rates: Vec<f64>,
    wal: f64,
    most_bytes: f64,
}

impl State {
    async fn new(server: Server) -> Result<Self> {
        server.fresh().await?;
        Ok(Self {
            rowlock: server.open().await?,
            server,
            staged: Vec::new(),
            rates: Vec::new(),
            wal: 0.0,
            most_bytes: 0.0,
        })
    }

    async fn number(&self, text: &str) -> Result<f64> {
        let session = self.server.session().await?;
        let row = session
            .client
            .query_one(&self.server.put(text), &[])
            .await?;
        Ok(as_f64(usize::try_from(row.get::<_, i64>(0))?))
    }

    /// A part is staged, and then run: each has its rate.
    async fn through(&mut self, jobs: usize, keyed: bool) -> Result<()> {
        self.staged
            .push(ours::bulk(&self.rowlock, jobs, keyed).await?);
        let before = self.number(include_str!("sql/wal.sql")).await?;
        self.rates.push(ours::run(&self.rowlock, jobs, true).await?);
        self.wal += self.number(include_str!("sql/wal.sql")).await? - before;
        let bytes = self.number(include_str!("sql/segment_bytes.sql")).await?;
        self.most_bytes = self.most_bytes.max(bytes);
        Ok(())
    }
}

pub(super) async fn measure(
    load: Load,
    size: &Size,
    databases: &Databases,
    say: Progress<'_>,
) -> Result<Measurement> {
    let [pinned, free] = databases.servers()?;
    let (mut pinned, mut free) = (State::new(pinned).await?, State::new(free).await?);
    textbook::create(&pinned.server).await?;
    let per_claim = textbook::best_size(&pinned.server, size.part, size.patience / 10).await?;
    let pin = Pinned::new(&pinned.server, load.pin).await?;
    let parts = size.under.div_ceil(size.part);
    let mut looks = LOOKS.iter().peekable();
    let mut textbook = Vec::new();
    for part in 0..=parts {
        let through = part * size.part;
        if let Some((_, _, name)) =
            looks.next_if(|(at, ..)| as_f64(through) >= at * as_f64(size.under))
        {
            say(&format!(
                "{}: the textbook's queue after {through}",
                load.step
            ));
            let rate =
                textbook::rate_behind(&pinned.server, through, size.part, per_claim, size.patience);
            textbook.push((*name, rate.await?));
        }
        if part == parts {
            break;
        }
        say(&format!("{}: part {} of {parts}", load.step, part + 1));
        pinned.through(size.part, load.keyed).await?;
        free.through(size.part, load.keyed).await?;
    }
    pin.still_holds().await?;
    let claims = claims::times(&pinned.rowlock, size.claims).await?;
    let claims_without = claims::times(&free.rowlock, size.claims).await?;
    // The last quarter; without the pin by turns, so that it can be compared with itself.
    let last = parts - parts.div_ceil(4);
    let turn = |odd: usize| -> Vec<f64> {
        let rates = free.rates[last..].iter().enumerate();
        rates
            .filter(|(n, _)| n % 2 == odd)
            .map(|(_, rate)| *rate)
            .collect()
    };
    let mut made = Measurement::new(load.step, "jobs/s", size.under)
        .ours(&pinned.rates[last..])
        .without(&turn(0), &turn(1), load.goal)
        .with(
            "enqueue_of_without",
            median(&pinned.staged[last..]) / median(&free.staged[last..]),
        )
        .with("segment_bytes", pinned.most_bytes)
        .goal("segment_bytes", Bound::AtMost(300e6))
        .with("wal_per_job", pinned.wal / as_f64(parts * size.part))
        .with("claim_p50_ms", percentile(&claims, 0.5))
        .with("claim_p99_ms", percentile(&claims, 0.99))
        .with("claim_p99_ms_without", percentile(&claims_without, 0.99));
    for (at, name, _) in LOOKS {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a part's number"
        )]
        let part = ((at * as_f64(parts)) as usize).clamp(1, parts) - 1;
        made = made.with(name, pinned.rates[part]);
    }
    if load.keyed {
        let keys = pinned.number(include_str!("sql/key_bytes.sql")).await?;
        made = made.with("key_bytes_per_job", keys / as_f64(parts * size.part));
    }
    let fell = textbook[0].1 / textbook[textbook.len() - 1].1;
    for (name, rate) in textbook {
        made = made.with(name, rate);
    }
    Ok(made
        .with("textbook_fell", fell)
        .goal("textbook_fell", Bound::AtLeast(10.0)))
}
