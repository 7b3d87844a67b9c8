//! What this handle has taken: under which claim each job was sent, which its verdict must say.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::envelope::Origin;
use crate::claim::WorkerId;
use crate::job::{JobId, Token};

/// Takes by their token. What isn't here, because another handle took it, is in Redis.
#[derive(Debug, Default)]
pub(super) struct Parcels(Mutex<HashMap<Token, Parcel>>);

#[derive(Debug)]
struct Parcel {
    worker: Option<WorkerId>,
    jobs: HashMap<JobId, Origin>,
}

/// Where taken jobs come from.
pub(super) struct Origins<'a>(&'a HashMap<Token, Parcel>);

impl Origins<'_> {
    pub(super) fn of(&self, take: Token, id: JobId) -> Option<&Origin> {
        self.0.get(&take)?.jobs.get(&id)
    }
}

impl Parcels {
    fn change<T>(&self, change: impl FnOnce(&mut HashMap<Token, Parcel>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A take was answered. Without a worker it was another handle's.
    pub(super) fn add(
        &self,
        take: Token,
        worker: Option<WorkerId>,
        jobs: impl IntoIterator<Item = (JobId, Origin)>,
    ) {
        let jobs: HashMap<_, _> = jobs.into_iter().collect();
        if !jobs.is_empty() {
            self.change(|parcels| parcels.insert(take, Parcel { worker, jobs }));
        }
    }

    /// Hands a way to find origins out; nothing changes meanwhile.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Origins<'_>) -> T) -> T {
        self.change(|parcels| look(&Origins(parcels)))
    }

    /// Jobs of a take were settled.
    pub(super) fn settled(&self, take: Token, ids: impl IntoIterator<Item = JobId>) {
        self.change(|parcels| {
            let Some(parcel) = parcels.get_mut(&take) else {
                return;
            };
            for id in ids {
                parcel.jobs.remove(&id);
            }
            if parcel.jobs.is_empty() {
                parcels.remove(&take);
            }
        });
    }

    /// A worker holds these and no others.
    pub(super) fn keep(&self, worker: &WorkerId, held: &[Token]) {
        self.change(|parcels| {
            parcels.retain(|take, parcel| {
                parcel.worker.as_ref() != Some(worker) || held.contains(take)
            });
        });
    }
}
