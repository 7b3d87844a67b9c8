//! The claims of a shift: what is asked for, and what becomes of what they bring.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::{SUSPECT_PAUSE, Shift, settlement};
use crate::claim::Claim;
use crate::error::{Error, Result};
use crate::event;
use crate::job::{Name, Token};
use crate::log;
use crate::run::fetch::{Claiming, Hauled, Look, fetch};
use crate::settle::{Group, Verdict};

impl Shift {
    /// Asks for ordinary jobs, and beside them for the one suspect this process may run: not while another claim is
    /// under way, which may bring one. `without`: kinds whose verdicts the store refuses.
    pub(super) fn ask(
        &mut self,
        room: usize,
        without: &BTreeSet<Name>,
        alone: bool,
        idle: bool,
    ) -> Result<Claiming> {
        let kinds = self.bench.handlers.keys();
        let now = self.clock.elapsed();
        let kinds = self.left_out.wanted(kinds, without, now);
        let mut ordinary = self.wanted(room, kinds.clone(), false)?;
        ordinary.thorough = self.options.once && alone && idle;
        #[cfg(feature = "test-hooks")]
        let alone = alone || crate::hooks::switched_off("claims.suspect_alone");
        let suspect = match alone && self.may_ask_for_suspect(ordinary.thorough) {
            true => Some(Claim {
                thorough: ordinary.thorough,
                ..self.wanted(1, kinds.clone(), true)?
            }),
            false => None,
        };
        let (registry, engine) = (Arc::clone(&self.registry), Arc::clone(&self.engine));
        let questions = self.derived.questions.clone();
        Ok(Box::pin(async move {
            let tokens = [
                Some(ordinary.token),
                suspect.as_ref().map(|claim| claim.token),
            ];
            let gate = registry.gate.lock().await;
            let asked = registry.ask(tokens.into_iter().flatten().collect());
            drop(gate);
            let mut haul = fetch(&*engine, ordinary, suspect).await;
            if let Ok(haul) = &mut haul {
                let gone = match questions {
                    Some(questions) => questions.not_needed(&haul.jobs).await,
                    None => Default::default(),
                };
                haul.not_needed = haul
                    .jobs
                    .extract_if(.., |job| gone.contains(&job.id))
                    .collect();
            }
            (asked, kinds, haul)
        }))
    }

    /// Takes what a claim has brought, and says when to look again.
    pub(super) fn take(&mut self, settling: &Group, kinds: &[Name], haul: Hauled) -> Result<Look> {
        let haul = match haul {
            Ok(haul) => haul,
            Err(why) => return self.claim_failed(kinds, why),
        };
        self.left_out.answered(kinds);
        if haul.jobs.iter().any(|job| job.suspect) {
            // There may be more: the next one is asked for as soon as this one has ended.
            self.suspect_asked = None;
        }
        for job in haul.not_needed {
            let verdict = settlement(&job, Verdict::NotNeeded);
            event::ended(&job, Some(&verdict), false);
            self.registry.refused(&job);
            let job = Arc::new(job);
            settling.push(verdict, Arc::clone(&job));
            log::debug!(job = %job.id, kind = %job.kind, "its row needs nothing any more");
        }
        if !haul.jobs.is_empty() && self.registry.under_way() == 0 {
            self.ahead.began(self.clock.elapsed());
        }
        self.registry.add(haul.jobs);
        let rest = haul.rest.unwrap_or(self.options.poll);
        let now = self.clock.elapsed();
        if self.left_out.asks_alone() {
            return Ok(Look::Now);
        }
        Ok(match (haul.full, haul.next_due) {
            (true, _) => Look::WithRoom,
            (false, Some(due)) => {
                let wait = Duration::try_from(self.clock.now().duration_until(due));
                Look::At(now + wait.unwrap_or_default().min(rest))
            }
            (false, None) => Look::At(now + rest),
        })
    }

    /// A process runs one suspect at a time, and doesn't ask for one at every turn, unless it has to be sure: they are rare.
    fn may_ask_for_suspect(&mut self, thorough: bool) -> bool {
        let now = self.clock.elapsed();
        let asked = self
            .suspect_asked
            .is_some_and(|at| now.saturating_sub(at) < SUSPECT_PAUSE);
        if asked && !thorough || self.registry.has_suspect() {
            return false;
        }
        self.suspect_asked = Some(now);
        true
    }

    /// A store that refuses a claim for good ends a worker that runs once. Any other goes on with the kinds that it can
    /// claim: a single row may be to blame.
    fn claim_failed(&mut self, kinds: &[Name], why: Error) -> Result<Look> {
        match why {
            #[cfg(feature = "test-hooks")]
            Error::Bug(_) | Error::Invalid(_)
                if crate::hooks::switched_off("claim.leaves_kinds_out") =>
            {
                Err(why)
            }
            // A claim for no kind finds no row: what refuses that is no row's fault, and asking again would not end.
            Error::Bug(_) | Error::Invalid(_) if !self.options.once && !kinds.is_empty() => {
                if let Some(kind) = self.left_out.refused(kinds, self.clock.elapsed()) {
                    log::error!(%kind, %why, "jobs of this kind can't be claimed, it is left out for a while");
                }
                Ok(Look::Now)
            }
            Error::LeaseLost | Error::Schema(_) | Error::Bug(_) | Error::Invalid(_) => Err(why),
            _ => {
                log::warn!(%why, "claiming waits for the store");
                Ok(Look::Again(self.clock.elapsed() + self.options.poll))
            }
        }
    }

    fn wanted(&self, limit: usize, kinds: Vec<Name>, suspect: bool) -> Result<Claim> {
        let caps = self
            .options
            .queue_concurrency
            .iter()
            .map(|(queue, limit)| {
                let free = limit.saturating_sub(self.registry.here_of(queue));
                (queue.clone(), free)
            })
            .collect();
        Ok(Claim {
            worker: self.worker.clone(),
            token: Token::random()?,
            kinds,
            queues: self.options.queues.clone(),
            order: self.options.queue_order.clone(),
            limit,
            caps,
            suspect,
            thorough: false,
            route: None,
        })
    }
}
