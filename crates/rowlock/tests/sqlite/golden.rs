//! The schema as recorded: a change shows up in a diff, and needs a migration of its own.

use super::home::File;

pub fn is_as_recorded() {
    let home = File::new();
    let connection = home.connect();
    let mut read = connection
        .prepare("SELECT sql FROM sqlite_master WHERE name LIKE 'rowlock\\_%' ESCAPE '\\' AND sql IS NOT NULL ORDER BY name")
        .unwrap();
    let parts: Vec<String> = read
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let now = parts.join(";\n\n") + ";\n";
    let path = rowlock_testbed::repository().join("crates/rowlock/tests/sqlite/schema.golden.sql");
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
