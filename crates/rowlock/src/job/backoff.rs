//! How long a failed job waits before its next attempt.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::spoken;

/// A retry policy. It is stored as JSON with the kind, or with a single job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Backoff {
    /// `base x attempt`: 30 s, 60 s, 90 s ...
    Linear {
        /// The wait after the first attempt.
        #[serde(with = "spoken::duration")]
        base: Duration,
        /// The random share that is added, from 0 to 1.
        #[serde(default = "default_jitter")]
        jitter: f64,
    },
    /// `base x 2^(attempt - 1)`, at most `max`.
    Exponential {
        /// The wait after the first attempt.
        #[serde(with = "spoken::duration")]
        base: Duration,
        /// The longest wait.
        #[serde(with = "spoken::duration", default = "default_max")]
        max: Duration,
        /// The random share that is added, from 0 to 1.
        #[serde(default = "default_jitter")]
        jitter: f64,
    },
    /// Always `base`.
    Fixed {
        /// The wait.
        #[serde(with = "spoken::duration")]
        base: Duration,
        /// The random share that is added, from 0 to 1.
        #[serde(default = "default_jitter")]
        jitter: f64,
    },
    /// A list of waits; the last one repeats.
    Custom {
        /// The waits, by attempt.
        #[serde(with = "spoken::durations")]
        delays: Vec<Duration>,
        /// The random share that is added, from 0 to 1.
        #[serde(default = "default_jitter")]
        jitter: f64,
    },
}

const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

fn default_jitter() -> f64 {
    0.1
}

fn default_max() -> Duration {
    Duration::from_secs(24 * 3600)
}

impl Default for Backoff {
    fn default() -> Self {
        Self::Linear {
            base: Duration::from_secs(30),
            jitter: default_jitter(),
        }
    }
}

impl Backoff {
    /// The wait after attempt number `attempt` (from 1 on) without its random part, and the most
    /// that may be added to it.
    #[must_use]
    pub fn wait(&self, attempt: u32) -> (Duration, Duration) {
        let (wait, jitter) = match self {
            Self::Linear { base, jitter } => (base.saturating_mul(attempt.max(1)), jitter),
            Self::Exponential { base, max, jitter } => {
                let doubled = 1_u32
                    .checked_shl(attempt.saturating_sub(1))
                    .unwrap_or(u32::MAX);
                (base.saturating_mul(doubled).min(*max), jitter)
            }
            Self::Fixed { base, jitter } => (*base, jitter),
            Self::Custom { delays, jitter } => {
                let at = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
                let wait = delays.get(at).or(delays.last()).copied();
                (wait.unwrap_or_default(), jitter)
            }
        };
        let wait = wait.min(LONGEST);
        // Written so that NaN counts as none.
        let share = if *jitter > 0.0 { jitter.min(1.0) } else { 0.0 };
        (wait, wait.mul_f64(share))
    }

    /// The wait with its random part.
    #[must_use]
    pub fn wait_with_jitter(&self, attempt: u32) -> Duration {
        let (wait, most) = self.wait(attempt);
        wait + super::jitter(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(policy: &str) -> Vec<u64> {
        let policy: Backoff = serde_json::from_str(policy).unwrap();
        (1..=4).map(|n| policy.wait(n).0.as_secs()).collect()
    }

    #[test]
    fn each_policy_waits_as_its_name_says() {
        assert_eq!(
            waits(r#"{"kind":"linear","base":"30s"}"#),
            [30, 60, 90, 120]
        );
        assert_eq!(
            waits(r#"{"kind":"exponential","base":"10s","max":"1m"}"#),
            [10, 20, 40, 60]
        );
        assert_eq!(waits(r#"{"kind":"fixed","base":"5s"}"#), [5, 5, 5, 5]);
        assert_eq!(
            waits(r#"{"kind":"custom","delays":["1s","1m"]}"#),
            [1, 60, 60, 60]
        );
    }

    #[test]
    fn the_default_is_thirty_seconds_times_the_attempt_plus_up_to_a_tenth() {
        let (wait, most) = Backoff::default().wait(3);
        assert_eq!(wait, Duration::from_secs(90));
        assert_eq!(most, Duration::from_secs(9));
        let jittered = Backoff::default().wait_with_jitter(3);
        assert!(jittered >= wait && jittered <= wait + most);
    }

    #[test]
    fn no_attempt_number_overflows() {
        for policy in [
            Backoff::default(),
            Backoff::Exponential {
                base: Duration::MAX,
                max: Duration::MAX,
                jitter: 9.0,
            },
            Backoff::Custom {
                delays: vec![],
                jitter: f64::NAN,
            },
        ] {
            let _ = policy.wait_with_jitter(u32::MAX);
            let _ = policy.wait_with_jitter(0);
        }
    }
}
