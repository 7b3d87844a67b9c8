//! `rowlock drain run`: due jobs go on, and what becomes of them comes back.

use anyhow::Result;
use rowlock::drain::Route;
use rowlock::engine::Applied;
use rowlock::run::Stopper;
use rowlock::verify::Ran;
use rowlock::{Kind, Name, Rowlock, reconcile};
use serde_json::json;

use super::{check, drain, line, options, unknown};
use crate::cli::DrainRun;
use crate::command::work::{Beside, block, scheduler_line, store_line};
use crate::open::{Access, Setup, Wait, Waited};
use crate::{exit, out, show};

/// A second signal changes nothing: what was sent is held by its route, not by this process.
const STOPPING: [&str; 2] = [
    "stopping, what was sent is left to the next drain",
    "stopping already",
];

pub async fn run(setup: &Setup, how: DrainRun, json: bool) -> Result<u8> {
    let routes = chosen(setup, &how.routes)?;
    let pairs = setup.pairs()?;
    let ran = how.ran.map(Ran::open).transpose()?;
    let mut wait = Wait::new(setup, how.wait, false);
    let mut before = None;
    let open = async || {
        let (rowlock, created) = setup.open_quietly(Access::Write).await?;
        declare_routes(setup, &rowlock, &routes, &mut before).await?;
        let scheduler = scheduler_line(setup, &rowlock).await?;
        Ok((rowlock, created, scheduler))
    };
    let store = Waited::Store(&setup.store);
    let (rowlock, created, scheduler) = wait.until(&store, open).await?;
    let mut beside = Beside::listen(setup, how.listen).await?;
    drop(wait);
    if !how.volume.quiet {
        let mut lines = vec![store_line(setup, created)];
        lines.extend(routes.iter().map(line));
        lines.extend(scheduler);
        block(&lines, beside.http.as_ref());
    }
    let options = options(setup, ran);
    let clock = rowlock.clock().clone();
    let answering = beside.answer(Some(rowlock.clone()), clock, options.pulse.clone());
    let stopper = Stopper::default();
    let drain = drain(&rowlock, routes, pairs).options(options);
    let draining = drain.run_until(stopper.stop());
    let drained = beside.see_to(draining, &stopper, STOPPING).await?;
    answering.end().await;
    let (sent, settled, lost) = (drained.sent, drained.settled, drained.lost);
    tracing::info!(sent, settled, lost, "stopped");
    if json {
        out::json(&json!({ "sent": sent, "settled": settled, "lost": lost }))?;
    }
    Ok(exit::OK)
}

/// Adds the routes, and what a drain leads, where they have no row yet; `before` are the kinds of the first try.
async fn declare_routes(
    setup: &Setup,
    rowlock: &Rowlock,
    routes: &[Route],
    before: &mut Option<Vec<Kind>>,
) -> Result<()> {
    check(setup, rowlock, routes).await?;
    let known = match before {
        Some(known) => known,
        None => before.insert(rowlock.operate().kinds().await?),
    };
    declare(setup, rowlock).await?;
    // Where nothing was written yet there is nothing to change: kinds get their rows with their route.
    let is_new = |kind: &Name| !known.iter().any(|known| known.name == *kind);
    for route in routes.iter().filter(|route| route.kinds.iter().all(is_new)) {
        let (kinds, queues) = (&route.kinds, &route.queues);
        let declared = rowlock.routes();
        declared
            .declare_route(&route.name, kinds, queues, !kinds.is_empty())
            .await?;
    }
    Ok(())
}

/// The routes that are meant; none named: all of the configuration.
fn chosen(setup: &Setup, names: &[Name]) -> Result<Vec<Route>> {
    let routes = setup.routes()?;
    if routes.is_empty() {
        return Err(no_routes(setup));
    }
    for name in names {
        if !routes.iter().any(|route| route.name == *name) {
            let known: Vec<&Name> = routes.iter().map(|route| &route.name).collect();
            return Err(unknown(setup, name, &known));
        }
    }
    let meant = |route: &Route| names.is_empty() || names.contains(&route.name);
    Ok(routes.into_iter().filter(meant).collect())
}

fn no_routes(setup: &Setup) -> anyhow::Error {
    let (place, file) = match setup.file.as_deref().map(show::path) {
        Some(file) => (format!("{file} has no [[drain]]"), file),
        None => (
            "there is no rowlock.toml in this folder".to_owned(),
            "rowlock.toml".to_owned(),
        ),
    };
    exit::with(
        exit::USAGE,
        format!(
            "{place}, so nothing is drained. Write this into {file}:\n\n  \
             [[drain]]\n  kinds = [\"send_email\"]            # or queues = [...]\n  \
             to = \"redis://127.0.0.1:6379/0\"    # or \"sidekiq+redis://...\"\n"
        ),
    )
}

/// Adds the kinds, pairs and crons that have no row yet: a drain leads them as a worker does.
async fn declare(setup: &Setup, rowlock: &Rowlock) -> Result<()> {
    let (kinds, pairs, crons) = (setup.config.kinds()?, setup.pairs()?, setup.config.crons()?);
    let schedule = rowlock.schedule();
    let mut differ: Vec<String> = Vec::new();
    let drift = rowlock.engine().add_kinds(&kinds).await?;
    differ.extend(drift.iter().map(|drift| format!("kind {}", drift.kind)));
    let declared = match pairs.is_empty() {
        true => Vec::new(),
        false => schedule.declare_pairs(&pairs, false).await?,
    };
    let changed = |done: &Applied| matches!(done, Applied::Changed(_));
    let pairs = pairs.iter().zip(&declared);
    let pairs = pairs.filter(|(_, done)| changed(done));
    differ.extend(pairs.map(|(pair, _)| format!("pair {}", pair.name)));
    let declared = reconcile::declare_crons(&*schedule, &crons, false).await?;
    let crons = crons.iter().zip(&declared);
    let crons = crons.filter(|(_, done)| changed(done));
    differ.extend(crons.map(|(cron, _)| format!("cron {}", cron.name)));
    if !differ.is_empty() {
        out::warn(&format!(
            "the database differs from the configuration in {}: the database rules, {} writes them",
            differ.join(", "),
            setup.command("apply")
        ));
    }
    Ok(())
}
