//! The schema as recorded: a change shows up in a diff, and needs a migration of its own.

use super::home::Own;
use crate::conformance::world::Home;

const TABLES: &str = "
    SELECT format('%s %s (%s)%s', CASE c.relkind WHEN 'v' THEN 'view' ELSE 'table' END, c.relname,
                  string_agg(format('%s %s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                                    CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END), ', ' ORDER BY a.attnum),
                  coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', ''))
    FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
    WHERE c.relnamespace = 'rowlock'::regnamespace AND c.relkind IN ('r', 'p', 'v')
    GROUP BY c.relname, c.relkind, c.reloptions ORDER BY c.relname";
const INDEXES: &str =
    "SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
    WHERE relnamespace = 'rowlock'::regnamespace ORDER BY relname";
const FUNCTIONS: &str = "
    SELECT format('function %s(%s)%s%s', proname, pg_get_function_identity_arguments(oid),
                  CASE WHEN prosecdef THEN ' SECURITY DEFINER' ELSE '' END,
                  coalesce(' SET ' || array_to_string(proconfig, ', '), ''))
    FROM pg_proc WHERE pronamespace = 'rowlock'::regnamespace ORDER BY proname";

pub fn is_as_recorded() {
    let home = Own::new();
    assert!(home.url().starts_with("postgres:"));
    let session = home.session();
    let mut lines = Vec::new();
    for part in [TABLES, INDEXES, FUNCTIONS] {
        let rows = session.query(part).unwrap();
        lines.extend(rows.into_iter().flatten().flatten());
    }
    let now = lines.join("\n") + "\n";
    let path =
        rowlock_testbed::repository().join("crates/rowlock/tests/postgres/schema.golden.txt");
    if std::env::var_os("ROWLOCK_RECORD").is_some() {
        std::fs::write(&path, &now).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        now == recorded,
        "the schema differs from {}: after a new migration record it with ROWLOCK_RECORD=1",
        path.display()
    );
}

pub fn an_older_form_of_a_function_is_one_thing_with_the_newer() {
    let home = Own::new();
    let session = home.session();
    let older = "CREATE FUNCTION rowlock.tidy(integer) RETURNS void LANGUAGE sql AS 'SELECT'";
    session.execute(older).unwrap();
    let parts = include_str!("../../src/engine/postgres/sql/health_schema.sql");
    let told = session.query(parts).unwrap();
    let things: std::collections::BTreeSet<_> = told.iter().map(|row| row[0].clone()).collect();
    assert_eq!(things.len(), told.len());
}

/// Under a publication, a table without one refuses every UPDATE and DELETE.
pub fn every_table_has_a_replica_identity() {
    let home = Own::new();
    let bare = home.session().query(
        "SELECT c.relname FROM pg_class AS c
         WHERE c.relnamespace = 'rowlock'::regnamespace AND c.relkind = 'r' AND NOT CASE c.relreplident
             WHEN 'f' THEN true
             WHEN 'd' THEN EXISTS (SELECT 1 FROM pg_index WHERE indrelid = c.oid AND indisprimary AND indisvalid)
             WHEN 'i' THEN EXISTS (SELECT 1 FROM pg_index WHERE indrelid = c.oid AND indisreplident AND indisvalid)
             ELSE false END",
    );
    assert_eq!(bare.unwrap(), Vec::<Vec<Option<String>>>::new());
}
