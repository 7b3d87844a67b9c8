//! The share of time that claims without bounds may take.

use std::time::Duration;

use crate::clock::Elapsed;

/// One part in so many.
const DUTY: u32 = 50;
/// What may be saved up.
const MOST: Duration = Duration::from_millis(400);

/// Time to spend: it grows while nothing is spent.
#[derive(Debug)]
pub(super) struct Budget {
    left: Duration,
    counted: Option<Elapsed>,
    swept: Option<Elapsed>,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            left: MOST,
            counted: None,
            swept: None,
        }
    }
}

/// A statement that waited for something else isn't paid for without end.
const LONGEST_DEBT: Duration = Duration::from_secs(30);

/// Even a process whose claims are always full looks for what it may have missed.
const AT_LEAST_EVERY: Duration = Duration::from_secs(1);

impl Budget {
    /// Whether one may be made now.
    pub(super) fn allows(&mut self, now: Elapsed) -> bool {
        let passed = self
            .counted
            .map_or(Duration::ZERO, |at| now.saturating_sub(at));
        // A debt is paid first.
        self.counted = self.counted.max(Some(now));
        self.left = (self.left + passed / DUTY).min(MOST);
        !self.left.is_zero()
    }

    /// Whether one is due, although the claims with bounds are full.
    pub(super) fn is_due(&self, now: Elapsed) -> bool {
        self.swept
            .is_none_or(|at| now.saturating_sub(at) >= AT_LEAST_EVERY)
    }

    /// One was made: what it took has to be saved up again.
    pub(super) fn spent(&mut self, began: Elapsed, ended: Elapsed) {
        let took = ended.saturating_sub(began);
        let debt = took.saturating_sub(self.left);
        self.left = self.left.saturating_sub(took);
        // A sweep that took longer than the budget keeps the next one away for as long as it must.
        self.counted = Some(ended + (debt * DUTY).min(LONGEST_DEBT));
        self.swept = Some(ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_sweeps_are_free_and_long_ones_are_rare() {
        let mut budget = Budget::default();
        let at = Duration::from_millis;
        for n in 0..100 {
            assert!(budget.allows(at(n)));
            budget.spent(at(n), at(n + 1));
        }
        let mut budget = Budget::default();
        assert!(budget.allows(at(0)));
        budget.spent(at(0), at(800));
        assert!(!budget.allows(at(900)));
        assert!(!budget.allows(at(20_000)));
        assert!(budget.allows(at(42_000)));
    }
}
