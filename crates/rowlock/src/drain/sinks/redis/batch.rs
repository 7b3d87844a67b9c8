//! Jobs on their way to Redis.

use std::collections::BTreeMap;

use redis::Cmd;

use super::envelope::{label, lane, seal};
use crate::claim::ClaimedJob;
use crate::job::JobId;

/// The most that is sent at once, in bytes and in jobs: Redis does nothing else meanwhile.
const BYTES: usize = 4 << 20;
const JOBS: usize = 1_000;

/// Jobs that are sent at once, by lane.
#[derive(Default)]
pub(super) struct Batch {
    lanes: BTreeMap<String, Vec<Sealed>>,
    jobs: usize,
    bytes: usize,
}

struct Sealed {
    id: i64,
    label: String,
    entry: String,
}

impl Batch {
    /// The jobs that can be sent, and those that can't.
    pub(super) fn of(jobs: &[ClaimedJob]) -> (Vec<Self>, Vec<(JobId, String)>) {
        let (mut batches, mut refused) = (Vec::new(), Vec::new());
        let mut batch = Self::default();
        for job in jobs {
            if let Err(why) = batch.add(job) {
                refused.push((job.id, why));
            }
            if batch.bytes >= BYTES || batch.jobs >= JOBS {
                batches.push(std::mem::take(&mut batch));
            }
        }
        if batch.jobs > 0 {
            batches.push(batch);
        }
        (batches, refused)
    }

    fn add(&mut self, job: &ClaimedJob) -> Result<(), String> {
        let lane = lane(job);
        let sealed = Sealed {
            id: job.id.0,
            label: label(job, &lane),
            entry: seal(job, &lane)?,
        };
        self.jobs += 1;
        self.bytes += sealed.entry.len();
        self.lanes.entry(lane).or_default().push(sealed);
        Ok(())
    }

    /// As the script wants them.
    pub(super) fn write(&self, command: &mut Cmd) {
        for (lane, jobs) in &self.lanes {
            command.arg(lane).arg(jobs.len());
            for job in jobs {
                command.arg(job.id);
            }
            for job in jobs {
                command.arg(job.id).arg(&job.label);
            }
            for job in jobs {
                command.arg(&job.entry);
            }
        }
    }
}
