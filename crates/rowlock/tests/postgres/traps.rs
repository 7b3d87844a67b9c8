//! A schema of the search_path in which everybody may create things, as `public` up to PostgreSQL 14: operators and
//! functions that fit the types of our statements better than the server's own.

use rowlock::engine::From;
use rowlock::engine::postgres::{Address, Role, Roles, grant_roles, schema_version};
use rowlock::settle::Verdict;
use rowlock_testbed::Session;

use super::home::wait;
use super::pairs::{Desk, QUERY, TABLE};
use super::small::Small;
use crate::conformance::world::{Home, job};

/// Each says that it was called, and by which role.
const TRAPS: &str = "
    CREATE TABLE loot (role text, what text);
    CREATE FUNCTION trap(what text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.loot VALUES (current_user, what);
    EXCEPTION WHEN OTHERS THEN NULL; END $$;
    CREATE FUNCTION is_class(oid, regclass) RETURNS boolean LANGUAGE plpgsql AS
        $$ BEGIN PERFORM public.trap('oid = regclass'); RETURN $1 OPERATOR(pg_catalog.=) $2::oid; END $$;
    CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = regclass, PROCEDURE = is_class);
    CREATE FUNCTION is_space(oid, regnamespace) RETURNS boolean LANGUAGE plpgsql AS
        $$ BEGIN PERFORM public.trap('oid = regnamespace'); RETURN $1 OPERATOR(pg_catalog.=) $2::oid; END $$;
    CREATE OPERATOR public.= (LEFTARG = oid, RIGHTARG = regnamespace, PROCEDURE = is_space);
    CREATE FUNCTION cardinality(text[]) RETURNS int LANGUAGE plpgsql AS
        $$ BEGIN PERFORM public.trap('cardinality'); RETURN pg_catalog.cardinality($1); END $$;
    CREATE FUNCTION unnest(text[]) RETURNS SETOF text LANGUAGE plpgsql AS
        $$ BEGIN PERFORM public.trap('unnest'); RETURN QUERY SELECT pg_catalog.unnest($1); END $$;
    CREATE FUNCTION unnest(bigint[]) RETURNS SETOF bigint LANGUAGE plpgsql AS
        $$ BEGIN PERFORM public.trap('unnest'); RETURN QUERY SELECT pg_catalog.unnest($1); END $$;
    CREATE FUNCTION to_json(text) RETURNS json LANGUAGE plpgsql AS
        $$ BEGIN PERFORM public.trap('to_json'); RETURN pg_catalog.to_json($1); END $$;
    CREATE FUNCTION add_text(text[], text) RETURNS text[] LANGUAGE plpgsql AS
        $$ BEGIN PERFORM public.trap('array_agg'); RETURN pg_catalog.array_append($1, $2); END $$;
    CREATE AGGREGATE public.array_agg(text) (SFUNC = add_text, STYPE = text[]);
    CREATE FUNCTION array_to_string(text[], text) RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN PERFORM public.trap('array_to_string'); RETURN pg_catalog.array_to_string($1, $2); END $$;
    GRANT ALL ON loot TO PUBLIC";

/// `format` takes any types: one for each number and mix of texts that could be asked for.
fn formats() -> String {
    let one = |texts: usize, last: &str| {
        let types = vec!["text"; texts].join(", ");
        let (types, values) = match last {
            "" => (
                types,
                (1..=texts).map(|n| format!("${n}")).collect::<Vec<_>>(),
            ),
            last => (
                format!("{types}, {last}"),
                (1..=texts + 1).map(|n| format!("${n}")).collect(),
            ),
        };
        format!(
            "CREATE FUNCTION format({types}) RETURNS text LANGUAGE plpgsql AS
                 $$ BEGIN PERFORM public.trap('format'); RETURN pg_catalog.format({}); END $$;",
            values.join(", ")
        )
    };
    (1..=8)
        .flat_map(|texts| ["", "bigint", "integer"].map(|last| one(texts, last)))
        .collect()
}

pub async fn what_others_put_into_the_search_path_runs_in_none_of_our_statements(small: Small) {
    let side = small.own.session();
    side.execute(&format!("SET search_path = public; {TRAPS}; {}", formats()))
        .unwrap();
    // They do fit, where the path has them.
    let seen = Session::open(&small.own.url());
    let fits = "SELECT count(*) FROM pg_class WHERE oid = 'pg_class'::regclass";
    assert_eq!(seen.value(fits), "1");
    assert_ne!(side.value("SELECT count(*) FROM loot"), "0");
    side.execute("DELETE FROM loot").unwrap();

    let address = Address::parse(&small.own.url()).unwrap();
    let desk = Desk::new(small, TABLE, &["id"], QUERY).await;
    wait(schema_version(&address)).unwrap();
    let role = |task: &str| Role::new(&format!("traps_{}_{task}", std::process::id())).unwrap();
    let roles = Roles {
        app: role("app"),
        worker: role("worker"),
        guard: role("guard"),
        reader: role("reader"),
    };
    wait(grant_roles(&address, &roles)).unwrap();
    let operate = desk.site.rowlock.operate();
    operate.health().await.unwrap();
    operate.integrity().await.unwrap();
    operate.stats().await.unwrap();
    operate.queues().await.unwrap();
    for limit in [5, 100] {
        let mut batch = desk.batch(From::Here {
            cursor: None,
            limit,
        });
        batch.dry = limit == 5;
        desk.lead().tick(batch).await.unwrap();
    }
    let site = &desk.site;
    let worker = site.join().await;
    site.stage(job("mail")).await;
    let claimed = site.claim_one(&worker, &["mail"]).await;
    site.settle(&claimed, Verdict::Done).await;
    site.engine().upkeep().await.unwrap();
    site.engine().expire().await.unwrap();
    site.engine().leave(&worker).await.unwrap();
    let loot = side.query("SELECT DISTINCT role, what FROM loot").unwrap();
    assert!(loot.is_empty(), "{loot:?}");
}
