//! Groups of verdicts: what workers have said at once is read and forgotten at once.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use redis::Value;

use super::envelope::{Taker, hear};
use crate::claim::WorkerId;
use crate::drain::Report;
use crate::job::{JobId, Token};
use crate::log;

/// What was said about a job, or the one about which it can't be read.
type Heard = Result<Report, (JobId, Token)>;

/// A group of verdicts, by the names that the scripts give its parts.
pub(super) struct Group {
    pub(super) id: GroupId,
    parts: HashMap<Vec<u8>, Vec<u8>>,
}

impl Group {
    fn part(&self, name: &str) -> Result<&str, String> {
        let part = self
            .parts
            .get(name.as_bytes())
            .map(|part| std::str::from_utf8(part));
        match part {
            Some(Ok(part)) => Ok(part),
            Some(Err(why)) => Err(format!("{name}: {why}")),
            None => Err(format!("{name} is missing")),
        }
    }

    /// The verdicts, each one or the job whose verdict can't be read.
    fn heard(&self, given: Timestamp) -> Result<Vec<Heard>, String> {
        let taken = self.part("take")?.parse().ok();
        let worker = WorkerId::stored(self.part("worker")?.to_owned());
        let kept = self.part("kept").unwrap_or_default().as_bytes();
        let mut jobs = self.part("jobs")?.split(' ');
        let mut number = || jobs.next().and_then(|word| word.parse::<i64>().ok());
        let mut heard = Vec::new();
        for (n, told) in self.part("told")?.lines().enumerate() {
            let (Some(id), Some(token)) = (number(), number()) else {
                return Err("a job is not named".to_owned());
            };
            if kept.get(n) == Some(&b'0') {
                continue;
            }
            let (job, token) = (JobId(id), Token::stored(token));
            let by = Taker {
                worker: worker.clone(),
                // What nobody had taken was called back.
                taken: taken.map_or(token, Token::stored),
                given,
            };
            heard.push(hear(told, job, token, by).map_err(|why| {
                log::error!(%job, why, "a verdict in Redis can't be read, the job runs again");
                (job, token)
            }));
        }
        Ok(heard)
    }
}

/// What XREAD has found in the one stream it was asked for.
pub(super) fn groups(found: Value) -> Option<Vec<Group>> {
    let Value::Array(mut streams) = found else {
        return Some(Vec::new());
    };
    let Some(Value::Array(stream)) = streams.pop() else {
        return None;
    };
    let Some(Value::Array(groups)) = stream.into_iter().nth(1) else {
        return None;
    };
    groups.into_iter().map(group).collect()
}

fn group(found: Value) -> Option<Group> {
    let Value::Array(parts) = found else {
        return None;
    };
    let [Value::BulkString(id), Value::Array(fields)]: [Value; 2] = parts.try_into().ok()? else {
        return None;
    };
    let (ms, number) = std::str::from_utf8(&id).ok()?.split_once('-')?;
    let mut parts = HashMap::new();
    let mut fields = fields.into_iter();
    while let (Some(Value::BulkString(name)), Some(Value::BulkString(part))) =
        (fields.next(), fields.next())
    {
        parts.insert(name, part);
    }
    Some(Group {
        id: (ms.parse().ok()?, number.parse().ok()?),
        parts,
    })
}

/// Groups of verdicts that were read and not forgotten as a whole.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// In which one each verdict is.
    of: HashMap<(JobId, Token), GroupId>,
    /// How many verdicts are left in each, and how many it had.
    left: BTreeMap<GroupId, (usize, usize)>,
}

/// A place in the stream: milliseconds of Redis' clock, and a number.
pub(super) type GroupId = (u64, u64);

/// What Redis is to forget.
#[derive(Debug, Default)]
pub(super) struct Forgotten {
    /// Groups of which nothing is left, and how many verdicts they had.
    pub(super) groups: Vec<(GroupId, usize)>,
    /// Jobs that had a verdict there.
    pub(super) reported: Vec<(JobId, Token)>,
    /// Jobs that had none, as far as is known.
    pub(super) others: Vec<(JobId, Token)>,
}

impl Forgotten {
    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.reported.is_empty() && self.others.is_empty()
    }
}

impl Seen {
    /// The verdicts of a group that are not forgotten yet. They were given at `given`. A job whose verdict
    /// can't be read is forgotten, and so found lost; a group without verdicts goes.
    pub(super) fn reports(
        &mut self,
        group: &Group,
        given: Timestamp,
        dropped: &mut Forgotten,
    ) -> Vec<Report> {
        let heard = group.heard(given).unwrap_or_else(|why| {
            log::error!(why, "verdicts in Redis can't be read, their jobs run again");
            Vec::new()
        });
        let all = heard.len();
        let mut reports = Vec::with_capacity(all);
        for each in heard {
            match each {
                Ok(report) => reports.push(report),
                Err(job) => dropped.reported.push(job),
            }
        }
        let name = |report: &Report| (report.settlement.id, report.settlement.token);
        if self.left.contains_key(&group.id) {
            reports.retain(|report| self.of.get(&name(report)) == Some(&group.id));
            return reports;
        }
        // After Redis has thrown something away a claim may have two verdicts: the first one counts.
        reports.retain(|report| !self.of.contains_key(&name(report)));
        if reports.is_empty() {
            dropped.groups.push((group.id, all));
        } else {
            self.left.insert(group.id, (reports.len(), all));
            let names = reports.iter().map(|report| (name(report), group.id));
            self.of.extend(names);
        }
        reports
    }

    /// Groups that have gone, because another drain was faster.
    pub(super) fn forget_before(&mut self, first: Option<GroupId>) {
        let Some(first) = first else {
            *self = Self::default();
            return;
        };
        let kept = self.left.split_off(&first);
        if !self.left.is_empty() {
            self.of.retain(|_, group| *group >= first);
        }
        self.left = kept;
    }

    /// Forgets jobs. If that isn't told to Redis, whole groups are read again, which does no harm.
    pub(super) fn forget(&mut self, jobs: &[(JobId, Token)]) -> Forgotten {
        let mut forgotten = Forgotten::default();
        for job in jobs {
            let Some(group) = self.of.remove(job) else {
                forgotten.others.push(*job);
                continue;
            };
            forgotten.reported.push(*job);
            let Some((left, all)) = self.left.get_mut(&group) else {
                continue;
            };
            *left -= 1;
            if *left == 0 {
                forgotten.groups.push((group, *all));
                self.left.remove(&group);
            }
        }
        forgotten
    }
}
