//! `rowlock bench`: measures this machine, and checks the goals.

use std::path::Path;

use anyhow::{Context, Result};
use rowlock::Clock;
use rowlock::run::Signals;
use rowlock_bench::postgres::pinned;
use rowlock_bench::report::{Report, chart, horizon_chart, missed, pinned_chart, table};
use rowlock_bench::sqlite::{self, Part};
use rowlock_bench::{
    Machine, Measurement, Pace, Place, Run, Size, api, horizon, pages, pairs, postgres, redis, soak,
};

use tokio::signal::unix::{SignalKind, signal};

use crate::cli::{
    Bench, BenchPart, BenchPinned, BenchPostgres, BenchRedis, BenchSoak, BenchSqlite, Global,
};
use crate::{exit, out, show};

pub async fn run(what: &Bench, global: &Global, json: bool) -> Result<u8> {
    match what {
        Bench::Sqlite(how) => measure(how, What::Sqlite, json).await,
        Bench::Postgres(BenchPostgres {
            only,
            pinned,
            step,
            how,
        }) => {
            let server = needed(global, "postgres")?;
            let what = match pinned {
                true => What::Pinned(server, steps(step)),
                false => What::Postgres(server, parts(only)),
            };
            measure(how, what, json).await
        }
        Bench::Api(how) => measure(how, What::Api(needed(global, "api")?), json).await,
        Bench::Pages(how) => measure(how, What::Pages(needed(global, "pages")?), json).await,
        Bench::Pairs(how) => measure(how, What::Pairs(server(global)), json).await,
        Bench::Redis(BenchRedis { to, how }) => {
            let what = What::Redis(to.as_deref(), server(global));
            measure(how, what, json).await
        }
        Bench::Soak(BenchSoak { minutes, how }) => {
            let server = needed(global, "soak")?;
            measure(how, What::Soak(server, *minutes), json).await
        }
        Bench::Horizon(how) => {
            let server = needed(global, "horizon")?;
            measure(how, What::Horizon(server), json).await
        }
        Bench::SoakWorker { tables } => {
            soak::work(needed(global, "soak-worker")?, tables).await?;
            Ok(exit::OK)
        }
        Bench::Part {
            path,
            produce,
            rarely,
        } => {
            let pace = if *rarely { Pace::Rarely } else { Pace::Often };
            let part = produce.map_or(Part::Worker, |jobs| Part::Producer(pace(jobs)));
            part.play(path).await?;
            Ok(exit::OK)
        }
    }
}

/// The server that is named; a file is never measured in.
fn server(global: &Global) -> Option<&str> {
    let url = global.url.as_deref()?;
    let is_server = url.starts_with("postgres:") || url.starts_with("postgresql:");
    is_server.then_some(url)
}

fn needed<'a>(global: &'a Global, bench: &str) -> Result<&'a str> {
    let why = format!("name a server: rowlock bench {bench} --url postgres://localhost/app");
    server(global).ok_or_else(|| exit::with(exit::USAGE, why))
}

/// What is measured: on which server, and with which Redis.
enum What<'a> {
    Sqlite,
    Postgres(&'a str, Vec<postgres::Part>),
    Pinned(&'a str, Vec<pinned::Step>),
    Pairs(Option<&'a str>),
    Api(&'a str),
    Pages(&'a str),
    Redis(Option<&'a str>, Option<&'a str>),
    Soak(&'a str, u64),
    Horizon(&'a str),
}

impl What<'_> {
    fn server(&self) -> Option<&str> {
        match self {
            Self::Sqlite => None,
            Self::Pairs(server) | Self::Redis(_, server) => *server,
            Self::Postgres(server, _)
            | Self::Pinned(server, _)
            | Self::Api(server)
            | Self::Pages(server)
            | Self::Soak(server, _)
            | Self::Horizon(server) => Some(server),
        }
    }

    /// Nothing when it was stopped.
    async fn figures(
        &self,
        quick: bool,
        place: &Place,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<Vec<Measurement>>> {
        match self {
            Self::Sqlite => {
                let size = sized(quick, Size::quick, Size::full);
                tokio::select! {
                    measured = sqlite::run(&size, place, &out::note) => measured.map(Some),
                    // The folder goes with the place.
                    () = stop => Ok(None),
                }
            }
            Self::Postgres(server, parts) => {
                let size = sized(quick, postgres::Size::quick, postgres::Size::full);
                postgres::run(size, parts, server, &out::note, stop).await
            }
            Self::Pinned(server, steps) => {
                let size = sized(quick, pinned::Size::quick, pinned::Size::full);
                postgres::run_pinned(size, steps, server, &out::note, stop).await
            }
            Self::Pairs(server) => {
                let size = sized(quick, pairs::Size::quick, pairs::Size::full);
                pairs::run(size, place, *server, &out::note, stop).await
            }
            Self::Api(server) => {
                let size = sized(quick, api::Size::quick, api::Size::full);
                api::run(size, server, &out::note, stop).await
            }
            Self::Pages(server) => {
                let size = sized(quick, pages::Size::quick, pages::Size::full);
                pages::run(size, place, server, &out::note, stop).await
            }
            Self::Soak(server, minutes) => {
                let size = match quick {
                    true => soak::Size::quick(),
                    false => soak::Size::minutes(*minutes),
                };
                let measured = soak::run(size, server, &out::note, stop).await?;
                Ok(measured.map(|made| vec![made]))
            }
            Self::Horizon(server) => {
                let size = sized(quick, horizon::Size::quick, horizon::Size::full);
                horizon::run(size, server, &out::note, stop).await
            }
            Self::Redis(to, server) => {
                let size = sized(quick, redis::Size::quick, redis::Size::full);
                redis::run(size, place, *to, *server, &out::note, stop).await
            }
        }
    }
}

/// The parts that are named, each once; without any all of them.
fn parts(only: &[BenchPart]) -> Vec<postgres::Part> {
    let is_wanted = |part: &postgres::Part| {
        let named = match part {
            postgres::Part::Enqueue => BenchPart::Enqueue,
            postgres::Part::Drain => BenchPart::Drain,
            postgres::Part::Start => BenchPart::Start,
            postgres::Part::Idle => BenchPart::Idle,
            postgres::Part::History => BenchPart::History,
        };
        only.is_empty() || only.contains(&named)
    };
    postgres::PARTS.into_iter().filter(is_wanted).collect()
}

/// The same for what is watched under a transaction that stays open.
fn steps(named: &[BenchPinned]) -> Vec<pinned::Step> {
    let is_wanted = |step: &pinned::Step| {
        let of = match step {
            pinned::Step::Snapshot => BenchPinned::Snapshot,
            pinned::Step::Writer => BenchPinned::Writer,
            pinned::Step::Keys => BenchPinned::Keys,
            pinned::Step::Aside => BenchPinned::Aside,
        };
        named.is_empty() || named.contains(&of)
    };
    pinned::STEPS.into_iter().filter(is_wanted).collect()
}

fn sized<S>(quick: bool, small: fn() -> S, full: fn() -> S) -> S {
    match quick {
        true => small(),
        false => full(),
    }
}

/// Removes what runs have left that are no more.
async fn clean(what: &What<'_>, json: bool) -> Result<u8> {
    let (mut removed, mut kept) = (Vec::new(), 0);
    if let Some(server) = what.server() {
        for (left, done) in rowlock_bench::clean(server).await? {
            match done {
                Ok(()) => removed.push(left),
                Err(why) => {
                    out::warn(&format!("{left} is left over: {why:#}"));
                    kept += 1;
                }
            }
        }
    }
    if let What::Redis(Some(to), _) = what {
        let keys = redis::clean(to).await?;
        if keys > 0 {
            removed.push(format!("{keys} keys of Redis"));
        }
    }
    match json {
        true => out::json(&serde_json::json!({ "removed": removed }))?,
        false if removed.is_empty() => out::line("nothing was left over")?,
        false => removed
            .iter()
            .try_for_each(|each| out::line(&format!("removed {each}")))?,
    }
    Ok(if kept == 0 { exit::OK } else { exit::FAILED })
}

async fn measure(how: &BenchSqlite, what: What<'_>, json: bool) -> Result<u8> {
    if how.clean {
        return clean(&what, json).await;
    }
    // From here on a signal leaves nothing behind. SIGHUP is a terminal that was closed.
    let mut signals = Signals::listen()?;
    let mut closed = signal(SignalKind::hangup()).context("can't wait for signals")?;
    let _run = match what.server() {
        Some(server) => Some(Run::begin(server, &out::note).await?),
        None => None,
    };
    let place = Place::below(&how.dir)?;
    let mut machine = Machine::here(place.path());
    if let Some(server) = what.server() {
        machine = machine.beside(server).await?;
    }
    tell(&machine, &how.dir, how.quick);
    let stop = async {
        tokio::select! {
            () = signals.next() => {}
            _ = closed.recv() => {}
        }
    };
    let measured = what.figures(how.quick, &place, stop).await?;
    let stopped = || exit::with(exit::FAILED, "stopped before the end");
    let all = measured.ok_or_else(stopped)?;
    if json {
        for each in &all {
            out::json(each)?;
        }
    } else {
        out::lines(&table(&all))?;
    }
    if let Some(folder) = &how.out {
        keep(folder, &machine, &all)?;
    }
    let mut missed = missed(&all);
    if !machine.has_disk() {
        missed.push("nothing was written to a disk: this proves nothing".to_owned());
    }
    if !machine.optimised {
        missed.push("built without optimisation: this proves nothing".to_owned());
    }
    if !how.check || missed.is_empty() {
        return Ok(exit::OK);
    }
    for each in missed {
        out::warn(&each);
    }
    Ok(exit::FINDINGS)
}

fn tell(machine: &Machine, dir: &Path, quick: bool) {
    let server = machine.postgres.as_ref();
    out::note(&format!(
        "rowlock {} ({}), SQLite {}{}, {} cpus, {} on {}",
        machine.version,
        machine.commit.as_deref().unwrap_or("commit unknown"),
        machine.sqlite,
        server.map_or_else(String::new, |told| format!(", PostgreSQL {told}")),
        machine.cpus,
        show::path(dir),
        machine.file_system,
    ));
    if !machine.has_disk() {
        out::warn(
            "this folder is in memory, where a commit waits for nothing: choose a disk with --dir",
        );
    }
    if machine.is_busy() && !quick {
        let load = machine.load.unwrap_or_default();
        out::warn(&format!(
            "the machine is busy with other things (load {load}): figures will be lower and vary"
        ));
    }
    if !machine.optimised && !quick {
        out::warn("this rowlock was built without optimisation: use cargo build --release");
    }
}

fn keep(folder: &Path, machine: &Machine, all: &[Measurement]) -> Result<()> {
    let report = Report {
        machine,
        measured_at: Clock::system().now(),
        measurements: all,
    };
    let mut text = serde_json::to_string_pretty(&report).context("can't write JSON")?;
    text.push('\n');
    let name = all.first().map_or("nothing", |first| first.bench);
    let mut files = vec![(format!("{name}.json"), text)];
    let drawn = match name {
        "sqlite" => Some(chart(all, machine)),
        "horizon" => Some(horizon_chart(all, machine)),
        "postgres_pinned" => Some(pinned_chart(all, machine)),
        _ => None,
    };
    files.extend(drawn.map(|svg| (format!("{name}.svg"), svg)));
    std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("can't write {}", path.display()))?;
        out::note(&format!("wrote {}", show::path(&path)));
    }
    Ok(())
}
