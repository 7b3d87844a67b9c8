//! Ended jobs, in pieces of a day.

use std::time::Duration;

use rowlock::Kind;

use super::small::{Small, drain_all};

const DAY: Duration = Duration::from_secs(24 * 3600);

pub async fn a_day_goes_as_a_whole_and_a_reader_keeps_only_his_own(small: Small) {
    let world = small.world();
    let site = small.open(&world.clock);
    let worker = site.join().await;
    let kept = [("one", 1), ("two", 2), ("three", 3), ("sixty", 60)];
    for (kind, days) in kept {
        let mut kind = Kind::new(kind).unwrap();
        kind.retention.completed = DAY * days;
        site.rowlock.operate().apply(&[kind]).await.unwrap();
    }
    for (kind, _) in kept {
        site.stage_many(kind, 50).await;
        drain_all(&site, &worker, &[kind], 50).await;
    }
    let left = || {
        let sql = "SELECT kind, count(*) FROM rowlock.history GROUP BY kind ORDER BY kind";
        let rows = small.side.query(sql).unwrap().into_iter().flatten();
        rows.flatten().collect::<Vec<_>>().join(" ")
    };
    let piece = |kind: &str| {
        let sql = format!("SELECT tableoid::regclass FROM rowlock.history WHERE kind = '{kind}'");
        small.side.value(&sql)
    };
    let pieces = [piece("one"), piece("two"), piece("three")];
    let bytes = |piece: &str| small.number(&format!("SELECT pg_relation_size('{piece}')"));
    assert!(pieces.iter().all(|piece| bytes(piece) > 0), "{pieces:?}");
    assert_eq!(piece("sixty"), "rowlock.history_later");
    world.advance(DAY * 5);
    let reader = small.own.session();
    let read = format!("BEGIN; SELECT count(*) FROM {}", pieces[1]);
    reader.execute(&read).unwrap();
    assert_eq!(site.engine().prune(1_000).await.unwrap(), 100);
    small.nobody_waits();
    assert_eq!(left(), "sixty 50 two 50");
    let sizes = pieces.each_ref().map(|piece| bytes(piece) > 0);
    assert_eq!(sizes, [false, true, false], "not a row, and no space");
    assert_eq!(site.engine().prune(1_000).await.unwrap(), 0);
    reader.execute("COMMIT").unwrap();
    assert_eq!(site.engine().prune(1_000).await.unwrap(), 50);
    assert_eq!(bytes(&pieces[1]), 0);
    assert_eq!(left(), "sixty 50");
    world.advance(DAY * 56);
    assert_eq!(site.engine().prune(1_000).await.unwrap(), 50);
    assert_eq!(left(), "");
    let integrity = site.rowlock.operate().integrity().await.unwrap();
    assert!(integrity.is_clean(), "{integrity:?}");
}
