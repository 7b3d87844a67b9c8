//! The `rowlock` binary: what an operator types.
//!
//! [`cli`] says what can be typed, `command/` has one file per verb, [`open`] finds the
//! configuration and the store, [`http`] answers whoever watches a worker, [`web`] whoever
//! looks at the store and changes it, [`out`] and [`show`] are all that writes to the screen beside
//! `command/top`, which draws on it, and
//! [`exit`] turns every error into an exit code.

mod cli;
mod command;
mod exit;
mod http;
mod log;
mod open;
mod out;
mod rights;
mod show;
mod web;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(usage) => {
            // Help for a closed pipe is help that nobody reads.
            let _ = usage.print();
            return ExitCode::from(u8::try_from(usage.exit_code()).unwrap_or(exit::USAGE));
        }
    };
    let code = match run(cli) {
        Ok(code) => ExitCode::from(code),
        Err(why) => exit::report(&why),
    };
    log::flush();
    code
}

fn run(cli: cli::Cli) -> anyhow::Result<u8> {
    log::start(cli.global.log, &cli.verb)?;
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(command::run(cli))
}
