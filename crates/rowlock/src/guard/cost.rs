//! What a pinned horizon costs: rows that are dead and can't be removed, and how many more an hour brings.

use std::time::Duration;

/// What is dead in the tables of a database, at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// Rows that were replaced or deleted and are still there.
    pub dead_rows: u64,
    /// About how many bytes they take up, of what the tables had when they were last examined.
    pub dead_bytes: u64,
    /// How many rows have died since the server counts: it only grows.
    pub died: u64,
    /// The server's time of it, in ms.
    pub at_ms: u64,
}

/// What an hour adds for as long as the horizon stands still.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Growth {
    /// Dead rows an hour.
    pub rows: u64,
    /// Bytes an hour.
    pub bytes: u64,
}

const HOUR_MS: u128 = 3_600_000;

impl Cost {
    /// From two looks: what died in between, whoever cleaned up what.
    #[must_use]
    pub fn growth_since(&self, before: &Self) -> Option<Growth> {
        let time = self.at_ms.checked_sub(before.at_ms)?;
        self.growth(self.died.checked_sub(before.died)?, time)
    }

    /// From one look: as if everything that is dead had died since the horizon stands still. So it is at most
    /// this much.
    #[must_use]
    pub fn growth_over(&self, pinned_for: Duration) -> Option<Growth> {
        let time = u64::try_from(pinned_for.as_millis()).unwrap_or(u64::MAX);
        self.growth(self.dead_rows, time)
    }

    fn growth(&self, rows: u64, time_ms: u64) -> Option<Growth> {
        if time_ms == 0 {
            return None;
        }
        let an_hour =
            |n: u128| u64::try_from(n * HOUR_MS / u128::from(time_ms)).unwrap_or(u64::MAX);
        let bytes =
            u128::from(rows) * u128::from(self.dead_bytes) / u128::from(self.dead_rows.max(1));
        Some(Growth {
            rows: an_hour(u128::from(rows)),
            bytes: an_hour(bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Cost = Cost {
        dead_rows: 1_000,
        dead_bytes: 100_000,
        died: 50_000,
        at_ms: 10_000,
    };

    #[test]
    fn two_looks_tell_what_an_hour_adds() {
        let second = Cost {
            dead_rows: 1_010,
            dead_bytes: 101_000,
            died: 50_010,
            at_ms: 11_000,
        };
        let growth = second.growth_since(&FIRST).unwrap();
        assert_eq!((growth.rows, growth.bytes), (36_000, 3_600_000));
        // Counters that were reset, and a clock that stood still, tell nothing.
        assert_eq!(FIRST.growth_since(&second), None);
        assert_eq!(FIRST.growth_since(&FIRST), None);
    }

    #[test]
    fn one_look_tells_how_much_it_is_at_most() {
        let growth = FIRST.growth_over(Duration::from_secs(1_800)).unwrap();
        assert_eq!((growth.rows, growth.bytes), (2_000, 200_000));
        assert_eq!(FIRST.growth_over(Duration::ZERO), None);
    }
}
