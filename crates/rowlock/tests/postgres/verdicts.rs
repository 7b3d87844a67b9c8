//! Verdicts that the server refuses: under codes that also a server without tables, rights or time has.

use std::time::Duration;

use rowlock::clock::Clock;
use rowlock::job::Backoff;
use rowlock::run::{Options, Stopper};
use rowlock::settle::UNWRITTEN;
use rowlock::{Context, JobState, Kind, Outcome};
use rowlock_testbed::until;
use tokio::sync::mpsc;

use super::small::Small;
use crate::conformance::world::job;

/// What a trigger's own statements run into: a table that was dropped, a right that is missing, a function that is
/// gone, a lock that is held.
const CODES: [(&str, bool); 5] = [
    ("P0001", true),
    ("42P01", true),
    ("42501", true),
    ("42883", true),
    ("55P03", false),
];

pub async fn a_verdict_that_a_trigger_refuses_in_any_words_holds_up_no_other(small: Small) {
    let mut kind = Kind::new("mail").unwrap();
    kind.backoff = Backoff::Fixed {
        base: Duration::ZERO,
        jitter: 0.0,
    };
    for (code, charges) in CODES {
        let site = small.open(&Clock::system());
        let refused = site.stage(job("mail").max_attempts(1).unwrap()).await;
        small
            .side
            .execute(&format!(
                "CREATE OR REPLACE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS
                     $$ BEGIN RAISE EXCEPTION 'not this one' USING ERRCODE = '{code}'; END $$;
                 CREATE OR REPLACE TRIGGER refused BEFORE INSERT ON rowlock.history FOR EACH ROW
                     WHEN (NEW.id = {refused} AND NEW.state = 'completed') EXECUTE FUNCTION refused()"
            ))
            .unwrap();
        let others = site.stage_many("mail", 40).await;
        let (begins, mut begun) = mpsc::unbounded_channel();
        let stopper = Stopper::default();
        let worker = site.worker(()).options(Options::default());
        let worker = worker.handle_kind(kind.clone(), move |job: Context| {
            begins.send(job.id).unwrap();
            async { Outcome::Done }
        });
        #[expect(clippy::disallowed_methods, reason = "joined by the case")]
        let work = tokio::spawn(worker.run_until(stopper.stop()));
        let reached = |state: &str, ids: &str| {
            format!("SELECT count(*) FROM rowlock.jobs WHERE state = '{state}' AND id IN ({ids})")
        };
        let ids: Vec<String> = others.iter().map(ToString::to_string).collect();
        let done = reached("completed", &ids.join(","));
        let side = small.own.session();
        let wait = async |what: &str, is_so: &dyn Fn() -> bool| {
            tokio::task::block_in_place(|| until(what, || is_so().then_some(())));
        };
        wait(&format!("{code}: the others end"), &|| {
            side.value(&done) == "40"
        })
        .await;
        if charges {
            let failed = reached("failed", &refused.to_string());
            wait(&format!("{code}: the attempt is charged"), &|| {
                side.value(&failed) == "1"
            })
            .await;
        } else {
            // It ends by itself: the job is held, and says why.
            let noted = format!(
                "SELECT count(*) FROM rowlock.job WHERE id = {refused} AND errors IS NOT NULL"
            );
            wait(&format!("{code}: the job is held"), &|| {
                side.value(&noted) == "1"
            })
            .await;
        }
        let found = site.job(refused).await;
        assert!(
            found.errors[0].message.starts_with(UNWRITTEN),
            "{code}: {found:?}"
        );
        small
            .side
            .execute(
                "CREATE OR REPLACE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS
                     $$ BEGIN RETURN NEW; END $$",
            )
            .unwrap();
        if !charges {
            let completed = reached("completed", &refused.to_string());
            wait(&format!("{code}: it ends as its handler said"), &|| {
                side.value(&completed) == "1"
            })
            .await;
        }
        stopper.ask();
        work.await.unwrap().unwrap();
        let ran = std::iter::from_fn(|| begun.try_recv().ok());
        assert_eq!(ran.filter(|id| *id == refused).count(), 1, "{code}");
        let state = site.state(refused).await;
        assert_eq!(state == JobState::Failed, charges, "{code}: {state:?}");
    }
}

pub async fn a_row_that_cannot_be_claimed_stops_no_other_kind(small: Small) {
    let site = small.open(&Clock::system());
    // Where a claim writes: before any row is there.
    let refuse = "CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN IF NEW.token IS NOT NULL AND NEW.payload::text LIKE '%poison%' THEN
                RAISE EXCEPTION 'not this one'; END IF; RETURN NEW; END $$";
    small.side.execute(refuse).unwrap();
    for segment in 0..4 {
        let trigger = format!(
            "CREATE TRIGGER refused BEFORE INSERT OR UPDATE ON rowlock.job_{segment}
                 FOR EACH ROW EXECUTE FUNCTION refused()"
        );
        small.side.execute(&trigger).unwrap();
    }
    let poisoned = rowlock::Payload::parse(r#"{"to": "poison"}"#).unwrap();
    let poisoned = site.stage(job("mail").payload(poisoned)).await;
    let (begins, mut begun) = mpsc::unbounded_channel();
    let stopper = Stopper::default();
    let mut worker = site.worker(()).options(Options::default());
    for kind in ["mail", "post", "fax"] {
        let begins = begins.clone();
        worker = worker.handle_kind(Kind::new(kind).unwrap(), move |job: Context| {
            begins.send(job.id).unwrap();
            async { Outcome::Done }
        });
    }
    #[expect(clippy::disallowed_methods, reason = "joined by the case")]
    let work = tokio::spawn(worker.run_until(stopper.stop()));
    let clock = Clock::system();
    for round in 0..3 {
        let mut others = Vec::new();
        for kind in ["post", "fax"] {
            others.extend(site.stage_many(kind, 5).await);
        }
        while !others.is_empty() {
            let next = clock.timeout(Duration::from_secs(60), begun.recv()).await;
            let id = next.unwrap_or_else(|| panic!("round {round}: {others:?} wait"));
            others.retain(|other| Some(*other) != id);
        }
    }
    assert_eq!(site.state(poisoned).await, JobState::Pending);
    // Once it can be claimed it is.
    let accept = "CREATE OR REPLACE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN RETURN NEW; END $$";
    small.side.execute(accept).unwrap();
    let next = clock.timeout(Duration::from_secs(60), begun.recv()).await;
    assert_eq!(next, Some(Some(poisoned)));
    stopper.ask();
    work.await.unwrap().unwrap();
}
