//! Where pairs' rows are: beside the jobs, or in databases that this process was told of.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Pair;
use crate::engine::{Lead, Source};
use crate::error::{Error, Result};
use crate::job::Name;

/// The databases that pairs read. The table of pairs keeps no address with a password, so a pair of
/// another database is run only by processes that declare it themselves.
#[derive(Clone)]
pub struct Sources {
    here: Arc<dyn Source>,
    elsewhere: BTreeMap<Name, Arc<dyn Source>>,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.elsewhere.keys()).finish()
    }
}

impl Sources {
    /// Those of `pairs`; nothing is connected yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an address of no engine.
    pub fn new(lead: &dyn Lead, pairs: &[Pair]) -> Result<Self> {
        let mut elsewhere = BTreeMap::new();
        for pair in pairs {
            if let Some(url) = &pair.source {
                let source = open(url).map_err(|why| {
                    Error::invalid(format!("pair {}: its source: {why}", pair.name))
                })?;
                elsewhere.insert(pair.name.clone(), source);
            }
        }
        Ok(Self {
            here: lead.source(),
            elsewhere,
        })
    }

    /// The pair's; nothing when this process doesn't know its address.
    #[must_use]
    pub fn of(&self, pair: &Pair) -> Option<&Arc<dyn Source>> {
        match pair.source {
            None => Some(&self.here),
            Some(_) => self.elsewhere.get(&pair.name),
        }
    }
}

fn open(url: &str) -> Result<Arc<dyn Source>> {
    let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
    match scheme {
        #[cfg(feature = "sqlite")]
        "sqlite" => crate::engine::sqlite::source(url),
        #[cfg(feature = "postgres")]
        "postgres" | "postgresql" => crate::engine::postgres::source(url),
        // The address may have a password in it: no more than its scheme is repeated.
        _ => Err(Error::invalid(format!(
            "{scheme:?} is not a database this build knows: write sqlite:PATH or postgres://..."
        ))),
    }
}
