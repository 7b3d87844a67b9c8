//! `exec`: a handler that is a program of any language.
//!
//! It gets the payload on stdin and the rest in its environment, and answers with its exit code.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use tokio::process::Command;
use tokio::sync::oneshot;

use super::output::tail;
use super::process::Process;
use super::task::Tasks;
use super::{Context, Handler};
use crate::error::{Error, Result};
use crate::job::JobError;
use crate::log;
use crate::settle::Outcome;

/// `EX_TEMPFAIL` of sysexits.h: try again.
const RETRY: i32 = 75;
/// `EX_DATAERR` of sysexits.h: it will never work.
const FAIL: i32 = 65;

/// What a program gets of the worker's own environment, beside the variables about its job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Environment {
    /// Everything but the worker's own: `ROWLOCK_*` and `PGPASSWORD`. They have its passwords and tokens, and what a
    /// program writes can end in the job's error and on a page.
    #[default]
    Inherit,
    /// `PATH`, `HOME`, `LANG`, `TZ` and these, whatever they are called.
    Only(Vec<String>),
}

/// Hardly a program can do without these.
const ALWAYS: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

impl Environment {
    /// These variables and no others but `PATH`, `HOME`, `LANG` and `TZ`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a name that no variable can have.
    pub fn only(names: Vec<String>) -> Result<Self> {
        let bad = |name: &&String| name.is_empty() || name.contains(['=', '\0']);
        match names.iter().find(bad) {
            None => Ok(Self::Only(names)),
            Some(name) => Err(Error::invalid(format!(
                "env: {name:?} can't be the name of a variable: write names, like [\"API_TOKEN\"]"
            ))),
        }
    }

    fn hands_on(&self, name: &str) -> bool {
        #[cfg(feature = "test-hooks")]
        if crate::hooks::switched_off("exec.env") {
            return true;
        }
        match self {
            Self::Inherit => !name.starts_with("ROWLOCK_") && name != "PGPASSWORD",
            Self::Only(names) => ALWAYS.contains(&name) || names.iter().any(|only| only == name),
        }
    }
}

/// Runs a program for each job, without a shell.
#[derive(Debug)]
pub struct Exec {
    program: PathBuf,
    args: Vec<String>,
    folder: PathBuf,
    environment: Environment,
    output_bytes: usize,
    /// Each program's attendant; it outlives a dropped attempt.
    attendants: Mutex<Tasks>,
}

impl Exec {
    /// A program with its arguments, run in `folder`. A program without a slash is looked for in
    /// PATH, a relative one in `folder`.
    ///
    /// # Errors
    /// [`Error::Invalid`] when there is no program, or a part of it has a NUL.
    pub fn new(line: &[String], folder: &Path, output_bytes: usize) -> Result<Self> {
        let Some((program, args)) = line
            .split_first()
            .filter(|(program, _)| !program.is_empty())
        else {
            return Err(Error::invalid(
                "exec is empty: write the program and its arguments, like [\"python3\", \"send_email.py\"]",
            ));
        };
        if line.iter().any(|part| part.contains('\0')) {
            return Err(Error::invalid("exec has a NUL character: take it out"));
        }
        let here = |why| Error::invalid(format!("can't tell the current folder: {why}"));
        let folder = match folder.as_os_str().is_empty() {
            true => std::env::current_dir().map_err(here)?,
            false => std::path::absolute(folder).map_err(here)?,
        };
        Ok(Self {
            program: match program.contains('/') {
                true => folder.join(program),
                false => PathBuf::from(program),
            },
            args: args.to_vec(),
            folder,
            environment: Environment::default(),
            output_bytes,
            attendants: Mutex::default(),
        })
    }

    /// The same with another part of the worker's environment.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    fn command(&self, cx: &Context) -> Command {
        let mut command = Command::new(&self.program);
        let hands_on = |name: &OsString| self.environment.hands_on(&name.to_string_lossy());
        command
            .args(&self.args)
            .current_dir(&self.folder)
            .env_clear()
            .envs(std::env::vars_os().filter(|(name, _)| hands_on(name)))
            .env("ROWLOCK_JOB_ID", cx.id.to_string())
            .env("ROWLOCK_KIND", cx.kind.as_str())
            .env("ROWLOCK_QUEUE", cx.queue.as_str())
            .env("ROWLOCK_ATTEMPT", cx.attempt.to_string())
            .env("ROWLOCK_MAX_ATTEMPTS", cx.max_attempts.to_string());
        // The worker may itself be the child of a handler: its job's key is not this one's.
        match cx.idempotency_key() {
            Ok(key) => command.env("ROWLOCK_JOB_KEY", key),
            Err(_) => command.env_remove("ROWLOCK_JOB_KEY"),
        };
        // The worker's own context, if it has one, says nothing about this job.
        match &cx.trace_context {
            Some(context) => command.env("TRACEPARENT", context),
            None => command.env_remove("TRACEPARENT"),
        };
        command
    }

    fn outcome(&self, status: ExitStatus, output: &str) -> Outcome {
        if status.success() {
            return Outcome::Done;
        }
        let how = match (status.code(), status.signal()) {
            (Some(code), _) => format!("exited with {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => "ended in a way that can't be told".to_owned(),
        };
        let mut error = format!("{} {how}", self.program.display());
        if !output.is_empty() {
            error += ": ";
            let room = JobError::LONGEST.saturating_sub(error.len());
            error += &tail(output, room);
        }
        match status.code() {
            Some(FAIL) => Outcome::Fail(error),
            // RETRY is the promise; the others are treated alike.
            Some(RETRY) | Some(_) | None => Outcome::Retry { error, after: None },
        }
    }

    fn failed(&self, what: &str, why: &std::io::Error) -> Outcome {
        let program = self.program.display();
        let error = format!("can't {what} {program}: {why}");
        Outcome::Retry { error, after: None }
    }
}

#[async_trait]
impl Handler for Exec {
    async fn run(&self, cx: &Context) -> Outcome {
        let process = match Process::start(self.command(cx), self.output_bytes) {
            Ok(process) => process,
            Err(why) => return self.failed("start", &why),
        };
        let (answer, ended) = oneshot::channel();
        let attend = process.attend(cx.payload.as_str().to_owned(), cx.clock().clone(), answer);
        {
            let mut attendants = self
                .attendants
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            attendants.tidy();
            attendants.start("rowlock-exec", attend);
        }
        match ended.await {
            Ok(Ok((status, output))) => {
                log::debug!(job = %cx.id, %status, output, "program ended");
                self.outcome(status, &output)
            }
            Ok(Err(why)) => self.failed("wait for", &why),
            Err(_) => self.failed("wait for", &std::io::Error::other("its attendant is gone")),
        }
    }

    async fn close(&self) {
        let mut attendants = {
            let mut attendants = self
                .attendants
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *attendants)
        };
        attendants.join().await;
    }
}
