use proptest::prelude::*;

use super::*;

fn refused(text: &str) -> String {
    Config::parse(text, "rowlock.toml").unwrap_err().to_string()
}

#[test]
fn an_empty_file_means_every_default() {
    let config = Config::parse("", "rowlock.toml").unwrap();
    assert_eq!(config.worker.concurrency, 8);
    assert!(config.kinds().unwrap().is_empty());
}

#[test]
fn every_setting_of_a_handler_reaches_its_kind() {
    let config = Config::parse(
        r#"
        [retention]
        completed = "2h"
        [handlers.send_email]
        builtin = "noop"
        timeout = "30s"
        queue = "mail"
        priority = 7
        max_attempts = 9
        backoff = { kind = "exponential", base = "1s", max = "1m", jitter = 0.5 }
        key = ["to"]
        unique_until = "start"
        [handlers.report]
        builtin = "sleep"
        retention = { completed = "0s", failed = "1d" }
        "#,
        "rowlock.toml",
    )
    .unwrap();
    let kinds = config.kinds().unwrap();
    let (report, mail) = (&kinds[0], &kinds[1]);
    assert_eq!(mail.queue.as_str(), "mail");
    assert_eq!((mail.priority, mail.max_attempts), (7, 9));
    assert_eq!(mail.backoff.wait(9).0.as_secs(), 60);
    assert_eq!(mail.key[0].as_str(), "to");
    assert_eq!(mail.unique_until.as_str(), "start");
    assert_eq!(mail.retention.completed.as_secs(), 7200);
    assert!(report.retention.completed.is_zero());
    assert_eq!(report.retention.failed.as_secs(), 86400);
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_nearest_known_one() {
    assert_eq!(
        refused("url = \"sqlite:x.db\"\n\n[worker]\nconcurency = 4\n"),
        "rowlock.toml:4: unknown key `concurency`: did you mean `concurrency`?"
    );
    assert_eq!(
        refused("[wroker]\n"),
        "rowlock.toml:1: unknown key `wroker`: did you mean `worker`?"
    );
    assert!(
        refused("[handlers.a]\nbuiltin = \"noop\"\nmax_atempts = 3").contains("`max_attempts`")
    );
}

#[test]
fn a_wrong_value_is_named_with_its_line_and_the_form() {
    assert!(
        refused("[worker]\nlease = \"soon\"")
            .contains("rowlock.toml:2: \"soon\" is not a duration")
    );
    assert!(refused("[worker]\nconcurrency = \"x\"").starts_with("rowlock.toml:2: "));
    assert!(refused("[worker]\nconcurrency = 0").contains("use 1 to 10000"));
    assert!(refused("[handlers.\"a b\"]\nbuiltin = \"noop\"").contains("not a valid name"));
    assert!(refused("[handlers.a]\nbuiltin = \"nope\"").contains("use noop, echo, sleep or flaky"));
    assert!(refused("[limits]\npayload = \"2MiB\"").contains("1MiB"));
    assert!(refused("[limits]\npayload = \"2 boxes\"").contains("is not a size"));
    assert!(refused("url = ").starts_with("rowlock.toml:1: "));
}

#[test]
fn times_that_are_too_short_are_refused_in_the_same_words_as_in_rust() {
    use std::time::Duration;
    let ms = Duration::from_millis;
    for (lease, poll, words) in [
        (499, 1_000, "lease is too short: use 500ms or more"),
        (30_000, 9, "poll is too short: use 10ms or more"),
    ] {
        let text = format!("[worker]\nlease = \"{lease}ms\"\npoll = \"{poll}ms\"\n");
        let why = refused(&text);
        assert!(why.ends_with(&format!("[worker]: {words}")), "{why}");
        let why = Options::check_times(ms(lease), ms(poll)).unwrap_err();
        assert_eq!(why.to_string(), words);
    }
    Config::parse("[worker]\nlease = \"500ms\"\npoll = \"10ms\"\n", "x").unwrap();
}

#[test]
#[cfg(feature = "postgres")]
fn a_schema_is_a_plain_name() {
    let config = Config::parse("schema = \"jobs_2\"", "rowlock.toml").unwrap();
    assert_eq!(config.schema.as_deref(), Some("jobs_2"));
    for bad in ["Jobs", "a b", "pg_x", "x;drop", ""] {
        let why = refused(&format!("schema = \"{bad}\""));
        assert!(why.contains("can't be the schema"), "{why}");
    }
}

#[test]
fn every_setting_of_the_dashboard_is_read() {
    let text = "[dashboard]\nbind = \"0.0.0.0:80\"\ntoken_file = \"tokens\"\nread_only = true\n\
                hosts = [\"jobs.example.com\"]\nwrites_per_second = 5\n";
    let dashboard = Config::parse(text, "x").unwrap().dashboard();
    assert_eq!(dashboard.bind.to_string(), "0.0.0.0:80");
    assert_eq!(dashboard.token_file.as_deref(), Some(Path::new("tokens")));
    assert!(dashboard.read_only);
    assert_eq!(dashboard.hosts, ["jobs.example.com"]);
    assert_eq!(dashboard.writes_per_second, 5);
    let plain = Config::parse("[dashboard]\ntoken_file = \"\"", "x").unwrap();
    let plain = plain.dashboard();
    assert_eq!(plain.bind.to_string(), "127.0.0.1:7878");
    assert_eq!(plain.token_file, None);
    for bad in [
        "bind = \"x\"",
        "hosts = [\"a:80\"]",
        "writes_per_second = 0",
        "colour = 1",
    ] {
        refused(&format!("[dashboard]\n{bad}"));
    }
}

#[test]
fn every_setting_of_a_guard_and_a_budget_is_read() {
    use crate::guard::{Action, Policy};
    let text = r#"
        [budget.analytics]
        max = 2
        match = { application_name = "metabase", role = "bi", tag = "reports" }
        [guard]
        action = "terminate"
        max_age = "10m"
        every = "1s"
        include_superusers = true
        "#;
    let config = Config::parse(text, "rowlock.toml").unwrap();
    let classes = config.classes().unwrap();
    assert_eq!((classes[0].name.as_str(), classes[0].max), ("analytics", 2));
    assert_eq!(classes[0].rule.role.as_deref(), Some("bi"));
    assert_eq!(
        config.guard(),
        Some(Policy {
            action: Action::Terminate,
            max_age: std::time::Duration::from_secs(600),
            every: std::time::Duration::from_secs(1),
            include_superusers: true,
            class: None,
        })
    );
    let plain = Config::parse("[guard]", "rowlock.toml").unwrap();
    assert_eq!(plain.guard(), Some(Policy::default()));
    assert_eq!(Config::default().guard(), None);
    assert!(refused("[guard]\naction = \"kill\"").contains("observe, cancel or terminate"));
    assert!(refused("[guard]\nevery = \"1ms\"").contains("100ms or more"));
    assert!(refused("[budget.a]\nmax = 0").contains("use 1 to 1000"));
    assert!(refused("[budget.a]\nmax = 1\nmatch = { rol = \"x\" }").contains("`role`"));
}

#[test]
fn every_setting_of_a_drain_reaches_its_route() {
    let config = Config::parse(
        r#"
        [[drain]]
        kinds = ["send_email"]
        to = "redis://127.0.0.1:6379/0"
        [[drain]]
        name = "ruby"
        kinds = ["resize"]
        queues = ["images"]
        to = "sidekiq+redis://cache/1"
        lossy = true
        ahead = 500
        batch = 50
        [drain.sidekiq.resize]
        class = "Images::ResizeJob"
        args = ["id", "width"]
        "#,
        "rowlock.toml",
    )
    .unwrap();
    let routes = config.routes().unwrap();
    let (plain, ruby) = (&routes[0], &routes[1]);
    assert_eq!(plain.name.as_str(), "redis");
    assert_eq!(plain.kinds[0].as_str(), "send_email");
    assert_eq!((plain.ahead, plain.batch), (Route::AHEAD, Route::BATCH));
    assert!(plain.reports_back() && !plain.lossy && plain.queues.is_empty());
    assert_eq!(ruby.name.as_str(), "ruby");
    assert_eq!(ruby.to, "sidekiq+redis://cache/1");
    assert_eq!(ruby.queues[0].as_str(), "images");
    assert_eq!((ruby.ahead, ruby.batch, ruby.lossy), (500, 50, true));
    let job = ruby.sidekiq.values().next().unwrap();
    assert_eq!(job.class, "Images::ResizeJob");
    let args: Vec<_> = job.args.iter().map(|arg| arg.as_str()).collect();
    assert_eq!(args, ["id", "width"]);
}

#[test]
fn a_drain_that_breaks_a_rule_is_named_with_the_remedy() {
    let drain = |rest: &str| refused(&format!("[[drain]]\nkinds = [\"a\"]\n{rest}"));
    let to = "to = \"redis://cache/0\"\n";
    let ruby = "to = \"sidekiq+redis://cache/0\"\n";
    for (text, word) in [
        (String::new(), "missing field `to`"),
        (
            "to = \"nats://ada:s3cret@cache\"".to_owned(),
            "\"nats\" is not a sink",
        ),
        (format!("{to}ahed = 5"), "did you mean `ahead`?"),
        (format!("{to}ahead = 0"), "route redis: ahead = 0"),
        (format!("{to}batch = 10001"), "from 1 to 10000"),
        (format!("{to}lossy = true"), "lossy is for a sink"),
        (format!("{to}name = \"direct\""), "give it another name"),
        (
            format!("{to}[drain.sidekiq.a]\nclass = \"A\""),
            "take it out",
        ),
        (ruby.to_owned(), "a has no Sidekiq class"),
        (
            format!("{ruby}[drain.sidekiq.a]\nclas = \"A\""),
            "did you mean `class`?",
        ),
        (
            format!("{ruby}[drain.sidekiq.a]\nclass = \" \""),
            "class of a is empty",
        ),
        (
            format!("{to}[[drain]]\n{to}queues = [\"q\"]"),
            "two [[drain]] called redis",
        ),
        (
            format!("{to}[[drain]]\n{to}kinds = [\"a\"]\nname = \"b\""),
            "kind a is drained twice",
        ),
    ] {
        let why = drain(&text);
        assert!(why.starts_with("rowlock.toml:"), "{why}");
        assert!(why.contains(word), "{text}: {why}");
        assert!(!why.contains("s3cret"), "{why}");
    }
    assert!(refused(&format!("[[drain]]\n{to}")).contains("neither kinds nor queues"));
    let emptied = Config::parse(&format!("[[drain]]\nkinds = []\n{to}"), "f").unwrap();
    assert!(emptied.routes().unwrap()[0].kinds.is_empty());
    let secret = format!(
        "{:?}",
        Config::parse("[[drain]]\nkinds = []\nto = \"redis://:s3cret@c\"", "f")
    );
    assert!(
        secret.contains("drain") && !secret.contains("s3cret"),
        "{secret}"
    );
}

#[test]
#[cfg(all(feature = "exec", feature = "http"))]
fn a_handler_has_exactly_one_thing_that_runs_it() {
    for (section, word) in [
        ("exec = [\"x\"]\nbuiltin = \"noop\"", "more than one of"),
        (
            "exec = [\"x\"]\nhttp = \"http://a/\"\nallow = [\"a\"]",
            "more than one of",
        ),
        ("exec = [\"x\"]\nallow = [\"a\"]", "allow is for http only"),
        ("exec = []", "exec is empty"),
        ("exec = [\"\"]", "exec is empty"),
        ("exec = [\"a\\u0000b\"]", "NUL"),
        (
            "exec = [\"x\"]\nenv = [\"A=B\"]",
            "can't be the name of a variable",
        ),
        ("builtin = \"echo\"\nenv = []", "env is for exec only"),
        ("http = \"http://a/\"", "write allow = [\"a\"]"),
        ("http = \"https://a/\"\nallow = [\"a\"]", "has no TLS yet"),
        (
            "http = \"http://a/\"\nallow = [\"a/b\"]",
            "is not a host name",
        ),
    ] {
        let why = refused(&format!("[handlers.mail]\n{section}"));
        assert!(why.starts_with("rowlock.toml: [handlers.mail]: "), "{why}");
        assert!(why.contains(word), "{section}: {why}");
    }
    let text = "[limits]\noutput_bytes = \"1KiB\"\n[handlers.a]\nexec = [\"x\"]\n\
                [handlers.b]\nhttp = \"http://127.0.0.1:9000/jobs\"\nallow = [\"127.0.0.1\"]";
    let config = Config::parse(text, "rowlock.toml").unwrap();
    assert_eq!(config.limits.output_bytes, 1024);
    let runners = config.runners().unwrap();
    assert!(matches!(runners[0].1, Runner::Exec(_)));
    assert!(matches!(runners[1].1, Runner::Http(_)));
    assert!(refused("[limits]\noutput_bytes = 0").contains("from 1 byte to 16MiB"));
}

/// Every key the file knows, with a value that is right for it.
const KNOWN: &[(&str, &str, &str)] = &[
    ("", "url", "\"sqlite:x.db\""),
    ("worker", "concurrency", "3"),
    ("worker", "lease", "\"10s\""),
    ("worker", "grace", "\"1m\""),
    ("worker", "poll", "\"1s\""),
    ("worker", "wait", "\"1m\""),
    ("queues.mail", "concurrency", "2"),
    ("queues.mail", "weight", "3"),
    ("retention", "completed", "\"1d\""),
    ("limits", "payload", "\"64KiB\""),
    ("limits", "errors_kept", "5"),
    ("limits", "output_bytes", "65536"),
    ("handlers.a", "builtin", "\"noop\""),
    ("handlers.a", "exec", "[\"x\"]"),
    ("handlers.a", "timeout", "\"1s\""),
    ("handlers.a", "queue", "\"mail\""),
    ("handlers.a", "priority", "-3"),
    ("handlers.a", "max_attempts", "3"),
    ("handlers.a", "key", "[\"to\"]"),
    ("handlers.a", "unique_until", "\"start\""),
];

fn file(section: &str, key: &str, value: &str) -> String {
    match section {
        "" => format!("{key} = {value}\n"),
        // Something has to run it.
        "handlers.a" if !["builtin", "exec"].contains(&key) => {
            format!("[{section}]\n{key} = {value}\nbuiltin = \"noop\"\n")
        }
        _ => format!("[{section}]\n{key} = {value}\n"),
    }
}

proptest! {
    #[test]
    fn no_text_is_too_strange_to_be_refused_with_its_file(text in "\\PC{0,60}(\n\\PC{0,20}){0,3}") {
        if let Err(why) = Config::parse(&text, "rowlock.toml") {
            prop_assert!(why.to_string().starts_with("rowlock.toml"), "{}", why);
        }
    }

    #[test]
    fn a_misspelt_key_is_refused_by_its_name_and_line(
        (section, key, value) in prop::sample::select(KNOWN),
        at in any::<prop::sample::Index>(),
    ) {
        prop_assert!(Config::parse(&file(section, key, value), "f").is_ok());
        let mut wrong = key.to_owned();
        wrong.remove(at.index(key.len()));
        prop_assume!(!wrong.is_empty() && !wrong.starts_with('_'));
        let why = Config::parse(&file(section, &wrong, value), "f").unwrap_err().to_string();
        let line = if section.is_empty() { 1 } else { 2 };
        let start = format!("f:{line}: unknown key `{wrong}`: did you mean `");
        prop_assert!(why.starts_with(&start), "{}", why);
    }

    #[test]
    fn a_value_of_the_wrong_type_is_refused_with_its_line(
        (section, key, _) in prop::sample::select(KNOWN),
        value in prop::sample::select(vec!["true", "1.5", "{ a = 1 }", "[[1]]", "\"\"", "-1000000"]),
    ) {
        let why = Config::parse(&file(section, key, value), "f");
        prop_assume!(!(key == "url" && value == "\"\""));
        prop_assert!(why.is_err(), "{} = {}", key, value);
        prop_assert!(why.unwrap_err().to_string().starts_with("f"));
    }
}
