//! Routes in a file: older schemas, rows that somebody removed.

use rowlock::JobState;
use rowlock::claim::{Claim, WorkerId};
use rowlock::clock::Clock;
use rowlock::engine::sqlite::{MIGRATIONS, migrate_up, schema_version};
use rowlock::settle::{Settled, Verdict};
use rusqlite::{Connection, params};

use super::home::File;
use super::pairs::block;
use crate::conformance::world::{Home, LEASE, Site, World, job, name, wanted};

fn schema(connection: &Connection) -> Vec<String> {
    let ours = "SELECT sql FROM sqlite_master WHERE name LIKE 'rowlock%' AND sql IS NOT NULL ORDER BY name";
    let mut read = connection.prepare(ours).unwrap();
    let rows = read.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

/// A file as the version before routes made it.
fn of_the_second_schema(home: &File, table: &str) -> Connection {
    let connection = home.connect();
    connection.execute_batch(table).unwrap();
    for step in &MIGRATIONS[..2] {
        connection.execute_batch(step.text()).unwrap();
        let values = params![step.version, step.name, step.checksum()];
        connection
            .execute(
                "INSERT INTO rowlock_migration VALUES (?1, ?2, ?3, 0)",
                values,
            )
            .unwrap();
    }
    connection
}

pub fn a_store_of_the_second_schema_is_brought_up_to_date_under_its_workers() {
    block(async {
        let fresh = File::new();
        let now = schema(&fresh.connect());
        let table = now.iter().find(|sql| sql.contains("rowlock_migration"));
        let folder = rowlock_testbed::folder();
        let home = File::at(folder.path().join("older.db"));
        let older = of_the_second_schema(&home, table.unwrap());
        older
        .execute_batch(
            "INSERT INTO rowlock_queue (queue) VALUES ('slow');
             INSERT INTO rowlock_worker (id, lease_ms, joined_at, seen_at) VALUES ('old', 30000, 0, 0);
             INSERT INTO rowlock_enqueue (kind) VALUES ('mail'), ('mail');",
        )
        .unwrap();
        assert_eq!(schema_version(&home.address()).unwrap().stored, 2);
        // A statement that an older worker has at hand goes on.
        let mut claim = older
        .prepare(
            "UPDATE rowlock_job SET state = 'processing', attempt = 1, locked_by = 'old', token = ?1
             WHERE id = ?1",
        )
        .unwrap();
        assert_eq!(claim.execute([1]).unwrap(), 1);
        assert_eq!(migrate_up(&home.address(), &Clock::system()).unwrap(), [3]);
        assert_eq!(claim.execute([2]).unwrap(), 1);
        older
            .execute_batch(
                "INSERT INTO rowlock_enqueue (kind) VALUES ('mail');
             INSERT INTO rowlock_queue (queue, switch) VALUES ('slower', 'pause');",
            )
            .unwrap();
        assert_eq!(schema(&older), now);
        let rowlock = home.open(Clock::system());
        let site = Site {
            rowlock,
            detour: None,
        };
        let worker = site.join().await;
        assert_eq!(site.claim(&worker, &["mail"], 10).await.len(), 1);
        assert!(site.rowlock.routes().routes().await.unwrap().is_empty());
        let number = site.rowlock.routes().store_id().await.unwrap();
        let other = fresh.open(Clock::system()).routes();
        assert_ne!(other.store_id().await.unwrap(), number);
    });
}

pub fn a_route_whose_row_was_removed_keeps_what_it_sent() {
    block(async {
        let world = World::new(std::sync::Arc::new(File::new()));
        let site = world.open();
        let (routes, route) = (site.rowlock.routes(), name("sink"));
        let holder = WorkerId::route(&route);
        let kinds = [name("mail")];
        routes
            .declare_route(&route, &kinds, &[], true)
            .await
            .unwrap();
        routes.keep_route(&holder, LEASE).await.unwrap();
        let id = site.stage(job("mail")).await;
        let claim = Claim {
            route: Some(route),
            ..wanted(&holder, &[], 10)
        };
        let sent = site.claimed(claim).await.jobs.remove(0);
        world.home.client().execute("DELETE FROM rowlock_worker");
        site.engine().expire().await.unwrap();
        assert_eq!(site.state(id).await, JobState::Processing);
        let rows = routes.routes().await.unwrap();
        assert_eq!((rows[0].sent, rows[0].drained), (1, false));
        routes.keep_route(&holder, LEASE).await.unwrap();
        assert_eq!(routes.sent(&holder, None, 10).await.unwrap().len(), 1);
        assert_eq!(site.settle(&sent, Verdict::Done).await, Settled::Accepted);
    });
}
