//! What `top` takes.

use std::time::Duration;

use clap::Args;
use rowlock::job::parse_duration;

#[derive(Debug, Args)]
#[command(after_help = "\
Keys: q quit, Tab or 1 to 6 panels, arrows or j and k move, Enter details, / filter, p pause or
resume a queue, r retry and c cancel a job (all three ask first), space freeze, + and - how
often, ? help.
For programs there are `stats --json` and the /metrics of `work --listen`.

Examples:
  rowlock top
  rowlock top --every 500ms --url postgres://localhost/app
  NO_COLOR=1 rowlock top")]
pub struct Top {
    /// How often to look at the store, from 100ms on
    #[arg(long, value_name = "DURATION", value_parser = every, default_value = "2s")]
    pub every: Duration,
}

fn every(text: &str) -> Result<Duration, String> {
    let every = parse_duration(text).map_err(|why| why.to_string())?;
    match every < Duration::from_millis(100) {
        true => Err("that is too often: write 100ms or more".to_owned()),
        false => Ok(every),
    }
}
