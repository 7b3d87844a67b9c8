use proptest::prelude::*;

use super::*;

fn names() -> impl Strategy<Value = Name> {
    "[A-Za-z0-9_][A-Za-z0-9_.:-]{0,62}".prop_map(|text| Name::new(text).unwrap())
}

fn times() -> impl Strategy<Value = Timestamp> {
    (-62_135_596_800_000_i64..253_402_207_200_000)
        .prop_map(|ms| Timestamp::from_millisecond(ms).unwrap())
}

fn backoffs() -> impl Strategy<Value = Backoff> {
    prop_oneof![
        Just(Backoff::default()),
        (0..1_000_000_u64).prop_map(|base| Backoff::Fixed {
            base: Duration::from_secs(base),
            jitter: 0.25,
        }),
        Just(Backoff::Custom {
            delays: vec![Duration::from_secs(1), Duration::from_secs(60)],
            jitter: 0.0,
        }),
    ]
}

prop_compose! {
    fn jobs()(
        (id, token) in (1..i64::MAX, 1..i64::MAX),
        (kind, queue, tags) in (names(), names(), proptest::collection::vec(names(), 0..3)),
        priority: i16,
        text: String,
        key: Option<String>,
        trace_context: Option<String>,
        (attempt, max_attempts) in (0..u32::MAX, 0..u32::MAX),
        scheduled_at in times(),
        backoff in backoffs(),
        timeout: u32,
        suspect: bool,
        idempotency_key: Option<String>,
    ) -> ClaimedJob {
        let payload = serde_json::to_string(&[&text, "12345678901234567890.10"]).unwrap();
        ClaimedJob {
            id: JobId(id),
            token: Token::stored(token),
            kind,
            queue,
            priority,
            payload: Payload::stored(payload),
            attempt,
            max_attempts,
            scheduled_at,
            unique_key: key,
            tags,
            trace_context,
            backoff,
            timeout: Duration::from_millis(timeout.into()),
            suspect,
            segment: None,
            key: KeySource::Sent(idempotency_key),
        }
    }
}

fn troubles() -> impl Strategy<Value = JobError> {
    let kinds = prop_oneof![
        Just(ErrorKind::Error),
        Just(ErrorKind::Panic),
        Just(ErrorKind::Timeout),
        Just(ErrorKind::Lease),
    ];
    (any::<u32>(), times(), kinds, any::<String>())
        .prop_map(|(attempt, at, kind, message)| JobError::new(attempt, at, kind, &message))
}

fn verdicts() -> impl Strategy<Value = Verdict> {
    prop_oneof![
        Just(Verdict::Done),
        Just(Verdict::NotNeeded),
        Just(Verdict::Cancelled),
        Just(Verdict::Release),
        times().prop_map(Verdict::Snooze),
        troubles().prop_map(Verdict::Fail),
        (times(), troubles()).prop_map(|(at, error)| Verdict::Retry { at, error }),
    ]
}

/// A verdict as it arrives: nothing in it is due before it was given, and no error is of later.
fn clamped(verdict: Verdict, now: Timestamp) -> Verdict {
    let known = |error: JobError| JobError {
        at: error.at.min(now),
        ..error
    };
    match verdict {
        Verdict::Snooze(at) => Verdict::Snooze(at.max(now)),
        Verdict::Fail(error) => Verdict::Fail(known(error)),
        Verdict::Retry { at, error } => Verdict::Retry {
            at: at.max(now),
            error: known(error),
        },
        other => other,
    }
}

fn by(taken: Token, given: Timestamp) -> Taker {
    Taker {
        worker: WorkerId::stored("host:1:2".to_owned()),
        taken,
        given,
    }
}

proptest! {
    #[test]
    fn a_job_arrives_as_it_was_sent(job in jobs()) {
        let entry = seal(&job, &lane(&job)).unwrap();
        prop_assert!(!entry.contains('\n'));
        let arrived = open(entry.as_bytes(), job.token).unwrap();
        prop_assert_eq!((arrived.id, arrived.sent), (job.id, job.token));
        prop_assert_eq!(format!("{:?}", arrived.job.unwrap()), format!("{job:?}"));
    }

    #[test]
    fn a_verdict_arrives_as_it_was_given(
        job in jobs(),
        verdict in verdicts(),
        started in proptest::option::of(times()),
        now in times(),
        taken in 1..i64::MAX,
    ) {
        let settlement = Settlement {
            id: job.id,
            token: Token::stored(taken),
            verdict,
            started_at: started,
        };
        let entry = seal(&job, &lane(&job)).unwrap();
        let origin = open(entry.as_bytes(), settlement.token).unwrap().origin();
        let told = tell(&settlement, &origin, now).unwrap();
        prop_assert!(!told.contains('\n'));
        let report = hear(&told, job.id, origin.sent, by(settlement.token, now)).unwrap();
        prop_assert_eq!(report.settlement.id, job.id);
        prop_assert_eq!(report.settlement.token, job.token);
        prop_assert_eq!(report.taken, settlement.token);
        prop_assert_eq!(report.worker.as_str(), "host:1:2");
        prop_assert_eq!(report.attempt, job.attempt);
        prop_assert_eq!(report.kind, job.kind);
        prop_assert_eq!(report.unique_key, job.unique_key);
        prop_assert_eq!(report.settlement.started_at, started.map(|at| at.min(now)));
        prop_assert_eq!(report.settlement.verdict, clamped(settlement.verdict, now));
    }

    #[test]
    fn whatever_lies_there_is_read_or_refused(bytes: Vec<u8>, text: String) {
        let token = Token::stored(1);
        for bytes in [&bytes, text.as_bytes(), format!("1 2 3 a/b/0 {text}").as_bytes()] {
            let _ = open(bytes, token);
        }
        let _ = hear(&text, JobId(1), token, by(token, Timestamp::UNIX_EPOCH));
    }
}

#[test]
fn what_a_script_writes_by_itself_is_understood() {
    for (told, verdict, key) in [
        (
            r#"{"said":"release","kind":"send","attempt":2}"#,
            Verdict::Release,
            None,
        ),
        (
            r#"{"kind":"send","attempt":2,"said":"cancelled","unique_key":"a\/b"}"#,
            Verdict::Cancelled,
            Some("a/b"),
        ),
    ] {
        let token = Token::stored(1);
        let report = hear(told, JobId(1), token, by(token, Timestamp::UNIX_EPOCH)).unwrap();
        assert_eq!(report.settlement.verdict, verdict);
        assert_eq!((report.kind.as_str(), report.attempt), ("send", 2));
        assert_eq!(report.unique_key.as_deref(), key);
    }
}

#[test]
fn a_payload_at_the_limit_of_depth_goes_through() {
    let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
    let payload: &RawValue = serde_json::from_str(&deep).unwrap();
    assert_eq!(payload.get(), deep);
}
