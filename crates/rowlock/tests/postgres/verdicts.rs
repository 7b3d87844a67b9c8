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
