//! Kinds that can't be claimed: a trigger or a constraint of others refuses one of their rows, and with it the whole claim.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::clock::Elapsed;
use crate::job::Name;
use crate::settle::pause;

/// Which kinds a claim is for. After one that was refused each kind is asked for by itself, once; one that is refused
/// alone is left out, for longer each time.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    alone: VecDeque<Name>,
    refused: BTreeMap<Name, (u32, Elapsed)>,
}

impl LeftOut {
    /// The kinds of the next claim.
    pub(super) fn wanted<'a>(
        &mut self,
        all: impl Iterator<Item = &'a Name>,
        without: &BTreeSet<Name>,
        now: Elapsed,
    ) -> Vec<Name> {
        while let Some(kind) = self.alone.pop_front() {
            if !without.contains(&kind) {
                return vec![kind];
            }
        }
        let waits = |kind: &Name| self.refused.get(kind).is_some_and(|(_, at)| *at > now);
        all.filter(|kind| !without.contains(*kind) && !waits(kind))
            .cloned()
            .collect()
    }

    /// Whether the next claim is for one kind only.
    pub(super) fn asks_alone(&self) -> bool {
        !self.alone.is_empty()
    }

    pub(super) fn answered(&mut self, kinds: &[Name]) {
        if let [kind] = kinds
            && !self.refused.is_empty()
        {
            self.refused.remove(kind);
        }
    }

    /// The kind that is left out from now on, if it is known.
    pub(super) fn refused(&mut self, kinds: &[Name], now: Elapsed) -> Option<Name> {
        let [kind] = kinds else {
            if self.alone.is_empty() {
                self.alone.extend(kinds.iter().cloned());
            }
            return None;
        };
        let (times, at) = self.refused.entry(kind.clone()).or_default();
        *times = times.saturating_add(1);
        *at = now + pause(*times);
        Some(kind.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_kind_that_is_refused_is_found_and_left_out_for_a_while() {
        let all: Vec<Name> = ["a", "b", "c"].map(|name| Name::new(name).unwrap()).into();
        let (mut left_out, none) = (LeftOut::default(), BTreeSet::new());
        let now = Duration::from_secs(100);
        let wanted = |left_out: &mut LeftOut, now| left_out.wanted(all.iter(), &none, now);
        assert_eq!(wanted(&mut left_out, now).len(), 3);
        assert_eq!(left_out.refused(&all, now), None);
        for kind in &all {
            let one = wanted(&mut left_out, now);
            assert_eq!(one, std::slice::from_ref(kind));
            match kind.as_str() {
                "b" => assert_eq!(left_out.refused(&one, now).as_ref(), Some(kind)),
                _ => left_out.answered(&one),
            }
        }
        assert!(!left_out.asks_alone());
        assert_eq!(wanted(&mut left_out, now), [all[0].clone(), all[2].clone()]);
        assert_eq!(wanted(&mut left_out, now + Duration::from_secs(1)).len(), 3);
    }
}
