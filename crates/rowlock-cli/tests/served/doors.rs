//! Who is let in, and what keeps other sites' pages out.

use rowlock_testbed::Process;

use super::{Ask, Home, OPERATOR, READER, Served, furnish, ok};

/// A change, as a page of ours would ask for it.
fn change() -> Ask {
    Ask::new("POST", "/queues/default/pause").json("{}")
}

/// What no check may let through, and the safeguard that stops it.
fn forbidden() -> Vec<(&'static str, u16, Ask)> {
    let plain = |kind: &str| Ask::new("POST", "/queues/default/pause").with("Content-Type", kind);
    vec![
        (
            "web.host",
            403,
            Ask::new("GET", "/stats").with("Host", "evil.example"),
        ),
        (
            "web.host",
            403,
            change().with("Host", "127.0.0.1.evil.example:7878"),
        ),
        (
            "web.origin",
            403,
            change().with("Origin", "http://evil.example"),
        ),
        ("web.origin", 403, change().with("Origin", "null")),
        (
            "web.fetch_site",
            403,
            change().with("Sec-Fetch-Site", "cross-site"),
        ),
        (
            "web.fetch_site",
            403,
            change().with("Sec-Fetch-Site", "same-site"),
        ),
        ("web.content_type", 415, plain("text/plain")),
        (
            "web.content_type",
            415,
            plain("application/x-www-form-urlencoded"),
        ),
        (
            "web.content_type",
            415,
            Ask::new("POST", "/queues/default/pause"),
        ),
    ]
}

pub fn foreign_names_and_other_sites_are_refused(home: &dyn Home) {
    furnish(home);
    let served = Served::open(home);
    let before = ok(home, &["switch", "list", "--json"]);
    for (safeguard, status, ask) in forbidden() {
        let answer = served.ask(&ask);
        assert_eq!(answer.status, status, "{safeguard} {ask:?} {answer:?}");
        answer.code();
    }
    let gone = Ask::new("DELETE", "/jobs/1").with("Origin", "http://evil.example");
    assert_eq!(served.ask(&gone).status, 403);
    assert_eq!(ok(home, &["switch", "list", "--json"]), before);
    let own = format!("http://{}", served.address);
    let ours = change()
        .with("Origin", &own)
        .with("Sec-Fetch-Site", "same-origin");
    served.ask(&ours).ok();
    let port = served.address.rsplit_once(':').unwrap().1;
    let by_name = Ask::new("GET", "/stats").with("Host", &format!("localhost:{port}"));
    served.ask(&by_name).ok();
}

/// A safeguard that nobody would miss is none. Each is taken out of a process of its own.
pub fn each_safeguard_that_is_taken_out_is_missed(home: &dyn Home) {
    if !cfg!(feature = "test-hooks") {
        return;
    }
    furnish(home);
    let file = rowlock_testbed::folder();
    let without = |safeguard: &str, command: &mut std::process::Command| {
        let path = file.path().join(safeguard);
        let text = format!("about = \"x\"\ncaught_by = []\nswitch = \"{safeguard}\"\n");
        std::fs::write(&path, text).unwrap();
        command.env("ROWLOCK_MUTANT", path);
    };
    let open = |safeguard: &str| {
        let mut command = home.command(&["dashboard", "--bind", "127.0.0.1:0"]);
        without(safeguard, &mut command);
        Served::of(&mut command)
    };
    let all = forbidden();
    for safeguard in [
        "web.host",
        "web.origin",
        "web.fetch_site",
        "web.content_type",
    ] {
        let served = open(safeguard);
        for (by, status, ask) in &all {
            let answer = served.ask(ask);
            assert_eq!(
                answer.status != *status,
                *by == safeguard,
                "{safeguard} {ask:?} {answer:?}"
            );
        }
    }
    for (safeguard, args, token, status) in [
        ("web.token", &[][..], "wrong", 401),
        ("web.role", &[], READER, 403),
        ("web.read_only", &["--read-only"], OPERATOR, 403),
    ] {
        let args = [&["dashboard", "--bind", "127.0.0.1:0"], args].concat();
        for out in [false, true] {
            let mut command = home.command(&args);
            command.env("ROWLOCK_DASHBOARD_TOKEN", OPERATOR);
            command.env("ROWLOCK_DASHBOARD_READER_TOKEN", READER);
            if out {
                without(safeguard, &mut command);
            }
            let answer = Served::of(&mut command).ask(&change().bearer(token));
            assert_eq!(answer.status == status, !out, "{safeguard} {answer:?}");
        }
    }
    assert!(!super::kept::is_counted_at_once(&open("web.kept")));
    let (_folder, mut command) = super::verbs::slow(home);
    without("web.rate", &mut command);
    let answers = super::verbs::hurry(&Served::of(&mut command));
    assert!(answers.iter().all(|each| each.status == 201), "{answers:?}");
    let mut command = home.command(&["dashboard", "--bind", "0.0.0.0:0"]);
    without("web.bind", &mut command);
    Served::of(&mut command).end();
}

pub fn a_port_that_strangers_could_reach_needs_a_token(home: &dyn Home) {
    ok(home, &["migrate", "up"]);
    for args in [
        ["dashboard", "--bind", "0.0.0.0:0"],
        ["dev", "--listen", "[::]:0"],
    ] {
        let refused = Process::run(&mut home.command(&args), "");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        for remedy in ["ROWLOCK_DASHBOARD_TOKEN", "token_file", "127.0.0.1"] {
            assert!(refused.stderr.contains(remedy), "{refused:?}");
        }
        let mut short = home.command(&args);
        short.env("ROWLOCK_DASHBOARD_TOKEN", "c4nary");
        let refused = Process::run(&mut short, "");
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(!refused.stderr.contains("c4nary"), "{refused:?}");
        assert!(refused.stderr.contains("too short"), "{refused:?}");
    }
    let mut command = home.command(&["dashboard", "--bind", "0.0.0.0:0"]);
    let mut served = Served::of(command.env("ROWLOCK_DASHBOARD_TOKEN", OPERATOR));
    served.address = served.address.replace("0.0.0.0", "127.0.0.1");
    assert_eq!(served.get("/stats").status, 401);
    let ask = Ask::new("GET", "/stats").bearer(OPERATOR);
    assert_eq!(served.ask(&ask).status, 200);
    let foreign = ask.with("Host", "jobs.example.com");
    assert_eq!(served.ask(&foreign).status, 403);
}

pub fn every_answer_forbids_a_browser_to_do_anything_with_it(home: &dyn Home) {
    ok(home, &["migrate", "up"]);
    let served = Served::open(home);
    let foreign = Ask::new("GET", "/stats").with("Host", "evil.example");
    for ask in [
        Ask::new("GET", "/stats"),
        Ask::new("GET", "/nowhere"),
        Ask::new("PATCH", "/jobs"),
        foreign,
    ] {
        let answer = served.ask(&ask);
        for header in [
            "content-security-policy: default-src 'none'",
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
        ] {
            assert!(answer.head.contains(header), "{header}: {answer:?}");
        }
        assert!(!answer.head.contains("access-control-allow"), "{answer:?}");
    }
    assert_eq!(served.ask(&Ask::new("PATCH", "/jobs")).status, 405);
    assert!(
        served
            .ask(&Ask::new("PATCH", "/jobs"))
            .head
            .contains("allow: get, post")
    );
    for path in ["//livez", "//readyz", "//metrics"] {
        assert_eq!(served.ask(&Ask::new("GET", path)).status, 200, "{path}");
    }
    served.end();
}
