//! The idempotency key: what tells a job from every other one, wherever its effect is made.

use jiff::Timestamp;
use sha2::{Digest, Sha256};

use super::JobId;
use crate::error::{Error, Result};

/// Hex digits of a key: 128 bits.
const DIGITS: usize = 32;

/// The key of a row. A number alone can come again: a promoted standby that lagged behind, or a restored copy, gives
/// out numbers that were used before. The time of the enqueue, as the row carries it, tells the two apart.
///
/// The formula is part of the contract (docs/guarantees.md): other languages compute it from the row.
#[must_use]
pub(crate) fn idempotency_key(store: u64, id: JobId, created_at: Timestamp) -> String {
    #[cfg(feature = "test-hooks")]
    let created_at = match crate::hooks::switched_off("key.created_at") {
        true => Timestamp::UNIX_EPOCH,
        false => created_at,
    };
    let text = format!("rowlock:{store}:{id}:{}", created_at.as_microsecond());
    let hash = Sha256::digest(text.as_bytes());
    let mut key = String::with_capacity(DIGITS);
    for byte in hash.iter().take(DIGITS / 2) {
        key.push_str(&format!("{byte:02x}"));
    }
    key
}

/// Where the key of a claimed job comes from. It is computed only for a handler that asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeySource {
    /// From its row.
    Row {
        /// The store's own number; none in a store that has lost it.
        store: Option<u64>,
        created_at: Timestamp,
    },
    /// From the drain that sent the job; older drains send none.
    #[cfg_attr(not(feature = "redis"), allow(dead_code))]
    Sent(Option<String>),
}

impl KeySource {
    pub(crate) fn key(&self, id: JobId) -> Result<String> {
        match self {
            Self::Row {
                store: Some(store),
                created_at,
            } => Ok(idempotency_key(*store, id, *created_at)),
            Self::Row { store: None, .. } => Err(Error::Schema(
                "the store's own number is missing, so its jobs have no idempotency key".to_owned(),
            )),
            Self::Sent(Some(key)) => Ok(key.clone()),
            Self::Sent(None) => Err(Error::Unavailable(
                "the job was sent by a drain that knows no idempotency keys: upgrade the drain"
                    .to_owned(),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn at(microseconds: i64) -> Timestamp {
        Timestamp::from_microsecond(microseconds).unwrap()
    }

    #[test]
    fn the_formula_never_changes() {
        // printf rowlock:7:258:1700000000250001 | sha256sum
        assert_eq!(
            idempotency_key(7, JobId(258), at(1_700_000_000_250_001)),
            "2381848fc33681cd9b528b60240df144"
        );
    }

    #[test]
    fn store_number_and_time_each_make_another_key() {
        let mut seen = HashSet::new();
        for store in [1, 12, u64::MAX] {
            for id in [1, 21, i64::MAX] {
                for created in [0, 1, 1_700_000_000_000_000] {
                    let key = idempotency_key(store, JobId(id), at(created));
                    assert_eq!(key.len(), DIGITS);
                    assert!(key.bytes().all(|digit| digit.is_ascii_hexdigit()));
                    seen.insert(key);
                }
            }
        }
        assert_eq!(seen.len(), 27);
    }

    #[test]
    fn a_job_without_a_key_says_who_has_to_be_upgraded() {
        let why = KeySource::Sent(None).key(JobId(1)).unwrap_err();
        assert!(why.to_string().contains("upgrade the drain"), "{why}");
        assert_eq!(
            KeySource::Sent(Some("k".to_owned())).key(JobId(1)).unwrap(),
            "k"
        );
    }
}
