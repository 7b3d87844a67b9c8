//! What PostgreSQL spells in its own way.

use rowlock::engine::postgres::{Address, migrate_up};
use sqlx::PgPool;

use super::Error;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS databases (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name  text NOT NULL,
    state text NOT NULL CHECK (state IN ('pending', 'ready'))
);
CREATE INDEX IF NOT EXISTS databases_pending ON databases (id) WHERE state = 'pending';
CREATE TABLE IF NOT EXISTS backup_policies (
    database_id   bigint PRIMARY KEY REFERENCES databases (id),
    every_seconds integer NOT NULL,
    next_run_at   timestamptz NOT NULL DEFAULT now(),
    last_run_at   timestamptz
);
CREATE INDEX IF NOT EXISTS backup_policies_next ON backup_policies (next_run_at, database_id);";

pub const DUE_POLICIES: &str = "SELECT database_id FROM backup_policies WHERE next_run_at <= now()";

pub async fn open(url: &str) -> Result<PgPool, Error> {
    migrate_up(&Address::parse(url)?).await?; // or: rowlock migrate up
    let pool = PgPool::connect(url).await?;
    sqlx::raw_sql(TABLES).execute(&pool).await?;
    Ok(pool)
}

pub async fn move_on(pool: &PgPool, id: i64) -> sqlx::Result<()> {
    let next = "UPDATE backup_policies
                SET last_run_at = now(), next_run_at = now() + make_interval(secs => every_seconds)
                WHERE database_id = $1";
    sqlx::query(next).bind(id).execute(pool).await?;
    Ok(())
}
