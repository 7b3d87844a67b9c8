//! What SQLite spells in its own way.

use rowlock::Clock;
use rowlock::engine::sqlite::{Address, migrate_up};
use sqlx::SqlitePool;
use sqlx::sqlite::SqlitePoolOptions;

use super::Error;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS databases (
    id    INTEGER PRIMARY KEY,
    name  TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'ready'))
);
CREATE INDEX IF NOT EXISTS databases_pending ON databases (id) WHERE state = 'pending';
CREATE TABLE IF NOT EXISTS backup_policies (
    database_id   INTEGER PRIMARY KEY REFERENCES databases (id),
    every_seconds INTEGER NOT NULL,
    next_run_at   INTEGER NOT NULL DEFAULT (unixepoch()),
    last_run_at   INTEGER
);
CREATE INDEX IF NOT EXISTS backup_policies_next ON backup_policies (next_run_at, database_id);";

pub const DUE_POLICIES: &str =
    "SELECT database_id FROM backup_policies WHERE next_run_at <= unixepoch()";

pub async fn open(url: &str) -> Result<SqlitePool, Error> {
    migrate_up(&Address::parse(url)?, &Clock::system())?; // or: rowlock migrate up --url sqlite:app.db
    // There is one writer at a time anyway.
    let pool = SqlitePoolOptions::new().max_connections(1);
    let pool = pool.connect(url).await?;
    sqlx::raw_sql(TABLES).execute(&pool).await?;
    Ok(pool)
}

pub async fn move_on(pool: &SqlitePool, id: i64) -> sqlx::Result<()> {
    let next = "UPDATE backup_policies
                SET last_run_at = unixepoch(), next_run_at = unixepoch() + every_seconds
                WHERE database_id = $1";
    sqlx::query(next).bind(id).execute(pool).await?;
    Ok(())
}
