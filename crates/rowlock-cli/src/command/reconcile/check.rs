//! `rowlock reconcile check`: do the queries have an index, and every state of the rows an owner?

use anyhow::Result;
use rowlock::engine::Examined;
use rowlock::{Error, Name, Pair, Rowlock};
use serde::Serialize;

use super::run::{rows, watched};
use super::{chosen, source, with_source};
use crate::open::{Access, Setup};
use crate::{exit, out, show};

/// Something that should be mended.
#[derive(Serialize)]
struct Remark<'a> {
    name: &'a Name,
    what: String,
    remedy: Option<String>,
}

pub async fn run(setup: &Setup, names: &[Name], json: bool) -> Result<u8> {
    let rowlock = setup.open(Access::Write).await?;
    let stored = rowlock.schedule().pairs().await?;
    let mut pairs: Vec<Pair> = Vec::new();
    // What isn't written yet can be checked before it is.
    for pair in setup.pairs()? {
        let written = stored.iter().any(|row| row.pair.name == pair.name);
        if !written && (names.is_empty() || names.contains(&pair.name)) {
            pairs.push(pair);
        }
    }
    let written: Vec<Name> = names
        .iter()
        .filter(|name| pairs.iter().all(|pair| pair.name != **name))
        .cloned()
        .collect();
    if names.is_empty() || !written.is_empty() {
        for row in chosen(setup, stored, &written)? {
            pairs.push(with_source(setup, row.pair)?);
        }
    }
    pairs.sort_by(|one, other| one.name.cmp(&other.name));
    if pairs.is_empty() && !json {
        out::note("no pair is declared: write a [[pair]] into rowlock.toml");
    }
    let mut code = exit::OK;
    for pair in &pairs {
        let remarks = check(setup, &rowlock, pair).await?;
        if !remarks.is_empty() {
            code = exit::FINDINGS;
        }
        say(pair, &remarks, json)?;
    }
    Ok(code)
}

async fn check<'a>(setup: &Setup, rowlock: &Rowlock, pair: &'a Pair) -> Result<Vec<Remark<'a>>> {
    let bar = indicatif::ProgressBar::hidden();
    let look = async {
        let source = source(rowlock, pair)?;
        source.columns(pair).await?;
        anyhow::Ok(source.examine(pair).await?)
    };
    let examined = match watched(rowlock, &bar, pair.name.as_str(), look).await {
        Ok(examined) => examined,
        Err(why) => {
            return match why.downcast::<Error>() {
                Ok(Error::Invalid(words)) => Ok(vec![Remark {
                    name: &pair.name,
                    what: words,
                    remedy: Some("mend its query".to_owned()),
                }]),
                Ok(why) => Err(why.into()),
                Err(why) => Err(why),
            };
        }
    };
    let noted = rowlock
        .lead()
        .uncovered(&pair.name, examined.unclaimed.clone())
        .await;
    match noted {
        // It is in the configuration only, so far.
        Ok(()) | Err(Error::NotFound(_)) => {}
        Err(why) => return Err(why.into()),
    }
    Ok(remarks(setup, pair, examined))
}

fn remarks<'a>(setup: &Setup, pair: &'a Pair, examined: Examined) -> Vec<Remark<'a>> {
    let remark = |what, remedy| Remark {
        name: &pair.name,
        what,
        remedy,
    };
    let mut all = Vec::new();
    for plan in examined.plans {
        let asks = match plan.statement.as_str() {
            "ask" => "asking for single rows",
            _ => "a tick",
        };
        all.push(remark(format!("{asks} {}", plan.what), plan.remedy));
    }
    let table = pair.states.as_ref().map_or("", |states| &states.table);
    let apply = setup.command("apply");
    for (state, count) in examined.unclaimed {
        let what = format!(
            "{} of {table} in state {state}, which nobody claims",
            rows(count)
        );
        let remedy =
            format!("name it among pending, terminal or other in the pair's states, then {apply}");
        all.push(remark(what, Some(remedy)));
    }
    for (state, count) in examined.missed {
        let what = format!(
            "{} of {table} in state {state}, which is declared pending, and the query misses them",
            rows(count)
        );
        let remedy = format!("widen the query, or name the state among other, then {apply}");
        all.push(remark(what, Some(remedy)));
    }
    all
}

fn say(pair: &Pair, remarks: &[Remark<'_>], json: bool) -> Result<()> {
    if json {
        return remarks.iter().try_for_each(out::json);
    }
    if remarks.is_empty() {
        return out::line(&format!("ok    {}", pair.name));
    }
    for remark in remarks {
        out::line(&format!(
            "warn  {}  {}",
            pair.name,
            show::text(&remark.what)
        ))?;
        if let Some(remedy) = &remark.remedy {
            out::line(&format!("      remedy: {}", show::text(remedy)))?;
        }
    }
    Ok(())
}
