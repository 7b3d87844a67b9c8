//! The testbed's own servers: they start, do as they are told, and are gone when they must be.

use rowlock_testbed::{Postgres, Session};

#[test]
fn a_database_is_a_copy_of_its_template() {
    let postgres = Postgres::shared();
    let make = |url: &str| {
        let session = Session::open(url);
        session
            .execute("CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, NULL)")
            .unwrap();
    };
    let template = postgres.template("copy", make);
    assert_eq!(
        postgres.template("copy", |_| panic!("made twice")),
        template
    );
    let (one, two) = (
        postgres.database_from(Some(&template)),
        postgres.database_from(Some(&template)),
    );
    assert_eq!(one.session().execute("DELETE FROM t WHERE a = 1"), Ok(1));
    assert_eq!(
        two.session().query("SELECT a, b FROM t ORDER BY a"),
        Ok(vec![
            vec![Some("1".to_owned()), Some("x".to_owned())],
            vec![Some("2".to_owned()), None]
        ])
    );
    let name = one.name().to_owned();
    let open = one.session();
    drop(one);
    assert!(open.query("SELECT 1").is_err(), "{name} is still there");
    let left = postgres.session().value(&format!(
        "SELECT count(*) FROM pg_database WHERE datname = '{name}'"
    ));
    assert_eq!(left, "0");
}

#[test]
fn an_empty_database_knows_no_table() {
    let database = Postgres::shared().database_from(None);
    let why = database.session().query("SELECT 1 FROM jobs").unwrap_err();
    assert_eq!(why, "42P01: relation \"jobs\" does not exist");
}
