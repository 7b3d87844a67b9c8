//! `rowlock guard`: what pins the server's horizon, and what was done about it.

use anyhow::Result;
use rowlock::guard::{Cost, Did, Growth, Guard, Policy, Seen, Spared};
use rowlock::run::Signals;
use rowlock::{Error, Rowlock};
use serde_json::{Value, json};

use super::budget::only_postgres;
use crate::cli;
use crate::open::{Access, Setup, Wait, Waited};
use crate::show::{self, Table};
use crate::{exit, out};

/// What a statement may take up in a table.
const STATEMENT: usize = 60;

pub async fn run(setup: &Setup, how: &cli::Guard, json: bool) -> Result<u8> {
    only_postgres(setup, "guard")?;
    let policy = policy(setup, how);
    let every = policy.every;
    let mut wait = Wait::new(setup, how.wait, how.once);
    let open = async || setup.open(Access::Read).await;
    let rowlock = wait.until(&Waited::Store(&setup.store), open).await?;
    let guard = guard(setup, &rowlock, policy)?;
    let mut signals = Signals::listen()?;
    drop(wait);
    let mut quiet = false;
    loop {
        let seen = match guard.look().await {
            Ok(seen) => seen,
            // It watches a server that may be away for a while.
            Err(why @ (Error::Unavailable(_) | Error::Unreachable(_))) if quiet => {
                tracing::warn!(%why, "can't see what pins the horizon");
                Vec::new()
            }
            Err(why) => return Err(why.into()),
        };
        let cost = match seen.is_empty() {
            true => None,
            false => guard.cost(&seen).await?,
        };
        tell(&seen, cost, json)?;
        if seen.is_empty() && !quiet {
            out::note("nothing pins the horizon");
        }
        if how.once {
            return Ok(exit::OK);
        }
        quiet = true;
        tokio::select! {
            () = rowlock.clock().sleep(every) => {}
            () = signals.next() => return Ok(exit::OK),
        }
    }
}

/// What the configuration says, unless a flag says otherwise.
fn policy(setup: &Setup, how: &cli::Guard) -> Policy {
    let file = setup.config.guard().unwrap_or_default();
    Policy {
        action: how.action.unwrap_or(file.action),
        max_age: how.max_age.unwrap_or(file.max_age),
        every: how.every.unwrap_or(file.every),
        include_superusers: how.include_superusers || file.include_superusers,
        class: how.class.clone(),
    }
}

/// A guard that knows the classes of the configuration, also before `apply` has written them.
pub fn guard(setup: &Setup, rowlock: &Rowlock, policy: Policy) -> Result<Guard> {
    Ok(Guard::new(rowlock, policy).classes(setup.config.classes()?))
}

/// What is dead, and what an hour adds.
type Costs = Option<(Cost, Option<Growth>)>;

fn tell(seen: &[Seen], costs: Costs, json: bool) -> Result<()> {
    if json {
        let of = |each| {
            let mut line = shown(each);
            line["cost"] = costs.map_or(Value::Null, |(cost, growth)| {
                json!({
                    "dead_rows": cost.dead_rows,
                    "dead_bytes": cost.dead_bytes,
                    "rows_per_hour": growth.map(|growth| growth.rows),
                    "bytes_per_hour": growth.map(|growth| growth.bytes),
                })
            });
            line
        };
        return seen.iter().try_for_each(|each| out::json(&of(each)));
    }
    let mut table = Table::new(&HEADING, &[4, 5]);
    for each in seen {
        table.row(cells(each));
    }
    match seen.is_empty() {
        true => Ok(()),
        false => out::lines(&table.lines()),
    }?;
    if let Some((cost, growth)) = costs {
        let more =
            growth.map(|growth| format!(", and {} more while this goes on", an_hour(&growth)));
        out::line(&format!(
            "this database has {} dead rows ({}){}",
            show::count(cost.dead_rows),
            show::bytes(cost.dead_bytes),
            more.unwrap_or_default()
        ))?;
    }
    Ok(())
}

const HEADING: [&str; 9] = [
    "WHAT",
    "WHO",
    "CLASS",
    "STATE",
    "AGE",
    "TRANSACTIONS",
    "DUE",
    "DID",
    "STATEMENT",
];

pub fn shown(seen: &Seen) -> Value {
    let (judged, pin) = (&seen.judged, &seen.judged.pin);
    json!({
        "what": pin.what.as_str(),
        "pid": pin.pid,
        "name": pin.name,
        "application": pin.application,
        "role": pin.role,
        "query": pin.excerpt(),
        "state": pin.state,
        "age_seconds": pin.age.map(|age| age.as_secs_f64()),
        "transactions": pin.transactions,
        "catalog_only": pin.catalog_only,
        "class": judged.class,
        "due": judged.due.map(|due| due.as_str()),
        "spared": judged.spared.map(|spared| spared.as_str()),
        "did": seen.did.as_str(),
        "remedy": remedy(seen),
    })
}

fn cells(seen: &Seen) -> Vec<String> {
    let (judged, pin) = (&seen.judged, &seen.judged.pin);
    let none = || "-".to_owned();
    let text = |text: &Option<String>| text.as_deref().map_or_else(none, show::text);
    let did = match (&seen.did, judged.spared) {
        (Did::Observed, Some(spared)) => format!("spared ({})", spared.as_str()),
        (did, _) => did.as_str().to_owned(),
    };
    let said = match remedy(seen) {
        Some(remedy) => remedy,
        None => match pin.excerpt() {
            Some(query) => cut(&query),
            None => none(),
        },
    };
    vec![
        pin.what.as_str().to_owned(),
        who(seen),
        judged.class.as_ref().map_or_else(none, ToString::to_string),
        text(&pin.state),
        pin.age.map_or_else(none, show::span),
        show::count(pin.transactions),
        judged.due.map_or_else(none, |due| due.as_str().to_owned()),
        did,
        said,
    ]
}

/// What an hour adds while the horizon stands still.
pub fn an_hour(growth: &Growth) -> String {
    format!(
        "{} dead rows ({}) an hour",
        show::count(growth.rows),
        show::bytes(growth.bytes)
    )
}

/// The beginning of a statement, on one line.
fn cut(query: &str) -> String {
    let words: Vec<&str> = query.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(STATEMENT) {
        Some((end, _)) => format!("{} ...", show::text(&line[..end])),
        None => show::text(&line),
    }
}

fn who(seen: &Seen) -> String {
    let pin = &seen.judged.pin;
    let parts = [
        pin.name.clone(),
        pin.pid.map(|pid| format!("pid {pid}")),
        pin.application.clone().filter(|name| !name.is_empty()),
        pin.role.as_ref().map(|role| format!("({role})")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    show::text(&parts.join(" "))
}

/// What people can do where a guard does nothing.
fn remedy(seen: &Seen) -> Option<String> {
    use rowlock::guard::What;
    let pin = &seen.judged.pin;
    let name = show::text(&pin.name.as_deref().unwrap_or_default().replace('\'', "''"));
    match (&seen.did, seen.judged.spared, pin.what) {
        (Did::Idle, _, _) => Some("nothing runs that could be cancelled: use terminate".to_owned()),
        (Did::Refused(why), _, _) => Some(show::text(why)),
        (_, Some(Spared::Hidden), _) => Some(
            "this role can't see how old it is: a superuser may say GRANT pg_monitor, or run \
             `rowlock migrate roles --run`"
                .to_owned(),
        ),
        (_, Some(Spared::ByHand), What::Prepared) => Some(format!(
            "COMMIT PREPARED '{name}' or ROLLBACK PREPARED '{name}'"
        )),
        (_, Some(Spared::ByHand), What::Slot) => Some(format!(
            "if nobody needs it any more: SELECT pg_drop_replication_slot('{name}')"
        )),
        (_, Some(Spared::ByHand), _) => Some(
            "end the long query on the standby, or hot_standby_feedback = off there".to_owned(),
        ),
        _ => None,
    }
}
