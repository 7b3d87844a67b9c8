//! `rowlock work`: runs the jobs that rowlock.toml has handlers for.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result};
use rowlock::job::Kind;
use rowlock::run::task::Tasks;
use rowlock::run::{Options, Runner, Signals, Stopper, Tally};
use rowlock::verify::Ran;
use rowlock::{Cron, Name, Pair, Rowlock, Worker};
use tokio::sync::oneshot;

use crate::cli::Work;
use crate::http::Http;
use crate::open::{Access, Setup, Store};
use crate::{exit, out, show};

/// How long answers that are under way may take when a worker ends.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

pub async fn run(setup: &Setup, how: Work, json: bool) -> Result<u8> {
    if let Some(parent) = how.leashed {
        leash(parent)?;
    }
    let handlers = setup.config.runners()?;
    if handlers.is_empty() {
        return Err(no_handlers(setup));
    }
    let crons = setup.config.crons()?;
    let mut options = setup.config.options();
    options.queues = how.queues;
    options.once = how.once;
    if let Some(slots) = how.concurrency {
        options.concurrency = usize::try_from(slots).unwrap_or(options.concurrency);
    }
    options.ran = how.ran.map(Ran::open).transpose()?;
    let (rowlock, created) = setup.open_quietly(Access::Write).await?;
    let pairs = setup.pairs()?;
    declare(&rowlock, &handlers).await?;
    let http = match how.listen {
        Some(address) => Some(Http::bind(address).await?),
        None => None,
    };
    let signals = Signals::listen()?;
    if !how.volume.quiet {
        let scheduled = scheduled(setup, &rowlock).await?;
        block(
            setup,
            created,
            &handlers,
            &options,
            scheduled,
            http.as_ref(),
        );
    }
    let declared = Declared {
        handlers,
        pairs,
        crons,
    };
    let tally = serve(rowlock, declared, options, http, signals).await?;
    if json {
        out::json(&serde_json::json!({ "settled": tally.settled, "lost": tally.lost }))?;
    }
    Ok(exit::OK)
}

/// Ends the process when whoever holds the other end of stdin is gone. Like a crash, which is safe.
fn leash(parent: i32) -> Result<()> {
    die_with(parent)?;
    let wait = || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(i32::from(exit::FAILED));
    };
    // Nobody waits for it: it ends with the process.
    std::thread::Builder::new()
        .name("leash".to_owned())
        .spawn(wait)
        .context("can't watch stdin")?;
    Ok(())
}

/// Lets the system kill us with the thread that started us, which also ends a process that stands still
/// and can't see that its stdin is closed.
#[cfg(target_os = "linux")]
fn die_with(parent: i32) -> Result<()> {
    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::KILL)).context("can't follow our parent")?;
    // It may have been gone before that, and then nothing will tell us.
    match getppid().map(Pid::as_raw_pid) == Some(parent) {
        true => Ok(()),
        false => Err(exit::with(exit::FAILED, "whoever started this is gone")),
    }
}

/// Elsewhere the closed stdin must do.
#[cfg(not(target_os = "linux"))]
fn die_with(_parent: i32) -> Result<()> {
    Ok(())
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

/// What this process may lead: what the table has, and what the configuration adds to it.
pub async fn scheduled(setup: &Setup, rowlock: &Rowlock) -> Result<Option<String>> {
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
    Ok((!parts.is_empty()).then(|| parts.join(", ")))
}

/// Says what has started.
pub fn block(
    setup: &Setup,
    created: bool,
    handlers: &[(Kind, Runner)],
    options: &Options,
    scheduled: Option<String>,
    http: Option<&Http>,
) {
    let kinds: Vec<_> = handlers
        .iter()
        .map(|(kind, _)| kind.name.as_str())
        .collect();
    let queues: Vec<_> = options.queues.iter().map(|queue| queue.as_str()).collect();
    let store = match &setup.store {
        Store::Sqlite(address) => format!(
            "sqlite {} (WAL, synchronous={})",
            show::path(&address.path),
            address.synchronous.as_str()
        ),
        Store::Postgres(address) => address.to_string(),
    };
    out::note(&format!(
        "rowlock {}\n  store      {store}, schema {}{}\n  \
         worker     {} slot{}, lease {}, kinds {}{}",
        env!("CARGO_PKG_VERSION"),
        setup.store.latest(),
        if created { " created" } else { "" },
        options.concurrency,
        if options.concurrency == 1 { "" } else { "s" },
        show::span(options.lease),
        kinds.join(" "),
        match queues.is_empty() {
            true => String::new(),
            false => format!(", queues {}", queues.join(" ")),
        },
    ));
    if let Some(scheduled) = scheduled {
        out::note(&format!("  scheduler  {scheduled}"));
    }
    if let Some(http) = http {
        out::note(&http.line());
    }
}

/// What the configuration has a worker do.
pub struct Declared {
    pub handlers: Vec<(Kind, Runner)>,
    pub pairs: Vec<Pair>,
    pub crons: Vec<Cron>,
}

/// Works until a signal asks to stop, or until nothing is due with `once`.
pub async fn serve(
    rowlock: Rowlock,
    declared: Declared,
    options: Options,
    http: Option<Http>,
    mut signals: Signals,
) -> Result<Tally> {
    let grace = options.grace;
    let clock = rowlock.clock().clone();
    let mut side = Tasks::default();
    let (ending, end) = oneshot::channel::<()>();
    if let Some(http) = http {
        let end = async { end.await.unwrap_or(()) };
        let serving = http.serve(rowlock.clone(), options.pulse.clone(), end);
        side.start("rowlock-http", serving);
    }
    let mut worker = Worker::new(rowlock, ()).options(options);
    for (kind, runner) in declared.handlers {
        worker = worker.handle_kind(kind, runner);
    }
    worker = declared.pairs.into_iter().fold(worker, Worker::pair);
    worker = declared.crons.into_iter().fold(worker, Worker::cron);
    let stopper = Stopper::default();
    let work = worker.run_until(stopper.stop());
    tokio::pin!(work);
    let mut asked = false;
    let tally = loop {
        tokio::select! {
            worked = &mut work => break worked?,
            () = signals.next() => {}
        }
        stopper.ask();
        match asked {
            false => tracing::info!(
                "stopping, running jobs have {} (again: at once)",
                show::span(grace)
            ),
            true => tracing::info!("stopping at once, running jobs go back"),
        }
        asked = true;
    };
    drop(ending);
    // Whoever reads slowly doesn't keep a worker from ending.
    clock.timeout(LAST_ANSWERS, side.join()).await;
    let (settled, lost) = (tally.settled, tally.lost);
    tracing::info!(settled, lost, "stopped");
    Ok(tally)
}
