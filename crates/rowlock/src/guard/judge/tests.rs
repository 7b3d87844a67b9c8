use super::super::pin::entering;
use super::*;

const MINUTE: Duration = Duration::from_secs(60);

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn session(application: &str, age: Duration) -> Pin {
    Pin {
        pid: Some(7),
        application: Some(application.to_owned()),
        query: Some("select 1".to_owned()),
        backend: Some("client backend".to_owned()),
        age: Some(age),
        ..Pin::default()
    }
}

fn class(application: &str, max: u32) -> Class {
    let rule = super::super::Rule {
        application_name: Some(application.to_owned()),
        ..Default::default()
    };
    Class::with(name(application), max, rule).unwrap()
}

fn judged(pins: Vec<Pin>, classes: &[Class]) -> Vec<Judged> {
    judge(pins, classes, &Policy::default())
}

#[test]
fn only_what_is_too_old_is_due() {
    let found = judged(
        vec![session("a", 4 * MINUTE), session("b", 5 * MINUTE)],
        &[],
    );
    let due: Vec<_> = found.iter().map(|each| each.due).collect();
    assert_eq!(due, [Some(Due::Age), None]);
}

#[test]
fn the_youngest_beyond_the_budget_are_due() {
    let pins = vec![
        session("bi", Duration::from_secs(1)),
        session("bi", Duration::from_secs(3)),
        session("bi", Duration::from_secs(2)),
        session("other", Duration::from_secs(1)),
    ];
    let found = judged(pins, &[class("bi", 2)]);
    let due: Vec<_> = found.iter().filter(|each| each.due.is_some()).collect();
    assert_eq!(due.len(), 1);
    assert_eq!(due[0].due, Some(Due::Max));
    assert_eq!(due[0].pin.age, Some(Duration::from_secs(1)));
    assert_eq!(due[0].class, Some(name("bi")));
}

#[test]
fn whoever_asks_for_a_place_does_not_count() {
    let asking = Pin {
        query: Some(entering().replace("rowlock", "jobs")),
        ..session("bi", Duration::ZERO)
    };
    let due = |asking: &Pin| {
        let found = judged(
            vec![session("bi", MINUTE), asking.clone()],
            &[class("bi", 1)],
        );
        found.iter().any(|each| each.due.is_some())
    };
    assert!(!due(&asking));
    for words in [
        "/* budget_enter( */ select 1".to_owned(),
        format!("select 1 -- {}", entering()),
        entering().replace("rowlock", "orders /* x"),
    ] {
        let evading = Pin {
            query: Some(words.clone()),
            ..asking.clone()
        };
        assert!(due(&evading), "{words}");
    }
    // Whoever asks and then goes on without a place runs.
    let idle = Pin {
        age: Some(Duration::from_secs(6)),
        ..asking
    };
    assert!(due(&idle));
}

#[test]
fn our_own_sessions_are_spared() {
    let known = Pin {
        ours: true,
        ..session("shop", 10 * MINUTE)
    };
    let worker = Pin {
        changes_jobs: true,
        ..session("rowlock", 10 * MINUTE)
    };
    let found = judged(vec![worker, known], &[]);
    assert!(found.iter().all(|each| each.spared == Some(Spared::Ours)));
    let only_named = judged(vec![session("rowlock", 10 * MINUTE)], &[]);
    assert_eq!(only_named[0].spared, None);
}

#[test]
fn maintenance_is_spared_unless_it_is_included() {
    let of = |application: &str, query: &str, superuser| Pin {
        query: Some(query.to_owned()),
        superuser,
        ..session(application, 10 * MINUTE)
    };
    let autovacuum = Pin {
        backend: Some("autovacuum worker".to_owned()),
        ..session("", 10 * MINUTE)
    };
    let include = Policy {
        include_superusers: true,
        ..Policy::default()
    };
    for pin in [
        of("psql", "VACUUM FULL t", true),
        of(
            "psql",
            "-- nightly\n/* x */ create unique  index i on t (a)",
            true,
        ),
        of("pg_dump", "COPY public.t TO stdout;", true),
        of("psql", "VACUUM (ANALYZE) t", false),
        of(
            "psql",
            "/* nightly */ REINDEX TABLE CONCURRENTLY t; -- done",
            false,
        ),
        of("flyway", "CREATE INDEX CONCURRENTLY i ON t (a)", false),
        autovacuum,
    ] {
        let found = judged(vec![pin.clone()], &[]);
        assert_eq!(found[0].spared, Some(Spared::Maintenance), "{found:?}");
        let found = judge(vec![pin], &[], &include);
        assert_eq!(found[0].spared, None, "{found:?}");
    }
    for pin in [
        of("pg_dump", "COPY public.t TO stdout;", false),
        of("psql", "alter table t add a integer", false),
        of(
            "psql",
            "create index i on t (a); select pg_sleep(600)",
            false,
        ),
        Pin {
            state: Some("idle in transaction".to_owned()),
            ..of("psql", "CREATE INDEX i ON t (a)", false)
        },
        of("psql", "select 'vacuum'", true),
        of("psql", "create table index (a int)", true),
    ] {
        assert_eq!(judged(vec![pin.clone()], &[])[0].spared, None, "{pin:?}");
    }
}

#[test]
fn what_can_not_be_seen_is_not_touched() {
    let hidden = Pin {
        backend: None,
        age: None,
        ..session("web", MINUTE)
    };
    assert_eq!(judged(vec![hidden], &[])[0].spared, Some(Spared::Hidden));
}

#[test]
fn what_is_no_session_is_left_to_people() {
    for what in [What::Prepared, What::Slot, What::Standby] {
        let pin = Pin {
            what,
            age: Some(10 * MINUTE),
            ..Pin::default()
        };
        let found = judged(vec![pin], &[]);
        assert_eq!(found[0].spared, Some(Spared::ByHand));
    }
}

#[test]
fn a_policy_for_one_class_leaves_out_the_others() {
    let pins = vec![session("bi", MINUTE), session("web", MINUTE)];
    let policy = Policy {
        class: Some(name("bi")),
        ..Policy::default()
    };
    let found = judge(pins, &[class("bi", 1), class("web", 1)], &policy);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].class, Some(name("bi")));
}
