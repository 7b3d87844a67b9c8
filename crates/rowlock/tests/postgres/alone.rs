//! A job that is staged alone goes another way than one among others: it is stored the same.

use rowlock::clock::Clock;
use rowlock::engine::postgres::{Address, Schema, migrate_up, part_sql};
use rowlock::switch::{Mode, Setting, Target};
use rowlock::{JobId, Kind, NewJob, Payload, Status};

use super::home::wait;
use super::small::Small;
use crate::conformance::world::{Home, Site, job, name};

fn kind(of: &str) -> Kind {
    let mut kind = Kind::new(of).unwrap();
    (kind.queue, kind.priority, kind.max_attempts) = (name("post"), 3, 7);
    kind
}

fn with(payload: &str) -> NewJob {
    job("letter").payload(Payload::parse(payload).unwrap())
}

/// All but its number and its times.
fn same_row(small: &Small, one: JobId, other: JobId) -> bool {
    let row = |id: JobId| {
        format!(
            "SELECT to_jsonb(job) - ARRAY['id', 'ready_at', 'scheduled_at', 'created_at'] \
             || jsonb_build_object('due', scheduled_at = created_at) FROM rowlock.job WHERE id = {id}"
        )
    };
    let same = format!("SELECT (({}) = ({}))::integer", row(one), row(other));
    small.number(&same) == 1
}

async fn with_letters(small: &Small) -> Site {
    let site = small.open(&Clock::system());
    let kinds = [kind("letter")];
    site.rowlock.operate().apply(&kinds).await.unwrap();
    site
}

async fn alone(site: &Site, job: &NewJob) -> (Option<JobId>, Status) {
    let answer = site.rowlock.enqueue(job).await.unwrap();
    (answer.id, answer.status)
}

pub async fn a_job_alone_is_stored_like_one_among_others(small: Small) {
    let site = with_letters(&small).await;
    let long = format!("{{\"text\":\"{}\"}}", "a, \\\"b\\\" {c} ".repeat(100));
    let jobs = [
        job("letter"),
        job("stranger"),
        with("{}"),
        with(r#"{"a":"quoted \"b\", back\\slash, {braces}, NULL, \u00e9 ü 日本"}"#),
        with(r#"["NULL", null, "", "a,b"]"#),
        with(&long),
        job("letter").queue(name("other")).priority(i16::MIN),
        job("letter").priority(i16::MAX).max_attempts(1).unwrap(),
        job("letter")
            .trace_context("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
            .unwrap(),
    ];
    for job in jobs {
        // The first of its lane goes the long way, the second needn't.
        let first = alone(&site, &job).await.0.unwrap();
        let second = alone(&site, &job).await.0.unwrap();
        let many = async |jobs: Vec<NewJob>| {
            let answers = site.rowlock.enqueue_many(jobs).await.unwrap();
            answers.into_iter().map(|one| one.id.unwrap())
        };
        // Jobs that are alike go by a third way, the others by the first.
        let alike = many(vec![job.clone(), job.clone()]).await;
        let others = many(vec![job.clone(), with("[1]").tag(name("other"))])
            .await
            .take(1);
        for other in alike.chain(others).chain([first]) {
            assert!(same_row(&small, second, other), "{job:?}");
        }
    }
}

pub async fn what_speaks_against_a_job_is_seen_when_it_comes_alone(small: Small) {
    let site = small.open(&Clock::system());
    let mut keyed = kind("keyed");
    keyed.key = vec![name("to")];
    let kinds = [kind("letter"), keyed];
    site.rowlock.operate().apply(&kinds).await.unwrap();
    let schedule = site.rowlock.schedule();
    let set = async |target: Target, of: &str, mode: Option<Mode>| {
        let setting = mode.map(Setting::new);
        schedule.switch(target, &name(of), setting).await.unwrap();
    };
    let elsewhere = job("letter").queue(name("side"));
    let closed = [
        (Target::Kind, "letter", job("letter")),
        (Target::Queue, "post", job("letter")),
        (Target::Queue, "side", elsewhere),
    ];
    for (target, of, job) in closed {
        let both = async || {
            let alike = vec![job.clone(), job.clone()];
            let alike = site.rowlock.enqueue_many(alike).await.unwrap();
            (alone(&site, &job).await.1, alike[1].status)
        };
        both().await;
        set(target, of, Some(Mode::Reject)).await;
        assert_eq!(both().await, (Status::Rejected, Status::Rejected));
        set(target, of, Some(Mode::Hold)).await;
        assert_eq!(both().await, (Status::Held, Status::Held));
        set(target, of, None).await;
        assert_eq!(both().await, (Status::Queued, Status::Queued));
    }
    let to_ada = job("keyed").payload(Payload::parse(r#"{"to":"ada"}"#).unwrap());
    let (holder, status) = alone(&site, &to_ada).await;
    assert_eq!(status, Status::Queued);
    assert_eq!(alone(&site, &to_ada).await, (holder, Status::Duplicate));
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(128), "]".repeat(128));
    let by_sql =
        format!("SELECT rowlock.stage_plain('letter', '{deep}', NULL, NULL, NULL, NULL, NULL)");
    let refused = small.side.execute(&by_sql).unwrap_err();
    assert!(refused.contains("deeper than 128"), "{refused}");
    let by_sql = |parts: &str| format!("SELECT rowlock.stage_plain('letter', {parts}, NULL, NULL)");
    let out_of_range = small
        .side
        .query(&by_sql("NULL, NULL, 40000, NULL"))
        .unwrap_err();
    assert!(out_of_range.contains("priority must be"), "{out_of_range}");
    let answer = small.side.value(&by_sql("NULL, NULL, NULL, NULL"));
    assert_eq!(answer.parse::<i64>().unwrap() % 4, 0, "it is queued");
    let nested = "SELECT * FROM rowlock.enqueue('letter', tags => ARRAY[['a'], ['b']])";
    let refused = small.side.execute(nested).unwrap_err();
    assert!(refused.contains("a tag is not a valid name"), "{refused}");
}

pub async fn jobs_that_are_alike_are_answered_in_their_order_and_refused_together(small: Small) {
    let site = with_letters(&small).await;
    let jobs: Vec<NewJob> = (0..500).map(|n| with(&format!("[{n}]"))).collect();
    let answers = site.rowlock.enqueue_many(jobs).await.unwrap();
    for (n, answer) in answers.iter().enumerate() {
        let stored = site.job(answer.id.unwrap()).await;
        assert_eq!(stored.payload.as_str(), format!("[{n}]"));
    }
    let deep = format!("{}{}", "[".repeat(129), "]".repeat(129));
    let by_sql =
        format!("SELECT rowlock.stage_alike('{{letter,NULL,NULL,NULL,NULL,NULL,[],\"{deep}\"}}')");
    let refused = small.side.execute(&by_sql).unwrap_err();
    assert!(refused.contains("deeper than 128"), "{refused}");
    assert_eq!(small.number("SELECT count(*) FROM rowlock.job"), 500);
}

pub async fn a_kind_that_moves_to_a_closed_queue_is_seen_by_the_next_job(small: Small) {
    let site = with_letters(&small).await;
    assert_eq!(alone(&site, &job("letter")).await.1, Status::Queued);
    let (schedule, closed) = (site.rowlock.schedule(), name("closed"));
    let setting = Some(Setting::new(Mode::Reject));
    schedule
        .switch(Target::Queue, &closed, setting)
        .await
        .unwrap();
    // As an older program writes kinds.
    let moved = "UPDATE rowlock.kind SET queue = 'closed' WHERE kind = 'letter'";
    small.side.execute(moved).unwrap();
    assert_eq!(alone(&site, &job("letter")).await.1, Status::Rejected);
}

pub async fn a_queue_that_is_being_switched_makes_no_kind_plain(small: Small) {
    let site = with_letters(&small).await;
    small
        .side
        .execute("UPDATE rowlock.kind SET plain = false")
        .unwrap();
    let operator = small.own.session();
    let switched =
        "BEGIN; SELECT rowlock.set_switch('queue', 'post', 'reject', 'closed', 'ada', NULL)";
    operator.execute(switched).unwrap();
    small.side.execute("SELECT rowlock.note_plain()").unwrap();
    operator.execute("COMMIT").unwrap();
    assert_eq!(alone(&site, &job("letter")).await.1, Status::Rejected);
}

pub async fn a_kind_that_is_moving_to_a_closed_queue_is_not_made_plain(small: Small) {
    let site = small.open(&Clock::system());
    let kinds = [kind("letter"), kind("other")];
    site.rowlock.operate().apply(&kinds).await.unwrap();
    let closed = "UPDATE rowlock.kind SET plain = false;
        INSERT INTO rowlock.queue (queue, switch) VALUES ('closed', 'reject')";
    small.side.execute(closed).unwrap();
    let operator = small.own.session();
    let moving = "BEGIN; UPDATE rowlock.kind SET queue = 'closed' WHERE kind = 'letter'";
    operator.execute(moving).unwrap();
    // It waits for nobody, and leaves that one alone.
    let noted = "SET lock_timeout = '1ms'; SELECT rowlock.note_plain()";
    small.side.execute(noted).unwrap();
    operator.execute("COMMIT").unwrap();
    assert_eq!(alone(&site, &job("letter")).await.1, Status::Rejected);
    let plain = "SELECT count(*) FROM rowlock.kind WHERE plain";
    assert_eq!(small.number(plain), 1, "the other one");
}

pub async fn a_switch_with_an_older_snapshot_is_refused(small: Small) {
    with_letters(&small).await;
    small
        .side
        .execute("UPDATE rowlock.kind SET plain = false")
        .unwrap();
    let operator = small.own.session();
    operator
        .execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1")
        .unwrap();
    small.side.execute("SELECT rowlock.note_plain()").unwrap();
    let switched = "INSERT INTO rowlock.queue (queue, switch) VALUES ('post', 'reject')";
    let refused = operator.execute(switched).unwrap_err();
    assert!(refused.contains("READ COMMITTED"), "{refused}");
}

pub async fn a_trigger_that_was_switched_off_is_found_and_mended(small: Small) {
    let site = small.open(&Clock::system());
    let off = "ALTER TABLE rowlock.queue DISABLE TRIGGER queue_switched";
    small.side.execute(off).unwrap();
    let drift = async || site.rowlock.operate().health().await.unwrap().drift;
    let found = drift().await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("trigger queue_switched"), "{found:?}");
    let mended = part_sql(&Schema::default(), "trigger queue_switched").unwrap();
    small.side.execute(&mended).unwrap();
    assert_eq!(drift().await, Vec::<String>::new());
}

/// Functions that a program of the schema before calls.
const OLDER: [&str; 4] = [
    include_str!("older/bring_back.sql"),
    include_str!("older/claim_from.sql"),
    include_str!("older/claim.sql"),
    include_str!("older/stage_plain.sql"),
];

pub async fn programs_of_the_schema_before_go_on_after_the_migration(small: Small) {
    let before = "DROP TRIGGER queue_switched ON rowlock.queue; DROP TRIGGER kind_changed ON rowlock.kind;
        DROP FUNCTION rowlock.queue_switched, rowlock.kind_changed, rowlock.note_plain, rowlock.claim_in_levels,
            rowlock.claim_0, rowlock.claim_1, rowlock.claim_2, rowlock.claim_3, rowlock.stage_plain;
        DROP INDEX rowlock.key_holder;
        DROP SEQUENCE rowlock.store_seed, rowlock.asleep, rowlock.heard;
        ALTER TABLE rowlock.worker DROP COLUMN doubted_seen, DROP COLUMN doubted_at;
        ALTER TABLE rowlock.kind DROP COLUMN plain;
        DELETE FROM rowlock.migration WHERE version > 4; DELETE FROM rowlock.schema_part";
    small.side.execute(before).unwrap();
    for text in OLDER {
        for segment in 0..if text.contains("{s}") { 4 } else { 1 } {
            let text = text.replace("{s}", &segment.to_string());
            small.side.execute(&text).unwrap();
        }
    }
    let address = Address::parse(&small.own.url()).unwrap();
    assert_eq!(wait(migrate_up(&address)).unwrap(), [5, 6, 7, 8]);
    let site = with_letters(&small).await;
    site.join().await;
    let older = "SELECT rowlock.stage_plain('{letter,\"[7]\",NULL,NULL,NULL,NULL,NULL}') / 4";
    let staged = small.side.value(older);
    let claim = "SELECT c.id || c.kind || c.queue || c.payload || c.max_attempts || c.timeout_ms
        FROM rowlock.worker AS w, rowlock.claim(w.number, 7, 10, '{letter}', '{}', 'fair',
        '{}', '{}', '{}', '{}', 0, true, true, 0, '-infinity', '{}', '{}', '{}', '{}', '{}') AS c
        WHERE c.id IS NOT NULL";
    assert_eq!(
        small.side.value(claim),
        format!("{staged}letterpost[7]7900000")
    );
}

pub async fn a_prepared_enqueue_stores_what_any_other_does(small: Small) {
    let site = small.open(&Clock::system());
    let mut keyed = kind("keyed");
    keyed.key = vec![name("to")];
    let kinds = [kind("letter"), keyed];
    site.rowlock.operate().apply(&kinds).await.unwrap();
    let to_ada = job("keyed").payload(Payload::parse(r#"{"to":"ada"}"#).unwrap());
    let jobs = [job("letter"), job("letter").priority(3), to_ada.clone()];
    let mut others = Vec::new();
    for job in &jobs {
        others.push(alone(&site, job).await.0.unwrap());
    }
    let staged = wait(async {
        let url = small.own.url();
        let connecting = tokio_postgres::connect(&url, tokio_postgres::NoTls);
        let (mut client, connection) = connecting.await.unwrap();
        let connection = tokio::runtime::Handle::current().spawn(connection);
        let prepared = Schema::default().prepare(&client).await.unwrap();
        let mut staged = Vec::new();
        for job in &jobs {
            let answer = rowlock::enqueue(prepared.on(&client), job).await;
            staged.push(answer.unwrap());
        }
        let transaction = client.transaction().await.unwrap();
        let undone = rowlock::enqueue(prepared.on(&transaction), &jobs[0]).await;
        assert_eq!(undone.unwrap().status, Status::Queued);
        transaction.rollback().await.unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
        staged
    });
    for ((answer, other), job) in staged.iter().zip(others).zip(&jobs) {
        match *job == to_ada {
            true => assert_eq!((answer.id, answer.status), (Some(other), Status::Duplicate)),
            false => assert!(same_row(&small, other, answer.id.unwrap()), "{job:?}"),
        }
    }
    assert_eq!(small.number("SELECT count(*) FROM rowlock.job"), 5);
}
