//! Migrations: append-only, recorded with a checksum, applied in one transaction under a lock.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

use super::connect::{self, Address, Schema, batch};
use super::error::{is_there_already, map};
use super::row::get;
use super::statements::{Sql, sql};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::io::Io;
use crate::log;

/// One step of the schema: its tables.
#[derive(Debug, Clone, Copy)]
struct Migration {
    version: i32,
    name: &'static str,
    tables: Sql,
    /// The checksum of an older step, with the functions as they were then; the latest step's is
    /// computed with the functions as they are.
    then: Option<&'static str>,
}

macro_rules! tables {
    ($name:literal) => {
        Sql {
            name: $name,
            text: include_str!(concat!("migrations/", $name, ".sql")),
        }
    };
}

const MIGRATIONS: &[Migration] = &[
    Migration {
        version: 1,
        name: "0001_jobs",
        tables: tables!("0001_jobs"),
        then: Some("2c39d733a30e5687"),
    },
    Migration {
        version: 2,
        name: "0002_pairs",
        tables: tables!("0002_pairs"),
        then: Some("5983a74d48a427cb"),
    },
    Migration {
        version: 3,
        name: "0003_routes",
        tables: tables!("0003_routes"),
        then: Some("5f86b2f45a84c164"),
    },
    Migration {
        version: 4,
        name: "0004_operate",
        tables: tables!("0004_operate"),
        then: Some("2186f8dce286f715"),
    },
    Migration {
        version: 5,
        name: "0005_plain",
        tables: tables!("0005_plain"),
        then: Some("c6ff04ac504b459d"),
    },
    Migration {
        version: 6,
        name: "0006_keys",
        tables: tables!("0006_keys"),
        then: Some("567753c202d2ee02"),
    },
    Migration {
        version: 7,
        name: "0007_suspects",
        tables: tables!("0007_suspects"),
        then: Some("6d37fa0ae934ceb2"),
    },
    Migration {
        version: 8,
        name: "0008_trust",
        tables: tables!("0008_trust"),
        then: None,
    },
];

/// In an order in which each finds what it needs. They are replaced in place, so a call under way goes
/// on: their answers stay what they are, and so do the arguments of a call. One that takes more is
/// dropped by its migration and has a default for what older callers don't say, or stays beside its newer form.
const FUNCTIONS: &[Sql] = &[
    sql!("now"),
    sql!("try_lock"),
    sql!("is_on"),
    sql!("depth"),
    sql!("stage_problem"),
    sql!("stage_rare_problem"),
    sql!("stage_key"),
    sql!("place"),
    sql!("expiry"),
    sql!("slot"),
    sql!("spare_slot"),
    sql!("with_error"),
    sql!("hold_back"),
    sql!("must_notify"),
    sql!("notify"),
    sql!("arrived"),
    sql!("stage_many"),
    sql!("stage"),
    sql!("stage_known"),
    sql!("stage_plain"),
    sql!("stage_alike_in"),
    sql!("stage_alike"),
    sql!("note_plain"),
    sql!("kind_changed"),
    sql!("kind_changed_trigger"),
    sql!("queue_switched"),
    sql!("queue_switched_trigger"),
    sql!("enqueue"),
    sql!("enqueue_many"),
    sql!("worker_lives"),
    sql!("claim_from"),
    sql!("claim_next"),
    sql!("claim_lanes"),
    sql!("claim_in_levels"),
    sql!("claim_suspect"),
    sql!("bring_back_due"),
    sql!("settle_done"),
    sql!("whereabouts"),
    sql!("settle_finish"),
    sql!("settle_again"),
    sql!("settle"),
    sql!("complete"),
    sql!("join"),
    sql!("return_rows"),
    sql!("return_held"),
    sql!("heartbeat"),
    sql!("set_aside"),
    sql!("set_sent_aside"),
    sql!("leave"),
    sql!("start_suspect"),
    sql!("expire"),
    sql!("state_of"),
    sql!("cancel"),
    sql!("forget"),
    sql!("delete"),
    sql!("redrive"),
    sql!("prune"),
    sql!("retire"),
    sql!("rotate"),
    sql!("tidy"),
    sql!("check_ids"),
    sql!("set_switch"),
    sql!("write_kinds"),
    sql!("declare_pairs"),
    sql!("lead_posts"),
    sql!("clean_session"),
    sql!("read_only"),
    sql!("tick"),
    sql!("still_wanted"),
    sql!("declare_crons"),
    sql!("fire"),
    sql!("store_id"),
    sql!("declare_route"),
    sql!("keep_route"),
    sql!("sent_young"),
    sql!("forget_route"),
    sql!("budget_place"),
    sql!("budget_places"),
    sql!("budget_places_trigger"),
    sql!("budget_enter"),
];

/// The functions, in that order.
pub(super) fn functions() -> impl Iterator<Item = Sql> {
    FUNCTIONS.iter().copied()
}

/// The tables and indexes of every step.
pub(super) fn tables() -> impl Iterator<Item = Sql> {
    MIGRATIONS.iter().map(|step| step.tables)
}

/// The version this build works with.
pub const LATEST: u32 = MIGRATIONS.len() as u32;

impl Migration {
    fn statements(&self, schema: &Schema) -> Vec<String> {
        let mut all = vec![self.tables.text(schema)];
        if self.then.is_none() {
            all.extend(FUNCTIONS.iter().flat_map(|each| each.definitions(schema)));
            // What a role may do is said by `migrate roles`, not by the default that everybody may.
            all.push(sql!("revoke").text(schema));
            all.push(sql!("migration_grants").text(schema));
            all.push(sql!("budget_again").text(schema));
        }
        all
    }

    /// Tells whether a stored schema came from the same text (FNV-1a; nobody attacks this).
    fn checksum(&self) -> String {
        if let Some(then) = self.then {
            return then.to_owned();
        }
        let texts = std::iter::once(&self.tables).chain(FUNCTIONS);
        let hash = texts
            .flat_map(|sql| sql.text.bytes())
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        format!("{hash:016x}")
    }
}

/// The stored schema, compared with what this build knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaVersion {
    /// What the database has; 0 for nothing.
    pub stored: u32,
    /// What this build works with.
    pub latest: u32,
}

/// Every migration's version and name, in their order.
pub fn migrations() -> impl Iterator<Item = (u32, &'static str)> {
    let number = |version| u32::try_from(version).unwrap_or(0);
    MIGRATIONS
        .iter()
        .map(move |step| (number(step.version), step.name))
}

/// Everything that `migrate up` would run on an empty database, for reading or for running by hand.
#[must_use]
pub fn migration_sql(schema: &Schema) -> String {
    let mut text = format!("BEGIN;\n{};\n", sql!("migration_table").text(schema));
    for step in MIGRATIONS {
        for statement in step.statements(schema) {
            text.push_str(statement.trim_end().trim_end_matches(';'));
            text.push_str(";\n");
        }
        text.push_str(&format!(
            "{};\n",
            sql!("migration_add")
                .text(schema)
                .trim_end()
                .replace("$1", &step.version.to_string())
                .replace("$2", &format!("'{}'", step.name))
                .replace("$3", &format!("'{}'", step.checksum()))
        ));
    }
    text + "COMMIT;\n"
}

/// Looks at the schema without changing anything.
///
/// # Errors
/// [`Error::Schema`] for a schema that is newer or was changed, [`Error::Unreachable`] without a
/// server.
pub async fn schema_version(address: &Address) -> Result<SchemaVersion> {
    let io = Io::start("rowlock-postgres")?;
    let client = connect::connect(address, &io).await?;
    version(&client, &address.schema).await
}

/// Brings the schema up to date; says which versions were applied. Two processes may try at once.
///
/// # Errors
/// [`Error::Schema`] for a schema that is newer or was changed, and whatever the server answers.
pub async fn migrate_up(address: &Address) -> Result<Vec<u32>> {
    let io = Io::start("rowlock-postgres")?;
    let mut client = connect::connect(address, &io).await?;
    if version(&client, &address.schema).await?.stored == LATEST {
        return Ok(Vec::new());
    }
    match migrate(&mut client, &address.schema).await? {
        Some(done) => Ok(done),
        // The other process has made the table by now, and this one waits for its lock.
        None => Ok(migrate(&mut client, &address.schema)
            .await?
            .unwrap_or_default()),
    }
}

/// Nothing if another process made the first table meanwhile: until there is one, nothing can be locked.
async fn migrate(client: &mut Client, schema: &Schema) -> Result<Option<Vec<u32>>> {
    let transaction = client
        .transaction()
        .await
        .map_err(|why| map(&why, "migrating"))?;
    let run = async |text: String, doing: &str| {
        let done = transaction.batch_execute(&text).await;
        done.map_err(|why| map(&why, doing))
    };
    run(
        sql!("migration_settings").text(schema),
        "migration_settings",
    )
    .await?;
    let text = sql!("migration_table").text(schema);
    match transaction.batch_execute(&text).await {
        Err(why) if is_there_already(&why) => return Ok(None),
        made => made.map_err(|why| map(&why, "migration_table"))?,
    }
    run(sql!("migration_lock").text(schema), "migration_lock").await?;
    let stored = version(transaction.client(), schema).await?.stored;
    let mut done = Vec::new();
    for step in MIGRATIONS {
        let number = u32::try_from(step.version).unwrap_or(0);
        if number <= stored {
            continue;
        }
        for statement in step.statements(schema) {
            run(statement, step.name).await?;
        }
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("migrate.one_transaction") {
            run("COMMIT; BEGIN".to_owned(), step.name).await?;
        }
        crash_point!("migrate.applied");
        let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] = [
            (&step.version, Type::INT4),
            (&step.name, Type::TEXT),
            (&step.checksum(), Type::TEXT),
        ];
        let text = sql!("migration_add").text(schema);
        let added = transaction.execute_typed(&text, &values).await;
        added.map_err(|why| map(&why, "migration_add"))?;
        done.push(number);
    }
    if !done.is_empty() {
        record_parts(&transaction, schema).await?;
    }
    crash_point!("migrate.written");
    let committed = transaction.commit().await;
    committed.map_err(|why| map(&why, "migrating"))?;
    crash_point!("migrate.committed");
    Ok(Some(done))
}

async fn record_parts(transaction: &Transaction<'_>, schema: &Schema) -> Result<()> {
    let failed = |why: tokio_postgres::Error| map(&why, "migration_record");
    let text = sql!("health_schema").text(schema);
    let parts = transaction.query_typed(&text, &[]).await.map_err(failed)?;
    let record = sql!("migration_record").text(schema);
    for part in &parts {
        let (thing, content): (String, String) = (get(part, 0)?, get(part, 1)?);
        let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 2] =
            [(&thing, Type::TEXT), (&content, Type::TEXT)];
        let recorded = transaction.execute_typed(&record, &values).await;
        recorded.map_err(failed)?;
    }
    Ok(())
}

/// Reads the version, and refuses a schema that is newer or was changed.
pub(super) async fn version(client: &Client, schema: &Schema) -> Result<SchemaVersion> {
    let mut latest_stored = 0;
    for (version, name, checksum) in applied(client, schema).await? {
        match MIGRATIONS.iter().find(|step| step.version == version) {
            None => {
                return Err(Error::Schema(format!(
                    "the database has schema {version}, this rowlock knows up to {LATEST}: \
                     install a newer rowlock"
                )));
            }
            Some(step) if step.checksum() != checksum => {
                return Err(Error::Schema(format!(
                    "migration {version} ({name}) was applied in another form (checksum {checksum}, \
                     expected {}): use the rowlock that made this schema",
                    step.checksum()
                )));
            }
            Some(_) => latest_stored = u32::try_from(version).unwrap_or(0),
        }
    }
    Ok(SchemaVersion {
        stored: latest_stored,
        latest: LATEST,
    })
}

async fn applied(client: &Client, schema: &Schema) -> Result<Vec<(i32, String, String)>> {
    let failed = |why: tokio_postgres::Error| map(&why, "migration_list");
    let name = schema.as_str();
    let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 1] = [(&name, Type::TEXT)];
    let text = sql!("migration_exists").text(schema);
    let rows = client.query_typed(&text, &values).await.map_err(failed)?;
    if !rows.first().map_or(Ok(false), |row| get(row, 0))? {
        return Ok(Vec::new());
    }
    let text = sql!("migration_list").text(schema);
    let rows = client.query_typed(&text, &[]).await.map_err(failed)?;
    rows.iter()
        .map(|row| Ok((get(row, 0)?, get(row, 1)?, get(row, 2)?)))
        .collect()
}

/// How often a schema that somebody still uses is tried to be dropped, and the pause in between.
const DROPS: usize = 50;
const DROP_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// Removes the schema with everything in it.
///
/// # Errors
/// Whatever the server answers.
pub async fn drop_schema(address: &Address) -> Result<()> {
    let io = Io::start("rowlock-postgres")?;
    let client = connect::connect(address, &io).await?;
    let text = sql!("migration_drop").text(&address.schema);
    // Statements that are still under way may want in another order what this locks: they end soon.
    for _ in 0..DROPS {
        match batch(&client, &text, "migration_drop").await {
            Err(why) if why.is_transient() => log::debug!(%why, "dropping the schema again"),
            other => return other,
        }
        Clock::system().sleep(DROP_PAUSE).await;
    }
    batch(&client, &text, "migration_drop").await
}
