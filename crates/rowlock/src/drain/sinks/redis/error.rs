//! What Redis answers when it doesn't do as it was asked, sorted by remedy. The only place that knows
//! its codes.

use redis::{ErrorKind, RedisError};

use super::address::Address;
use crate::error::Error;

/// The codes that a message may have in it: up to version 6 an error within a script comes as text.
const CODES: [&str; 17] = [
    "ASK",
    "BUSY",
    "CLUSTERDOWN",
    "CROSSSLOT",
    "LOADING",
    "MASTERDOWN",
    "MISCONF",
    "MOVED",
    "NOAUTH",
    "NOPERM",
    "NOREPLICAS",
    "OOM",
    "READONLY",
    "TRYAGAIN",
    "UNKILLABLE",
    "WRONGPASS",
    "WRONGTYPE",
];

/// What Redis up to 7.0, and others, say instead of NOPERM when a script may not do something.
const NO_RIGHTS: [&str; 2] = [
    "The user executing the script can't",
    "ACL failure in script",
];

/// Turns a driver's error into ours; `doing` says what was tried.
pub(super) fn map(why: &RedisError, address: &Address, doing: &str) -> Error {
    match why.kind() {
        ErrorKind::Io if why.is_timeout() => Error::Unavailable(format!(
            "Redis at {address} doesn't answer ({doing}): it or the network is stuck"
        )),
        ErrorKind::Io => {
            Error::Unavailable(format!("can't reach Redis at {address} ({doing}): {why}"))
        }
        ErrorKind::AuthenticationFailed => refused(address),
        // Seen while an old server is asked for a protocol that it doesn't know.
        ErrorKind::RESP3NotSupported => too_old(address, "5"),
        ErrorKind::Server(_) | ErrorKind::Extension => {
            let code = why.code().unwrap_or_default();
            let detail = why.detail().unwrap_or_default();
            let hidden = match NO_RIGHTS.iter().any(|words| detail.contains(words)) {
                true => Some("NOPERM"),
                false => CODES.into_iter().find(|code| names(detail, code)),
            };
            match (CODES.contains(&code), hidden) {
                (false, Some(hidden)) => sort(hidden, detail, address, doing),
                _ => sort(code, detail, address, doing),
            }
        }
        _ => Error::Bug(format!("{doing}: {why}")),
    }
}

fn sort(code: &str, detail: &str, address: &Address, doing: &str) -> Error {
    let prefix = address.prefix();
    match code {
        "NOAUTH" | "WRONGPASS" => refused(address),
        "NOPERM" if address.is_sidekiqs() => Error::Unreachable(format!(
            "Redis at {address} forbids what a drain needs: allow the user of the URL the keys queues, \
             queue:* and rowlock:sent:* of Sidekiq's namespace, and the commands +@all -@admin ({detail})"
        )),
        "MOVED" | "ASK" | "CROSSSLOT" | "CLUSTERDOWN" if address.is_sidekiqs() => {
            Error::Unreachable(format!(
                "Redis at {address} is a node of a cluster, where Sidekiq can't work: name the Redis \
                 that Sidekiq uses ({detail})"
            ))
        }
        "WRONGTYPE" if address.is_sidekiqs() => Error::Schema(format!(
            "a key at {address} is not what Sidekiq keeps there: name Sidekiq's own database and \
             namespace (/DB?prefix=NAME), or remove that one of queues, queue:* and rowlock:sent:*"
        )),
        "NOPERM" => Error::Unreachable(format!(
            "Redis at {address} forbids what a drain and its workers need: allow the user of the URL \
             the keys and the channel rowlock:{{{prefix}}}* and the commands +@all -@admin ({detail})"
        )),
        "MOVED" | "ASK" => Error::Unreachable(format!(
            "Redis at {address} is a node of a cluster, and the keys of {prefix:?} are on another one: \
             name that one in the URL (slot and address: {detail})"
        )),
        "CROSSSLOT" => Error::Unreachable(format!(
            "Redis at {address} is a node of a cluster that doesn't keep keys with the same {{...}} \
             together: use a Redis that does ({detail})"
        )),
        "CLUSTERDOWN" => Error::Unavailable(format!(
            "Redis at {address} is a node of a cluster that is down: mend the cluster, and name the \
             node that has the slot of {{{prefix}}} ({detail})"
        )),
        "WRONGTYPE" => Error::Schema(format!(
            "a key at {address} that begins with rowlock:{{{prefix}}} was not made by Rowlock: choose \
             another prefix with ?prefix=NAME in the URL, or remove that key"
        )),
        "OOM" => Error::Unavailable(format!(
            "Redis at {address} is full (maxmemory): give it more memory, or wait until workers have \
             emptied it"
        )),
        "READONLY" => Error::Unreachable(format!(
            "Redis at {address} is a replica and takes no writes: name the primary in the URL"
        )),
        "MISCONF" | "NOREPLICAS" | "MASTERDOWN" | "TRYAGAIN" | "LOADING" | "BUSY"
        | "UNKILLABLE" => {
            Error::Unavailable(format!("Redis at {address}: {code} {detail} ({doing})"))
        }
        _ if detail.contains("max number of clients") => Error::Unavailable(format!(
            "Redis at {address} has no connection to give (maxclients): allow more, or close some"
        )),
        _ if doing == "connect" => {
            Error::Unavailable(format!("Redis at {address}: {code} {detail} ({doing})"))
        }
        _ => Error::Bug(format!("{doing}: Redis says {code} {detail}")),
    }
}

/// Whether a message names a code as a word of its own.
fn names(detail: &str, code: &str) -> bool {
    detail
        .split(|c: char| !c.is_ascii_uppercase())
        .any(|word| word == code)
}

fn refused(address: &Address) -> Error {
    Error::Unreachable(format!(
        "Redis at {address} doesn't accept the user or the password of the URL: write them as in \
         redis://USER:PASSWORD@HOST:PORT/DB, percent-encoded"
    ))
}

/// A server that lacks commands.
pub(super) fn too_old(address: &Address, version: &str) -> Error {
    Error::Unreachable(format!(
        "Redis at {address} is version {version}: use 6.2 or later"
    ))
}

/// Whether the connection is worth nothing after it.
pub(super) fn ends_the_connection(why: &RedisError) -> bool {
    why.is_io_error() || why.is_unrecoverable_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> String {
        let address = Address::parse("redis://:secret@localhost:6379/0?prefix=mail").unwrap();
        let answer = redis::parse_redis_value(line.as_bytes()).unwrap();
        let why = answer.extract_error().unwrap_err();
        let told = map(&why, &address, "take").to_string();
        assert!(!told.contains("secret"), "{told}");
        told
    }

    #[test]
    fn each_refusal_names_its_remedy() {
        for (line, remedy) in [
            ("-NOAUTH Authentication required.\r\n", "USER:PASSWORD"),
            (
                "-WRONGPASS invalid username-password pair\r\n",
                "USER:PASSWORD",
            ),
            (
                "-NOPERM this user has no permissions to run the 'get' command\r\n",
                "allow",
            ),
            ("-MOVED 8000 10.0.0.2:6379\r\n", "10.0.0.2:6379"),
            ("-ASK 8000 10.0.0.2:6379\r\n", "10.0.0.2:6379"),
            ("-CLUSTERDOWN Hash slot not served\r\n", "mend the cluster"),
            (
                "-CROSSSLOT Keys in request don't hash to the same slot\r\n",
                "together",
            ),
            ("-WRONGTYPE Operation against a key\r\n", "?prefix=NAME"),
            (
                "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
                "full (maxmemory)",
            ),
            (
                "-READONLY You can't write against a read only replica.\r\n",
                "primary",
            ),
            (
                "-LOADING Redis is loading the dataset in memory\r\n",
                "not available",
            ),
            ("-BUSY Redis is busy running a script.\r\n", "not available"),
        ] {
            let told = said(line);
            assert!(told.contains(remedy), "{line}: {told}");
        }
    }

    #[test]
    fn a_code_within_the_words_of_a_script_counts() {
        let told = said(
            "-ERR Error running script (call to f_1): @user_script:3: WRONGTYPE Operation against\r\n",
        );
        assert!(told.contains("?prefix=NAME"), "{told}");
        let told =
            said("-ERR The user executing the script can't run this command script: f_1\r\n");
        assert!(told.contains("allow"), "{told}");
        let told = said("-ERR unknown command 'OOMPH'\r\n");
        assert!(told.contains("report it"), "{told}");
    }
}
