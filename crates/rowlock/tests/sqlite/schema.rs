//! Migrations: applied once, recorded, and refused when they aren't ours.

use std::sync::{Arc, Barrier};

use rowlock::Error;
use rowlock::clock::Clock;
use rowlock::engine::sqlite::{Address, LATEST, Owner, Sqlite, migrate_up, owner, schema_version};

use super::home::File;

fn empty() -> (rowlock_testbed::TempDir, Address) {
    let folder = rowlock_testbed::folder();
    let url = format!("sqlite:{}", folder.path().join("new.db").display());
    (folder, Address::parse(&url).unwrap())
}

pub fn migrating_twice_changes_nothing() {
    let (_folder, address) = empty();
    assert_eq!(owner(&address).unwrap(), Owner::Nobody);
    assert_eq!(schema_version(&address).unwrap().stored, 0);
    let all: Vec<u32> = (1..=LATEST).collect();
    assert_eq!(migrate_up(&address, &Clock::system()).unwrap(), all);
    assert_eq!(
        migrate_up(&address, &Clock::system()).unwrap(),
        Vec::<u32>::new()
    );
    assert_eq!(schema_version(&address).unwrap().stored, LATEST);
    assert_eq!(owner(&address).unwrap(), Owner::Rowlock);
}

pub fn rival_migrations_apply_once() {
    for _ in 0..30 {
        let (_folder, address) = empty();
        let barrier = Arc::new(Barrier::new(4));
        let applied: usize = std::thread::scope(|scope| {
            let rivals: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        migrate_up(&address, &Clock::system()).unwrap().len()
                    })
                })
                .collect();
            rivals.into_iter().map(|rival| rival.join().unwrap()).sum()
        });
        assert_eq!(applied, usize::try_from(LATEST).unwrap());
    }
}

fn refused(home: &File) -> String {
    let opened = Sqlite::open(home.address(), Clock::system());
    let Err(Error::Schema(why)) = opened else {
        panic!("{opened:?}");
    };
    assert!(matches!(
        migrate_up(&home.address(), &Clock::system()),
        Err(Error::Schema(_))
    ));
    why
}

pub fn a_newer_schema_is_refused() {
    let home = File::new();
    home.connect()
        .execute(
            "INSERT INTO rowlock_migration VALUES (999, '0999_later', 'x', 0)",
            [],
        )
        .unwrap();
    let why = refused(&home);
    assert!(
        why.contains("schema 999") && why.contains("newer rowlock"),
        "{why}"
    );
}

pub fn a_changed_migration_is_refused() {
    let home = File::new();
    home.connect()
        .execute("UPDATE rowlock_migration SET checksum = 'other'", [])
        .unwrap();
    let why = refused(&home);
    assert!(why.contains("another form"), "{why}");
}

pub fn a_file_without_tables_is_refused_with_the_remedy() {
    let (_folder, address) = empty();
    let connection = rusqlite::Connection::open(&address.path).unwrap();
    connection
        .execute_batch("CREATE TABLE users (name TEXT)")
        .unwrap();
    assert_eq!(owner(&address).unwrap(), Owner::Foreign);
    let Err(Error::Schema(why)) = Sqlite::open(address, Clock::system()) else {
        panic!("opened");
    };
    assert!(why.contains("rowlock migrate up"), "{why}");
}

pub fn bytes_that_are_no_database_are_refused() {
    let (_folder, address) = empty();
    std::fs::write(
        &address.path,
        "this is no database, it is a letter ".repeat(200),
    )
    .unwrap();
    let looked = owner(&address);
    assert!(matches!(looked, Err(Error::Schema(_))), "{looked:?}");
    let text = std::fs::read_to_string(&address.path).unwrap();
    assert!(
        text.starts_with("this is no database"),
        "the file was changed"
    );
}
