//! A process under test: its lines are events, its end is certain.

use crate::deadline::{DEADLINE, until};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

/// A running process. It is killed when this is dropped.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

/// A process that has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// All of its stdout.
    pub stdout: String,
    /// All of its stderr.
    pub stderr: String,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

#[expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't run its process has failed"
)]
impl Process {
    /// Starts a command whose stdout and stderr lines become events.
    ///
    /// # Panics
    /// When it can't be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|why| panic!("can't start {command:?}: {why}"));
        let (sender, lines) = channel();
        let out: Box<dyn Read + Send> = Box::new(child.stdout.take().expect("a piped stdout"));
        let err: Box<dyn Read + Send> = Box::new(child.stderr.take().expect("a piped stderr"));
        for stream in [out, err] {
            let sender = sender.clone();
            std::thread::Builder::new()
                .name("lines".to_owned())
                .spawn(move || {
                    for line in BufReader::new(stream).lines().map_while(Result::ok) {
                        if sender.send(line).is_err() {
                            return;
                        }
                    }
                })
                .expect("a thread");
        }
        Self {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// Runs a command to its end, with `input` on its stdin.
    ///
    /// # Panics
    /// When it can't be started.
    #[must_use]
    pub fn run(command: &mut Command, input: &str) -> Finished {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|why| panic!("can't start {command:?}: {why}"));
        let mut stdin = child.stdin.take().expect("a piped stdin");
        let input = input.to_owned();
        let writer = std::thread::Builder::new()
            .name("stdin".to_owned())
            // A process that doesn't read to the end closes the pipe: that is its right.
            .spawn(move || stdin.write_all(input.as_bytes()).unwrap_or(()))
            .expect("a thread");
        let output = child.wait_with_output().expect("an exit status");
        writer.join().expect("the writer ends");
        output.into()
    }

    /// Waits for a line that contains `text`.
    ///
    /// # Panics
    /// When the process ends or the deadline passes without one; shows what it said.
    pub fn line_with(&mut self, text: &str) -> String {
        loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return line;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no line with {text:?} in time; it said: {:#?}", self.seen)
                }
                Err(RecvTimeoutError::Disconnected) => {
                    panic!(
                        "ended without a line with {text:?}; it said: {:#?}",
                        self.seen
                    )
                }
            }
        }
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it hasn't ended yet.
    ///
    /// # Panics
    /// When its status can't be read.
    pub fn lives(&mut self) -> bool {
        self.child.try_wait().expect("a status").is_none()
    }

    /// Sends a signal by name, as `kill -NAME` does.
    ///
    /// # Panics
    /// When the signal can't be sent.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([format!("-{name}"), self.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(sent.success(), "kill -{name} {} failed", self.id());
    }

    /// Waits until all of it has stopped, after SIGSTOP.
    ///
    /// # Panics
    /// When it has ended instead, or goes on.
    pub fn wait_until_stopped(&self) {
        let path = format!("/proc/{}/stat", self.id());
        until("it stops", || {
            let stat = std::fs::read_to_string(&path).expect("a living process");
            // Behind its name, which may hold anything.
            let state = stat.rsplit(") ").next()?.chars().next()?;
            (state == 'T').then_some(())
        });
    }

    /// Waits for its end; returns the exit code and every line.
    ///
    /// # Panics
    /// When its status can't be read.
    pub fn wait(mut self) -> (Option<i32>, Vec<String>) {
        let mut lines = std::mem::take(&mut self.seen);
        loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(line) => lines.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it doesn't end; it said: {lines:#?}"),
            }
        }
        let status = self.child.wait().expect("an exit status");
        (status.code(), lines)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
