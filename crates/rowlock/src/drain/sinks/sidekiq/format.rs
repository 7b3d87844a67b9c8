//! A job as Sidekiq reads it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::claim::ClaimedJob;
use crate::drain::SidekiqJob;
use crate::job::JobId;

#[derive(Serialize)]
struct Item<'a> {
    class: &'a str,
    args: Vec<&'a RawValue>,
    jid: String,
    queue: &'a str,
    retry: u32,
    created_at: f64,
    enqueued_at: f64,
    rowlock_key: String,
}

/// The text of a job, or why it can't be one of Sidekiq's.
pub(super) fn write(
    job: &ClaimedJob,
    as_job: Option<&SidekiqJob>,
    now: Timestamp,
) -> Result<String, String> {
    let kind = &job.kind;
    let as_job = as_job.ok_or_else(|| {
        format!("{kind} has no Sidekiq class: name it in the route, then retry the job")
    })?;
    let key = job.idempotency_key().map_err(|why| why.to_string())?;
    let item = Item {
        class: &as_job.class,
        args: arguments(job.payload.as_str(), as_job)?,
        jid: jid(&key, job.id),
        queue: job.queue.as_str(),
        // Sidekiq counts the attempts after this one.
        retry: job.max_attempts.saturating_sub(job.attempt),
        created_at: seconds(job.scheduled_at),
        enqueued_at: seconds(now),
        rowlock_key: key,
    };
    serde_json::to_string(&item).map_err(|why| format!("it can't be written as JSON: {why}"))
}

/// Values stay as they are written in the payload, whatever the size of a number.
fn arguments<'a>(payload: &'a str, as_job: &SidekiqJob) -> Result<Vec<&'a RawValue>, String> {
    let unread = |why| format!("the payload can't be read: {why}");
    if as_job.args.is_empty() {
        return Ok(vec![serde_json::from_str(payload).map_err(unread)?]);
    }
    let class = &as_job.class;
    if !payload.starts_with('{') {
        return Err(format!(
            "the payload is not an object, whose fields are the arguments of {class}"
        ));
    }
    // Owned names, since one may be written with escapes.
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(payload).map_err(unread)?;
    let field = |name: &crate::job::Name| {
        let value = fields.get(name.as_str()).copied();
        value.ok_or_else(|| format!("the payload has no field {name}, an argument of {class}"))
    };
    as_job.args.iter().map(field).collect()
}

/// The same for every time that a job is sent, so that Sidekiq's side can tell. The first 8 digits are those of the
/// job's key, since a number can come again after a failover; the last 16 are its number.
fn jid(key: &str, id: JobId) -> String {
    format!("{key:.8}{:016x}", id.0)
}

#[expect(clippy::cast_precision_loss, reason = "exact for 200,000 years")]
fn seconds(time: Timestamp) -> f64 {
    time.as_millisecond() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{KeySource, Name, Payload};

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(milliseconds).unwrap()
    }

    fn job(payload: &str) -> ClaimedJob {
        ClaimedJob {
            payload: Payload::parse(payload).unwrap(),
            scheduled_at: at(1_700_000_000_250),
            ..ClaimedJob::sample(258, 1)
        }
    }

    fn class(args: &[&str]) -> SidekiqJob {
        SidekiqJob {
            class: "Mail::Send".to_owned(),
            args: args.iter().map(|arg| name(arg)).collect(),
        }
    }

    fn written(job: &ClaimedJob, as_job: &SidekiqJob) -> Result<String, String> {
        write(job, Some(as_job), at(1_700_000_001_000))
    }

    #[test]
    fn a_job_has_every_field_that_sidekiq_reads() {
        let job = job(r#"{"subject":"Hi","cc":[],"to":"a@b"}"#);
        assert_eq!(
            written(&job, &class(&["to", "subject"])).unwrap(),
            r#"{"class":"Mail::Send","args":["a@b","Hi"],"jid":"11cd21310000000000000102","queue":"mail","retry":19,"created_at":1700000000.25,"enqueued_at":1700000001.0,"rowlock_key":"11cd21315209d7daada5c174c1d1e375"}"#
        );
    }

    #[test]
    fn without_named_fields_the_payload_is_the_one_argument() {
        for payload in [r#"{"a":1}"#, "[1,2]", "null", r#""text""#] {
            let text = written(&job(payload), &class(&[])).unwrap();
            assert!(text.contains(&format!(r#""args":[{payload}],"#)), "{text}");
        }
    }

    #[test]
    fn values_stay_as_they_were_written() {
        let payload = r#"{"n":12345678901234567890.10,"\u0061b":{"x":1e300}}"#;
        let text = written(&job(payload), &class(&["ab", "n"])).unwrap();
        let args = r#""args":[{"x":1e300},12345678901234567890.10],"#;
        assert!(text.contains(args), "{text}");
        let deep = format!(r#"{{"d":{}{}}}"#, "[".repeat(127), "]".repeat(127));
        written(&job(&deep), &class(&["d"])).unwrap();
        written(&job(&deep), &class(&[])).unwrap();
    }

    #[test]
    fn a_job_that_has_failed_before_is_retried_less_often() {
        let mut job = job("{}");
        (job.attempt, job.max_attempts) = (3, 5);
        let text = written(&job, &class(&[])).unwrap();
        assert!(text.contains(r#""retry":2,"#), "{text}");
        job.attempt = 6;
        let text = written(&job, &class(&[])).unwrap();
        assert!(text.contains(r#""retry":0,"#), "{text}");
    }

    #[test]
    fn what_can_not_be_written_says_why() {
        let why = written(&job(r#"{"to":1}"#), &class(&["to", "subject"])).unwrap_err();
        assert!(why.contains("no field subject"), "{why}");
        let why = written(&job("[1]"), &class(&["to"])).unwrap_err();
        assert!(why.contains("not an object"), "{why}");
        let why = write(&job("{}"), None, at(0)).unwrap_err();
        assert!(why.contains("send_email has no Sidekiq class"), "{why}");
    }

    #[test]
    fn two_jobs_with_one_number_have_two_jids() {
        let [one, other] = [1, 2].map(|created| {
            let mut job = job("{}");
            job.key = KeySource::Row {
                store: Some(7),
                created_at: at(created),
            };
            let text = written(&job, &class(&[])).unwrap();
            let item: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(item["rowlock_key"], job.idempotency_key().unwrap());
            item["jid"].as_str().unwrap().to_owned()
        });
        assert_ne!(one, other);
        for jid in [one, other] {
            assert_eq!(jid.len(), 24);
            assert!(jid.ends_with("0000000000000102"), "{jid}");
        }
    }
}
