//! Jobs that an unmodified Sidekiq runs.

use std::collections::{BTreeMap, BTreeSet};

use rowlock::Payload;
use rowlock_testbed::Sidekiq;
use serde_json::json;

use super::stand::{Stand, dismiss, kill, started};
use crate::conformance::world::job;

pub fn a_sidekiq_runs_every_committed_job_while_its_drain_dies(stand: &Stand) {
    let folder = rowlock_testbed::folder();
    let sidekiq = Sidekiq::start(&stand.redis, folder.path(), &["default"]);
    let to = format!("sidekiq+{}", stand.redis.url());
    let drain = || {
        let url = stand.home.url();
        started(&["drain", &url, &to, "1000", "noted"], &[])
    };
    let noted = |number: usize| {
        let payload = json!({ "words": format!("job \u{2713} {number}"), "number": number });
        job("noted").payload(Payload::parse(&payload.to_string()).unwrap())
    };
    let mut client = stand.home.client();
    let mut number = 0;
    for _ in 0..5 {
        let killed = drain();
        client.begin();
        for _ in 0..200 {
            client.stage(&noted(number)).unwrap();
            number += 1;
        }
        // Before the commit: by the time we look again it may have sent them all.
        let some = sidekiq.ran().len();
        client.commit();
        client.begin();
        client.stage(&noted(1_000_000 + number)).unwrap();
        client.rollback();
        // As soon as it has begun to send.
        rowlock_testbed::until("it sends", || (sidekiq.ran().len() > some).then_some(()));
        kill(killed);
    }
    let healer = drain();
    stand.until(|counts| counts.pending + counts.processing == 0);
    let ran = rowlock_testbed::until("Sidekiq has run them all", || {
        let ran = sidekiq.ran();
        let jids: BTreeSet<&String> = ran.iter().map(|run| &run.jid).collect();
        (jids.len() >= 1_000).then_some(ran)
    });
    dismiss(healer);
    let mut by_jid: BTreeMap<&str, &str> = BTreeMap::new();
    for run in &ran {
        let before = by_jid.insert(&run.jid, &run.args);
        assert!(
            before.is_none_or(|args| args == run.args),
            "one jid, two jobs"
        );
    }
    let mut expected: Vec<String> = (0..1_000)
        .map(|number| json!([number, format!("job \u{2713} {number}")]).to_string())
        .collect();
    let mut found: Vec<String> = by_jid
        .values()
        .map(|args| {
            let args: serde_json::Value = serde_json::from_str(args).unwrap();
            args.to_string()
        })
        .collect();
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "each once, as its arguments say");
}

pub fn a_drain_that_dies_before_or_after_it_has_sent_sends_each_job_once(stand: &Stand) {
    let to = format!("sidekiq+{}", stand.redis.url());
    let url = stand.home.url();
    let role = ["drain", &url, &to, "1000", "noted"];
    let sent = || stand.redis.command(&["LLEN", "queue:default"]);
    for (point, jobs) in [("drain.sending", "100"), ("drain.sent", "200")] {
        let payload = json!({ "words": "", "number": 1 });
        let noted =
            (0..100).map(|_| job("noted").payload(Payload::parse(&payload.to_string()).unwrap()));
        stand
            .ask(stand.site.rowlock.enqueue_many(noted.collect()))
            .unwrap();
        let mut dying = started(&role, &[("ROWLOCK_CRASH_AT", point)]);
        dying.line_with(&format!("crash point {point}"));
        assert_eq!(dying.wait().0, None, "it was ended by a signal");
        let healer = started(&role, &[]);
        stand.until(|counts| counts.pending + counts.processing == 0);
        dismiss(healer);
        assert_eq!(sent().trim(), jobs, "died at {point}");
    }
}
