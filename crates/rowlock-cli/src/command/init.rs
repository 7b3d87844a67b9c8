//! `rowlock init`: a configuration to start from.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::cli::Global;
use crate::open::CONFIG;
use crate::{exit, out, rights, show};

const STARTER: &str = include_str!("init.toml");

pub fn run(global: &Global) -> Result<u8> {
    let path = global
        .config
        .clone()
        .unwrap_or_else(|| PathBuf::from(CONFIG));
    let shown = show::path(&path);
    // Made only if it isn't there, in one step: nobody's file is ever written over. A password may come into it.
    let mut file = match rights::private().open(&path) {
        Ok(file) => file,
        Err(why) if why.kind() == ErrorKind::AlreadyExists => {
            return Err(exit::with(
                exit::CONFLICT,
                format!("{shown} exists already and was left as it is: move it away first"),
            ));
        }
        Err(why) => return Err(why).with_context(|| format!("can't write {shown}")),
    };
    file.write_all(STARTER.as_bytes())
        .with_context(|| format!("can't write {shown}"))?;
    match global.json {
        true => out::json(&serde_json::json!({ "path": path.display().to_string() }))?,
        false => out::line(&format!(
            "wrote {shown}: `rowlock work` runs the kind hello, `rowlock enqueue hello` adds one"
        ))?,
    }
    Ok(exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rowlock::config::Config;

    fn uncommented(text: &str) -> String {
        let lines = text.lines().map(|line| match line.strip_prefix("# ") {
            Some(setting) if setting.contains(" = ") || setting.starts_with('[') => setting,
            _ => line,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_starter_is_valid_as_it_is_and_with_every_comment_taken_away() {
        let plain = Config::parse(STARTER, "init.toml").unwrap();
        assert_eq!(plain.runners().unwrap().len(), 1);
        let full = Config::parse(&uncommented(STARTER), "init.toml").unwrap();
        assert_eq!(full.runners().unwrap().len(), 3);
        let pair = &full.pairs().unwrap()[0];
        let mut plainest = rowlock::Pair::new(pair.kind.clone(), pair.key.clone(), &pair.query);
        plainest.states.clone_from(&pair.states);
        assert_eq!(*pair, plainest);
        let route = &full.routes().unwrap()[0];
        let plainest = rowlock::drain::Route::to(&route.to).unwrap();
        assert_eq!(
            (&route.name, route.ahead, route.batch),
            (&plainest.name, plainest.ahead, plainest.batch)
        );
        assert_eq!(full.guard(), Some(rowlock::guard::Policy::default()));
        assert_eq!(full.limits.output_bytes, plain.limits.output_bytes);
        assert_eq!(full.worker.concurrency, plain.worker.concurrency);
        assert_eq!(full.worker.lease, plain.worker.lease);
        assert_eq!(full.retention, plain.retention);
    }
}
