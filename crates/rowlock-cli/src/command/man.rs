//! `rowlock man`: the manual, made from what can be typed.

use std::path::Path;

use anyhow::{Context, Result};
use clap::CommandFactory;

use crate::cli::Cli;
use crate::{exit, out, show};

pub fn run(dir: Option<&Path>) -> Result<u8> {
    let Some(dir) = dir else {
        let mut page = Vec::new();
        clap_mangen::Man::new(Cli::command()).render(&mut page)?;
        out::lines(&String::from_utf8(page)?)?;
        return Ok(exit::OK);
    };
    let folder = show::path(dir);
    std::fs::create_dir_all(dir).with_context(|| format!("can't make the folder {folder}"))?;
    clap_mangen::generate_to(Cli::command(), dir)
        .with_context(|| format!("can't write the manual to {folder}"))?;
    Ok(exit::OK)
}
