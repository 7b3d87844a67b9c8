//! Durations as people write them: `30s`, `10m`, `1h 30m`, `7d`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, ser::SerializeSeq};

use crate::error::{Error, Result};

/// Reads `30s`, `10m`, `1h 30m`, `7d`; a bare `0` is nothing at all.
///
/// # Errors
/// [`Error::Invalid`] that shows the form.
pub fn parse_duration(text: &str) -> Result<Duration> {
    humantime::parse_duration(text.trim()).map_err(|_| {
        Error::invalid(format!(
            "{text:?} is not a duration: write it like 500ms, 30s, 10m, 2h or 7d"
        ))
    })
}

fn spell(time: &Duration) -> String {
    humantime::format_duration(*time).to_string()
}

/// For fields of type `Duration`.
pub(crate) mod duration {
    use super::{Deserialize, Deserializer, Duration, Result, Serializer, parse_duration, spell};

    pub(crate) fn serialize<S: Serializer>(
        time: &Duration,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&spell(time))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Duration, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_duration(&text).map_err(serde::de::Error::custom)
    }
}

/// For fields of type `Option<Duration>`.
pub(crate) mod optional {
    use super::{Deserialize, Deserializer, Duration, Result, parse_duration};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| parse_duration(&text).map_err(serde::de::Error::custom))
            .transpose()
    }
}

/// For fields of type `Vec<Duration>`.
pub(crate) mod durations {
    use super::{
        Deserialize, Deserializer, Duration, Result, SerializeSeq, Serializer, parse_duration,
        spell,
    };

    pub(crate) fn serialize<S: Serializer>(
        times: &[Duration],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(times.len()))?;
        for time in times {
            list.serialize_element(&spell(time))?;
        }
        list.end()
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Duration>, D::Error> {
        Vec::<String>::deserialize(deserializer)?
            .iter()
            .map(|text| parse_duration(text).map_err(serde::de::Error::custom))
            .collect()
    }
}
