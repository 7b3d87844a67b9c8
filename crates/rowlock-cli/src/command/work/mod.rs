//! `rowlock work`: runs the jobs that rowlock.toml has handlers for.

mod from;
mod leash;
mod serve;

pub use serve::{Beside, Declared, From, serve};

use std::collections::BTreeSet;
use std::net::SocketAddr;

use anyhow::Result;
use rowlock::guard::{Action, Guard};
use rowlock::job::Kind;
use rowlock::run::{Options, Runner, Tally};
use rowlock::verify::Ran;
use rowlock::{Name, Rowlock};

use self::leash::leash;
use super::drain::elsewhere;
use crate::cli::Work;
use crate::http::Http;
use crate::open::{Access, Setup, Store, Wait, Waited};
use crate::{exit, out, show};

pub async fn run(setup: &Setup, how: Work, json: bool) -> Result<u8> {
    if let Some(parent) = how.leashed {
        leash(parent)?;
    }
    let handlers = setup.config.runners()?;
    if handlers.is_empty() {
        return Err(no_handlers(setup));
    }
    let mut options = setup.config.options();
    options.queues = how.queues;
    options.once = how.once;
    if let Some(slots) = how.concurrency {
        options.concurrency = usize::try_from(slots).unwrap_or(options.concurrency);
    }
    options.ran = how.ran.map(Ran::open).transpose()?;
    let wait = Wait::new(setup, how.wait, how.once);
    let start = Start {
        handlers,
        options,
        listen: how.listen,
        quiet: how.volume.quiet,
        wait,
    };
    let tally = match &how.from {
        Some(url) => from::run(setup, url, start).await?,
        None => from_store(setup, start).await?,
    };
    if json {
        out::json(&serde_json::json!({ "settled": tally.settled, "lost": tally.lost }))?;
    }
    Ok(exit::OK)
}

/// What a worker starts with.
struct Start {
    handlers: Vec<(Kind, Runner)>,
    options: Options,
    listen: Option<SocketAddr>,
    quiet: bool,
    wait: Wait,
}

async fn from_store(setup: &Setup, start: Start) -> Result<Tally> {
    let Start {
        handlers,
        options,
        listen,
        quiet,
        mut wait,
    } = start;
    let crons = setup.config.crons()?;
    let pairs = setup.pairs()?;
    let open = async || {
        let (rowlock, created) = setup.open_quietly(Access::Write).await?;
        declare(&rowlock, &handlers).await?;
        let scheduler = scheduler_line(setup, &rowlock).await?;
        Ok((rowlock, created, scheduler))
    };
    let store = Waited::Store(&setup.store);
    let (rowlock, created, scheduler) = wait.until(&store, open).await?;
    let mut beside = Beside::listen(setup, listen).await?;
    // From here on a signal is for the worker.
    drop(wait);
    beside.guard = guard(setup, &rowlock)?;
    if !quiet {
        let mut lines = vec![store_line(setup, created), worker_line(&handlers, &options)];
        lines.extend(scheduler);
        lines.extend(guard_line(setup));
        lines.extend(elsewhere(&setup.routes()?, &handlers));
        block(&lines, beside.http.as_ref());
    }
    let declared = Declared {
        handlers,
        pairs,
        crons,
    };
    serve(From::Store(rowlock), declared, options, beside).await
}

/// The guard that runs inside, if the configuration wants one.
fn guard(setup: &Setup, rowlock: &Rowlock) -> Result<Option<Guard>> {
    match (setup.config.guard(), &setup.store) {
        (None, _) => Ok(None),
        (Some(_), Store::Sqlite(_)) => {
            out::warn("[guard] is for PostgreSQL only: with a SQLite file it does nothing");
            Ok(None)
        }
        (Some(policy), Store::Postgres(_)) => super::guard::guard(setup, rowlock, policy).map(Some),
    }
}

/// The line of a start block about the guard.
fn guard_line(setup: &Setup) -> Option<(&'static str, String)> {
    let policy = setup.config.guard()?;
    let line = match policy.action {
        Action::Observe => "observes transactions older than",
        Action::Cancel => "cancels transactions older than",
        Action::Terminate => "terminates transactions older than",
    };
    matches!(setup.store, Store::Postgres(_))
        .then(|| ("guard", format!("{line} {}", show::span(policy.max_age))))
}

fn no_handlers(setup: &Setup) -> anyhow::Error {
    let place = match &setup.file {
        Some(file) => format!("{} has no handlers", show::path(file)),
        None => "there is no rowlock.toml in this folder".to_owned(),
    };
    exit::with(
        exit::USAGE,
        format!(
            "{place}, so there is nothing to run. Write this into {}:\n\n  \
             [handlers.hello]\n  exec = [\"cat\"]         # or http = \"...\", or builtin = \"echo\"\n  \
             timeout = \"30s\"\n\nor try `rowlock dev`, which brings kinds of its own",
            setup
                .file
                .as_deref()
                .map_or_else(|| "rowlock.toml".to_owned(), show::path)
        ),
    )
}

/// Adds the kinds that have no row yet, so that they are known before we say that we run them.
pub async fn declare(rowlock: &Rowlock, handlers: &[(Kind, Runner)]) -> Result<()> {
    let kinds: Vec<_> = handlers.iter().map(|(kind, _)| kind.clone()).collect();
    // The worker itself warns of those whose row differs.
    rowlock.engine().add_kinds(&kinds).await?;
    Ok(())
}

/// The line of a start block about what this process may lead: what the table has, and what the
/// configuration adds to it.
pub async fn scheduler_line(
    setup: &Setup,
    rowlock: &Rowlock,
) -> Result<Option<(&'static str, String)>> {
    let schedule = rowlock.schedule();
    let rows = schedule.pairs().await?.into_iter();
    let mut pairs: BTreeSet<Name> = rows.map(|row| row.pair.name).collect();
    pairs.extend(setup.config.pairs()?.into_iter().map(|pair| pair.name));
    let (_, rows) = schedule.crons().await?;
    let mut crons: BTreeSet<Name> = rows.into_iter().map(|row| row.cron.name).collect();
    crons.extend(setup.config.crons()?.into_iter().map(|cron| cron.name));
    let counted = |count: usize, what: &str| match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        many => Some(format!("{many} {what}s")),
    };
    let parts = [counted(pairs.len(), "pair"), counted(crons.len(), "cron")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    Ok((!parts.is_empty()).then(|| ("scheduler", parts.join(", "))))
}

/// The line of a start block about the store.
pub fn store_line(setup: &Setup, created: bool) -> (&'static str, String) {
    let store = match &setup.store {
        Store::Sqlite(address) => format!(
            "sqlite {} (WAL, synchronous={})",
            show::path(&address.path),
            address.synchronous.as_str()
        ),
        Store::Postgres(address) => address.to_string(),
    };
    let created = if created { " created" } else { "" };
    let schema = setup.store.latest();
    ("store", format!("{store}, schema {schema}{created}"))
}

/// The line of a start block about the worker.
pub fn worker_line(handlers: &[(Kind, Runner)], options: &Options) -> (&'static str, String) {
    let kinds = handlers.iter().map(|(kind, _)| &kind.name);
    let line = format!(
        "{} slot{}, lease {}, kinds {}{}",
        options.concurrency,
        if options.concurrency == 1 { "" } else { "s" },
        show::span(options.lease),
        names(kinds),
        match options.queues.is_empty() {
            true => String::new(),
            false => format!(", queues {}", names(options.queues.iter())),
        },
    );
    ("worker", line)
}

/// Names with blanks between them.
pub fn names<'a>(names: impl Iterator<Item = &'a Name>) -> String {
    names.map(Name::as_str).collect::<Vec<_>>().join(" ")
}

/// Says what has started.
pub fn block(lines: &[(&str, String)], http: Option<&Http>) {
    let mut block = format!("rowlock {}", env!("CARGO_PKG_VERSION"));
    for (what, line) in lines {
        block += &format!("\n  {what:<9}  {line}");
    }
    out::note(&block);
    if let Some(http) = http {
        out::note(&http.line());
    }
}
