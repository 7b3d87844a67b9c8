//! `rowlock completions`: what a shell needs to complete our commands.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::cli::Cli;
use crate::{exit, out};

pub fn run(shell: Shell) -> Result<u8> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "rowlock", &mut script);
    out::lines(&String::from_utf8(script)?)?;
    Ok(exit::OK)
}
