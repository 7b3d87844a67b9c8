//! A program with everything it starts: fed, listened to, and ended as one group.
//!
//! A task of its own owns the process, so that an attempt may be dropped at any time: the task
//! notices that nobody waits any more and ends the group.

use std::os::fd::{AsFd, OwnedFd};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

use super::output::Output;
use crate::clock::Clock;
use crate::log;

/// How long a group has between SIGTERM and SIGKILL.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often to see whether a program that was asked to end has done so.
const LOOK: Duration = Duration::from_millis(20);
/// The most that is read once the program has ended: more than any pipe holds.
const LAST_READ: usize = 1024 * 1024;

/// How a program ended, and the end of what it wrote.
pub(super) type Ended = std::io::Result<(ExitStatus, String)>;

/// A started program.
pub(super) struct Process {
    // Before the child: a group is signalled while its leader isn't reaped.
    group: Group,
    child: Child,
    pipe: Receiver,
    output: Output,
}

impl Process {
    /// Starts a program in a group of its own, with stdout and stderr in one pipe.
    pub(super) fn start(mut command: Command, limit: usize) -> std::io::Result<Self> {
        let (reader, writer) = std::io::pipe()?;
        let pipe = Receiver::from_owned_fd(OwnedFd::from(reader))?;
        command
            .stdin(Stdio::piped())
            .stdout(writer.try_clone()?)
            .stderr(writer)
            .process_group(0)
            .kill_on_drop(true);
        let child = command.spawn()?;
        // The command holds the pipe's other end: without it we would wait for ourselves.
        drop(command);
        Ok(Self {
            group: Group::of(&child),
            child,
            pipe,
            output: Output::new(limit),
        })
    }

    /// Runs it to its end, or ends it once nobody waits for the answer.
    pub(super) async fn attend(
        mut self,
        input: String,
        clock: Clock,
        mut answer: oneshot::Sender<Ended>,
    ) {
        let ended = tokio::select! {
            biased;
            ended = self.listen(input) => Some(ended),
            () = answer.closed() => None,
        };
        match ended {
            Some(ended) => {
                if ended.is_ok() {
                    self.group.reaped();
                }
                // Whoever doesn't wait any more doesn't want it.
                let _ = answer.send(ended);
            }
            None => self.end(&clock).await,
        }
    }

    async fn listen(&mut self, input: String) -> Ended {
        let stdin = self.child.stdin.take();
        let feed = async {
            if let Some(mut stdin) = stdin {
                // A program may end or close its stdin without reading: that is its right.
                let _ = stdin.write_all(input.as_bytes()).await;
            }
        };
        tokio::pin!(feed);
        let (mut fed, mut open) = (false, true);
        let mut buffer = vec![0; 16 * 1024];
        let status = loop {
            tokio::select! {
                () = &mut feed, if !fed => fed = true,
                read = self.pipe.read(&mut buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(n) => self.output.push(&buffer[..n]),
                },
                status = self.child.wait() => break status?,
            }
        };
        // What it left running may hold the pipe open: only what is there already is read.
        let mut read = 0;
        while let Ok(n @ 1..) = rustix::io::read(self.pipe.as_fd(), &mut buffer[..]) {
            self.output.push(&buffer[..n]);
            read += n;
            if read >= LAST_READ {
                break;
            }
        }
        Ok((status, self.output.text()))
    }

    /// SIGTERM, and SIGKILL for whatever is left after a while. The leader is reaped last: until
    /// then no stranger can get the group's number.
    async fn end(&mut self, clock: &Clock) {
        self.group.signal(Signal::TERM);
        let gone = async {
            let mut buffer = vec![0; 16 * 1024];
            while let Ok(n @ 1..) = self.pipe.read(&mut buffer).await {
                self.output.push(&buffer[..n]);
            }
            while !self.group.leader_ended() {
                clock.sleep(LOOK).await;
            }
        };
        let in_time = clock.timeout(PATIENCE, gone).await.is_some();
        self.group.signal(Signal::KILL);
        if let Err(why) = self.child.wait().await {
            log::warn!(%why, "can't wait for a program's end");
        }
        self.group.reaped();
        let output = self.output.text();
        log::debug!(in_time, output, "program was ended");
    }
}

/// A process group. What isn't reaped when this is dropped is killed: nobody could end it later.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0
            && test_kill_process_group(group).is_ok()
            && let Err(why) = kill_process_group(group, signal)
        {
            log::warn!(%why, group = group.as_raw_nonzero(), "can't signal a process group");
        }
    }

    /// Whether the leader has ended; it isn't reaped by this.
    fn leader_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let seen = self.0.map(|leader| waitid(WaitId::Pid(leader), look));
        !matches!(seen, Some(Ok(None)))
    }

    fn reaped(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_that_is_dropped_is_killed_with_its_group() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("held");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        let script = "trap '' TERM; exec 9>held; sleep 600 & echo ready >&9; wait";
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder.path());
        let process = Process::start(command, 100).unwrap();
        let mut held = tokio::task::spawn_blocking(|| std::fs::File::open(fifo).unwrap())
            .await
            .map(|file| Receiver::from_owned_fd(OwnedFd::from(file)).unwrap())
            .unwrap();
        let mut ready = [0; 6];
        held.read_exact(&mut ready).await.unwrap();
        drop(process);
        // Its end: whoever held it is gone.
        assert_eq!(held.read(&mut ready).await.unwrap(), 0);
    }
}
