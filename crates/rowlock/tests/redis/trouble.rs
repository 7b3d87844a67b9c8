//! What Redis refuses, and what is said about it.

use rowlock::claim::WorkerId;
use rowlock::drain::Sink;
use rowlock::drain::sinks::redis::{Address, Worry, examine};
use rowlock::engine::Dispatch;
use rowlock::error::Error;
use rowlock::settle::{Settled, Verdict};
use rowlock_testbed::Redis;

use super::stand::{LONG, SOON, STORE, Stand, redis, sink};

/// What a drain and a worker hear.
async fn heard(url: &str) -> [Error; 2] {
    let drain = sink(url).open(STORE).await.unwrap_err();
    let worker = WorkerId::random("test").unwrap();
    let worker = redis(url).join(&worker, LONG).await.unwrap_err();
    [drain, worker]
}

pub async fn a_foreign_key_is_refused_with_the_remedy(stand: Stand) {
    stand.server.command(&["FLUSHALL"]);
    stand.server.command(&["LPUSH", &stand.key("owner"), "x"]);
    stand.server.command(&["SET", &stand.key("workers"), "x"]);
    for why in heard(&stand.server.url()).await {
        assert!(
            matches!(&why, Error::Schema(why) if why.contains("?prefix=")),
            "{why:?}"
        );
    }
}

pub async fn a_wrong_password_is_refused_and_not_shown(stand: Stand) {
    stand
        .server
        .command(&["CONFIG", "SET", "requirepass", "right"]);
    for user in ["", ":secret@", "somebody:secret@"] {
        let url = stand.server.url().replace("://", &format!("://{user}"));
        for why in heard(&url).await {
            assert!(
                matches!(&why, Error::Unreachable(why) if why.contains("USER:PASSWORD")),
                "{why:?}"
            );
            assert!(!format!("{why:?}").contains("secret"), "{why:?}");
        }
    }
    let url = stand.server.url().replace("://", "://:right@");
    assert!(!sink(&url).open(STORE).await.unwrap());
}

pub async fn missing_rights_are_named(stand: Stand) {
    let rights = [
        "ACL", "SETUSER", "weak", "on", ">secret", "+@all", "~other:*", "&*",
    ];
    stand.server.command(&rights);
    let url = stand.server.url().replace("://", "://weak:secret@");
    for why in heard(&url).await {
        assert!(
            matches!(&why, Error::Unreachable(why) if why.contains("rowlock:{jobs}*")),
            "{why:?}"
        );
    }
    // Those that are asked for are enough.
    let rights = [
        "resetkeys",
        "~rowlock:{jobs}*",
        "resetchannels",
        "&rowlock:{jobs}*",
        "-@admin",
    ];
    stand
        .server
        .command(&[&["ACL", "SETUSER", "weak"], &rights[..]].concat());
    assert!(!sink(&url).open(STORE).await.unwrap());
    let worker = redis(&url);
    let mut wakeups = worker.wakeups();
    // It rings once when it begins to listen, and then for what is pushed.
    wakeups.next().await;
    stand.push(&stand.jobs("mail", 1)).await;
    wakeups.next().await;
}

pub async fn a_cluster_without_its_slots_is_waited_for(_: Stand) {
    let server = Redis::start_with(&["--cluster-enabled", "yes"]);
    for why in heard(&server.url()).await {
        assert!(
            matches!(&why, Error::Unavailable(why) if why.contains("cluster")),
            "{why:?}"
        );
    }
}

pub async fn a_node_without_the_slot_names_the_one_that_has_it(_: Stand) {
    let [one, other] = [(); 2].map(|()| Redis::start_with(&["--cluster-enabled", "yes"]));
    // One by one: a range is new in 7.0.
    let slots: Vec<String> = (0..16_384).map(|slot| slot.to_string()).collect();
    let slots = slots.iter().map(String::as_str);
    one.command(
        &["CLUSTER", "ADDSLOTS"]
            .into_iter()
            .chain(slots)
            .collect::<Vec<_>>(),
    );
    other.command(&["CLUSTER", "MEET", "127.0.0.1", &one.port().to_string()]);
    for node in [&one, &other] {
        rowlock_testbed::until("the cluster is up", || {
            let said = node.command(&["CLUSTER", "INFO"]);
            said.contains("cluster_state:ok").then_some(())
        });
    }
    for why in heard(&other.url()).await {
        let named = one.port().to_string();
        assert!(
            matches!(&why, Error::Unreachable(why) if why.contains(&named)),
            "{why:?}"
        );
    }
    // All keys have the same slot: a node that has it is enough.
    let stand = Stand::on(one).await;
    stand.push(&stand.jobs("mail", 2)).await;
    let worker = stand.join().await;
    let taken = stand.take(&worker, &["mail"], 2).await;
    assert_eq!(
        stand.settle(&taken[0], Verdict::Done).await,
        Settled::Accepted
    );
    assert_eq!(stand.reports().await.len(), 1);
}

pub async fn a_full_redis_takes_no_jobs_and_can_be_emptied(stand: Stand) {
    let jobs = stand.jobs("mail", 100);
    stand.push(&jobs).await;
    let worker = stand.join().await;
    let early = stand.take(&worker, &["mail"], 1).await;
    stand.server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let more = stand.jobs("mail", 1);
    let full = stand.sink.push(&more, SOON).await;
    assert!(
        matches!(&full, Err(Error::Unavailable(why)) if why.contains("maxmemory")),
        "{full:?}"
    );
    assert_eq!(stand.hold(&more[0]).await, rowlock::drain::Hold::Gone);
    // Workers go on, also new ones: that makes room.
    assert_eq!(
        stand.settle(&early[0], Verdict::Release).await,
        Settled::Accepted
    );
    let other = stand.join().await;
    let taken = stand.take(&other, &["mail"], 100).await;
    assert_eq!(taken.len(), 100);
    let beat = stand.redis.heartbeat(&other, vec![taken[0].token]).await;
    assert_eq!(beat.unwrap().released, 0);
    for job in &taken {
        assert_eq!(stand.settle(job, Verdict::Done).await, Settled::Accepted);
    }
    assert_eq!(stand.reports().await.len(), 100);
}

pub async fn a_replica_is_refused_with_the_remedy(stand: Stand) {
    let port = stand.server.port().to_string();
    let replica = Redis::start_with(&["--replicaof", "127.0.0.1", &port]);
    rowlock_testbed::until("the replica follows", || {
        let said = replica.command(&["INFO", "replication"]);
        said.contains("master_link_status:up").then_some(())
    });
    stand.server.command(&["DEL", &stand.key("owner")]);
    rowlock_testbed::until("the replica has it", || {
        (replica.command(&["EXISTS", &stand.key("owner")]) == "0").then_some(())
    });
    for why in heard(&replica.url()).await {
        assert!(
            matches!(&why, Error::Unreachable(why) if why.contains("primary")),
            "{why:?}"
        );
    }
}

pub async fn an_examination_names_each_concern_and_its_remedy(stand: Stand) {
    let address = Address::parse(&stand.server.url()).unwrap();
    let found = examine(&address).await.unwrap();
    assert!(found.version.contains('.'), "{found:?}");
    let worries = |found: &[rowlock::drain::sinks::redis::Concern]| -> Vec<Worry> {
        found.iter().map(|concern| concern.worry).collect()
    };
    assert_eq!(worries(&found.concerns), [Worry::NoPersistence]);
    stand
        .server
        .command(&["CONFIG", "SET", "appendonly", "yes"]);
    assert_eq!(worries(&examine(&address).await.unwrap().concerns), []);
    let used = examine(&address).await.unwrap().used_memory;
    let limit = (used + used / 20).to_string();
    stand
        .server
        .command(&["CONFIG", "SET", "maxmemory", &limit]);
    stand
        .server
        .command(&["CONFIG", "SET", "maxmemory-policy", "allkeys-lru"]);
    stand.server.command(&["SET", &stand.key("held"), "x"]);
    stand.server.command(&["SET", &stand.key("something"), "x"]);
    let found = examine(&address).await.unwrap();
    assert_eq!(
        worries(&found.concerns),
        [Worry::Evicts, Worry::AlmostFull, Worry::ForeignKeys]
    );
    let foreign = &found.concerns[2];
    for key in ["held", "something"] {
        assert!(foreign.what.contains(&stand.key(key)), "{foreign:?}");
    }
    assert!(
        found
            .concerns
            .iter()
            .all(|concern| !concern.remedy.is_empty())
    );
}
