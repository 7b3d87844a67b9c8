//! One file per verb. In: what was typed. Out: an exit code, or an error that has one.

mod apply;
mod bench;
pub mod budget;
pub mod bulk;
mod completions;
pub mod cron;
mod dashboard;
mod demo;
mod dev;
pub mod doctor;
pub mod drain;
pub mod enqueue;
pub mod guard;
mod init;
mod job;
pub mod job_change;
mod job_list;
mod job_show;
mod man;
mod migrate;
mod queue;
pub mod reconcile;
mod stats;
pub mod switch;
mod top;
mod verify;
mod work;

pub use job_show::not_found as job_not_found;

use anyhow::Result;

use crate::cli::{Cli, Demo, Migrate, Verb};
use crate::open::Setup;

/// Does what was typed.
pub async fn run(cli: Cli) -> Result<u8> {
    let Cli { global, verb } = cli;
    let json = global.json;
    // These need no store, so a broken configuration doesn't stop them.
    match &verb {
        Verb::Init => return init::run(&global),
        Verb::Migrate(Migrate::Sql { part }) if global.url.is_some() && global.config.is_none() => {
            return migrate::sql_of(&global, part.as_deref(), json);
        }
        Verb::Completions { shell } => return completions::run(*shell),
        Verb::Man { dir } => return man::run(dir.as_deref()),
        // It has a store of its own, and never touches the user's.
        Verb::Demo(Demo::Crash(how)) => return demo::run(how, &global, json).await,
        Verb::Bench(what) => return bench::run(what, &global, json).await,
        _ => {}
    }
    let setup = Setup::read(&global)?;
    match verb {
        Verb::Init => init::run(&global),
        Verb::Dev(how) => dev::run(&setup, &how).await,
        Verb::Apply => apply::run(&setup, json).await,
        Verb::Migrate(what) => migrate::run(&setup, &what, json).await,
        Verb::Enqueue(what) if what.from.is_some() => bulk::run(&setup, &what, json).await,
        Verb::Enqueue(what) => enqueue::run(&setup, *what, json).await,
        Verb::Work(how) => work::run(&setup, how, json).await,
        Verb::Job(what) => job::run(&setup, what, json).await,
        Verb::Queue(what) => queue::run(&setup, what, json).await,
        Verb::Switch(what) => switch::run(&setup, what, json).await,
        Verb::Reconcile(what) => reconcile::run(&setup, what, json).await,
        Verb::Cron(what) => cron::run(&setup, what, json).await,
        Verb::Drain(what) => drain::run(&setup, what, json).await,
        Verb::Guard(how) => guard::run(&setup, &how, json).await,
        Verb::Budget(what) => budget::run(&setup, what, json).await,
        Verb::Dashboard(how) => dashboard::run(&setup, &how).await,
        Verb::Stats => stats::run(&setup, json).await,
        Verb::Top(how) => top::run(&setup, &how, json).await,
        Verb::Doctor(how) => doctor::run(&setup, &how, json).await,
        Verb::Verify(what) => verify::run(&setup, &what, json).await,
        Verb::Bench(what) => bench::run(&what, &global, json).await,
        Verb::Completions { shell } => completions::run(shell),
        Verb::Man { dir } => man::run(dir.as_deref()),
        Verb::Demo(Demo::Crash(how)) => demo::run(&how, &global, json).await,
    }
}
