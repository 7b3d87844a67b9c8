//! What can't be stored past the library, by those who may only stage jobs.

use super::small::Small;

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// What the server says of this job.
fn staged(small: &Small, job: &str) -> Result<u64, String> {
    let text = format!("[{job}]").replace('\'', "''");
    let stage = format!("SELECT * FROM rowlock.stage('{text}')");
    small.side.execute(&stage)
}

pub async fn what_a_declaration_carries_is_checked(small: Small) {
    for (declared, words) in [
        (r#"{"queue":"\u001b[2J"}"#, "queue is not a valid name"),
        (r#"{"queue":"default\n"}"#, "queue is not a valid name"),
        (r#"{"queue":""}"#, "queue is not a valid name"),
        (r#"{"priority":32768}"#, "priority must be"),
        (r#"{"priority":"high"}"#, "bigint"),
        (r#"{"max_attempts":-1}"#, "max_attempts must be"),
        (r#"{"max_attempts":0}"#, "max_attempts must be"),
        (r#"{"max_attempts":1000001}"#, "max_attempts must be"),
        (r#"{"unique_until":"never"}"#, "unique_until must be"),
        (r#"{"key":["id\u001b"]}"#, "a field of the key"),
        (r#"{"key":[null]}"#, "a field of the key"),
        (r#"{"key":"id"}"#, "a field of the key"),
        ("7", "declared must be an object"),
    ] {
        let job = format!(r#"{{"kind":"mail","declared":{declared}}}"#);
        let why = staged(&small, &job).unwrap_err();
        assert!(why.contains(words), "{declared}: {why}");
        let plain = format!(
            "SELECT rowlock.stage_plain('mail', NULL, NULL, NULL, NULL, NULL, '{declared}')"
        );
        let why = small.side.execute(&plain).unwrap_err();
        assert!(why.contains(words), "{declared}: {why}");
    }
    assert_eq!(small.side.value("SELECT count(*) FROM rowlock.lane"), "0");
    let well = r#"{"kind":"mail","payload":"{\"id\":1}","declared":{"queue":"post","priority":-3,
        "max_attempts":2,"key":["id"],"unique_until":"start"}}"#;
    staged(&small, well).unwrap();
    let stored =
        "SELECT queue || priority || max_attempts || until_start || unique_key FROM rowlock.job";
    assert_eq!(small.side.value(stored), "post-32true[1]");
}

pub async fn a_completion_without_a_token_ends_no_job(small: Small) {
    let waiting = "INSERT INTO rowlock.kind (kind) VALUES ('mail');
        SELECT rowlock.enqueue('mail'), rowlock.enqueue('mail', scheduled_at => now() + interval '1 hour')";
    small.side.execute(waiting).unwrap();
    for (segment, token) in [
        ("NULL", "NULL"),
        ("0::smallint", "NULL"),
        ("NULL", "0"),
        ("0::smallint", "1"),
    ] {
        let guess = format!(
            "SELECT bool_or(rowlock.complete({segment}, n, {token}, NULL)) FROM generate_series(1, 9) AS n"
        );
        assert_eq!(small.side.value(&guess), "f", "{guess}");
    }
    let left = "SELECT count(*) FROM rowlock.jobs WHERE state = 'pending'";
    assert_eq!(small.side.value(left), "2");
}

pub async fn a_session_whose_strings_have_escapes_stages_alike(small: Small) {
    let session = small.own.session();
    session
        .execute("SET standard_conforming_strings = off; SET escape_string_warning = off")
        .unwrap();
    for (payload, tags, taken) in [
        ("{\"a\": \"b\"}", "{a,b}", true),
        ("{}", "{}", true),
        ("{\"a\": \"\\\\u0000\"}", "{}", false),
        ("{}", "{\"a b\"}", false),
    ] {
        let staged =
            format!("SELECT * FROM rowlock.enqueue('mail', E'{payload}', tags => '{tags}')");
        let staged = session.execute(&staged);
        assert_eq!(staged.is_ok(), taken, "{payload} {tags}: {staged:?}");
    }
}

pub async fn a_call_past_the_library_keeps_its_rules(small: Small) {
    let long = i64::MAX.to_string();
    for (what, words) in [
        (r#""delay_ms":-1"#.to_owned(), "delay_ms must not"),
        (r#""delay_ms":1000000000000000"#.to_owned(), "year 10000"),
        (format!(r#""delay_ms":{long}"#), "out of range"),
        (r#""scheduled_at":"infinity""#.to_owned(), "year 10000"),
        (r#""scheduled_at":"-infinity""#.to_owned(), "year 10000"),
        (r#""trace_context":"\u001b]0;x""#.to_owned(), "W3C"),
        (format!(r#""trace_context":"{TRACE}\n""#), "W3C"),
        (r#""backoff":{"kind":"never"}"#.to_owned(), "retry policy"),
        (
            r#""backoff":{"kind":"fixed","base":"-1s"}"#.to_owned(),
            "retry policy",
        ),
        (
            r#""backoff":{"kind":"custom","delays":[-1]}"#.to_owned(),
            "retry policy",
        ),
        (r#""backoff":[]"#.to_owned(), "retry policy"),
        (r#""tags":["a\u001b"]"#.to_owned(), "a tag"),
        (r#""queue":"a\u001b""#.to_owned(), "queue"),
        (r#""priority":-32769"#.to_owned(), "priority"),
        (r#""max_attempts":-1"#.to_owned(), "max_attempts"),
    ] {
        let why = staged(&small, &format!(r#"{{"kind":"mail",{what}}}"#)).unwrap_err();
        assert!(why.contains(words), "{what}: {why}");
    }
    // A kind that is known goes the short way.
    small
        .side
        .execute(
            "INSERT INTO rowlock.kind (kind) VALUES ('known'); SELECT rowlock.enqueue('known')",
        )
        .unwrap();
    for call in [
        "rowlock.stage_plain('known', NULL, NULL, NULL, NULL, E'\\x1b', NULL)",
        "rowlock.stage_alike(ARRAY['known', NULL, NULL, NULL, E'\\x1b', NULL, '{}', '{}']::text)",
    ] {
        let why = small.side.execute(&format!("SELECT {call}")).unwrap_err();
        assert!(why.contains("W3C"), "{call}: {why}");
    }
    let count = small.side.value("SELECT count(*) FROM rowlock.job");
    assert_eq!(count, "1");
    let well = format!(
        r#"{{"kind":"mail","trace_context":"{TRACE}","delay_ms":5,"backoff":{{"kind":"custom","delays":["1s","1m 30s"]}}}}"#
    );
    staged(&small, &well).unwrap();
}
