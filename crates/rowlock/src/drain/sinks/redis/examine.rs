//! What is worth knowing about a Redis before jobs go through it.

use redis::Value;

use super::address::Address;
use super::connect::{Link, field, version};
use crate::error::{Error, Result};
use crate::io::Io;

/// What was found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Examination {
    /// The server's version.
    pub version: String,
    /// The memory it uses, in bytes.
    pub used_memory: u64,
    /// The most it may use, in bytes; nothing when it isn't limited.
    pub max_memory: Option<u64>,
    /// The number of the store whose jobs are there; nothing when there are none.
    pub owner: Option<u64>,
    /// What should be changed.
    pub concerns: Vec<Concern>,
}

/// Something that should be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Concern {
    /// What sort of thing it is.
    pub worry: Worry,
    /// In a sentence.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

/// The sorts of concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Worry {
    /// It throws keys away when it is full.
    Evicts,
    /// A restart loses everything; it is found and sent again.
    NoPersistence,
    /// There is hardly any room left.
    AlmostFull,
    /// Somebody else writes below the prefix.
    ForeignKeys,
}

/// The share of its memory above which it counts as almost full, in percent.
const ALMOST: u64 = 90;
/// How many keys are looked at at once, how often, and how many foreign ones are named.
const PAGE: usize = 1_000;
const PAGES: usize = 1_000;
const NAMED: usize = 5;

/// The keys below the prefix, and those that a name follows.
const OURS: [(&str, &str); 18] = [
    ("asked", "hash"),
    ("begun", "hash"),
    ("collector", "string"),
    ("dirty", "string"),
    ("done:", "set"),
    ("evicted", "string"),
    ("held", "hash"),
    ("lanes", "set"),
    ("owner", "string"),
    ("parcel:", "list"),
    ("pushed", "string"),
    ("ready:", "list"),
    ("reports", "stream"),
    ("resent", "string"),
    ("running:", "set"),
    ("tally", "hash"),
    ("worker:", "string"),
    ("workers", "set"),
];

/// Asks a Redis about itself; nothing is changed there.
///
/// # Errors
/// [`Error::Unavailable`] and [`Error::Unreachable`] as for any use of it.
pub async fn examine(address: &Address) -> Result<Examination> {
    let link = Link::new(address.clone(), Io::start("rowlock-redis")?);
    let info: String = link.ask(&redis::cmd("INFO"), "info").await?;
    let number = |name| field(&info, name).and_then(|value| value.parse::<u64>().ok());
    let used_memory = number("used_memory").unwrap_or(0);
    let max_memory = number("maxmemory").filter(|max| *max > 0);
    let mut concerns = Vec::new();
    let policy = field(&info, "maxmemory_policy").unwrap_or("noeviction");
    if policy != "noeviction" {
        concerns.push(Concern {
            worry: Worry::Evicts,
            what: format!(
                "Redis at {address} throws keys away when it is full (maxmemory-policy {policy}): \
                 jobs that wait there would have to be found lost and sent again"
            ),
            remedy: "CONFIG SET maxmemory-policy noeviction, and the same in redis.conf".to_owned(),
        });
    }
    if number("aof_enabled") == Some(0) && saves_nothing(&link).await? {
        concerns.push(Concern {
            worry: Worry::NoPersistence,
            what: format!(
                "Redis at {address} keeps nothing on disk: a restart loses what was sent, and what \
                 runs at that moment runs twice"
            ),
            remedy: "CONFIG SET appendonly yes, and the same in redis.conf".to_owned(),
        });
    }
    if let Some(max) = max_memory.filter(|max| used_memory / ALMOST > max / 100) {
        concerns.push(Concern {
            worry: Worry::AlmostFull,
            what: format!(
                "Redis at {address} uses {used_memory} of {max} bytes: no job can be sent when it is full"
            ),
            remedy: "raise maxmemory, or lower `ahead` of the routes that go there".to_owned(),
        });
    }
    concerns.extend(foreign_keys(&link).await?);
    Ok(Examination {
        version: version(&info).to_owned(),
        used_memory,
        max_memory,
        owner: owner(&link).await?,
        concerns,
    })
}

/// What can't be read is no store's number, and told with the foreign keys.
async fn owner(link: &Link) -> Result<Option<u64>> {
    let mut get = redis::cmd("GET");
    get.arg(format!("{}:owner", link.address().keys()));
    match link.ask::<Option<String>>(&get, "owner").await {
        Ok(owner) => Ok(owner.and_then(|owner| owner.parse().ok())),
        Err(Error::Schema(_)) => Ok(None),
        Err(why) => Err(why),
    }
}

/// Whether no snapshot is ever taken. A server that doesn't tell its settings is somebody else's
/// business.
async fn saves_nothing(link: &Link) -> Result<bool> {
    let mut get = redis::cmd("CONFIG");
    get.arg("GET").arg("save");
    match link.ask::<Vec<String>>(&get, "settings").await {
        Ok(settings) => Ok(settings.get(1).is_some_and(String::is_empty)),
        Err(Error::Unreachable(_) | Error::Bug(_)) => Ok(false),
        Err(why) => Err(why),
    }
}

async fn foreign_keys(link: &Link) -> Result<Option<Concern>> {
    let prefix = format!("{}:", link.address().keys());
    let (mut cursor, mut foreign) = (0_u64, Vec::new());
    for _ in 0..PAGES {
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(format!("{prefix}*"));
        scan.arg("COUNT").arg(PAGE);
        let (next, keys): (u64, Vec<Value>) = link.ask(&scan, "scan").await?;
        for key in keys {
            let key: String = redis::from_redis_value(key).unwrap_or_default();
            let mut ask = redis::cmd("TYPE");
            let found: String = link.ask(ask.arg(&key), "type").await?;
            let rest = key.strip_prefix(&prefix).unwrap_or_default();
            // One that has gone meanwhile has no type.
            if found != "none" && !is_ours(rest, &found) {
                foreign.push(key);
            }
        }
        cursor = next;
        if cursor == 0 || foreign.len() >= NAMED {
            break;
        }
    }
    if foreign.is_empty() {
        return Ok(None);
    }
    foreign.sort();
    foreign.truncate(NAMED);
    Ok(Some(Concern {
        worry: Worry::ForeignKeys,
        what: format!(
            "keys at {} were not made by Rowlock: {}",
            link.address(),
            foreign.join(", ")
        ),
        remedy: "choose another prefix with ?prefix=NAME in the URL, or remove them".to_owned(),
    }))
}

fn is_ours(rest: &str, found: &str) -> bool {
    OURS.iter().any(|(name, kind)| {
        let named = match name.ends_with(':') {
            true => rest.starts_with(name),
            false => rest == *name,
        };
        named && found == *kind
    })
}
