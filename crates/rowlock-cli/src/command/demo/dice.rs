//! Chance that can be repeated: the same seed makes the same choices.

use std::time::Duration;

use anyhow::Result;
use rowlock::job::Token;

/// The generator SplitMix64.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed that is short enough to be typed again.
    pub fn any_seed() -> Result<u64> {
        let random = Token::random()?.get().unsigned_abs();
        Ok(1_000 + random % 9_000)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `sides`, which must not be zero.
    pub fn below(&mut self, sides: usize) -> usize {
        let sides = u64::try_from(sides.max(1)).unwrap_or(u64::MAX);
        usize::try_from(self.next() % sides).unwrap_or_default()
    }

    /// A time between the two.
    pub fn between(&mut self, shortest: Duration, longest: Duration) -> Duration {
        let width = longest.saturating_sub(shortest).as_micros();
        let width = usize::try_from(width).unwrap_or(usize::MAX);
        let extra = u64::try_from(self.below(width)).unwrap_or_default();
        shortest + Duration::from_micros(extra)
    }

    /// Brings things into a random order.
    pub fn shuffle<T>(&mut self, things: &mut [T]) {
        for at in (1..things.len()).rev() {
            things.swap(at, self.below(at + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_choices() {
        let order = |seed| {
            let mut things: Vec<u32> = (0..10).collect();
            Dice::new(seed).shuffle(&mut things);
            things
        };
        assert_eq!(order(7), order(7));
        assert_ne!(order(7), order(8));
        let mut dice = Dice::new(1);
        let time = |ms| Duration::from_millis(ms);
        for _ in 0..100 {
            let drawn = dice.between(time(80), time(160));
            assert!(drawn >= time(80) && drawn < time(160), "{drawn:?}");
        }
    }
}
