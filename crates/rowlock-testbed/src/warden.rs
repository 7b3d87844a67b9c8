//! The warden of a server: a shell that starts and stops it by order, and cleans up when the orders
//! end, however the test process ended.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

/// A running warden. Its pipe closes with this value or with the test process: then the server goes.
#[derive(Debug)]
pub(crate) struct Warden {
    talk: Mutex<Option<(ChildStdin, BufReader<ChildStdout>)>>,
    child: Mutex<Child>,
}

/// Who runs a server, since servers refuse to run as root.
#[derive(Debug, Clone, Copy)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

#[expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that can't run its server has failed"
)]
impl Warden {
    /// Starts the shell script with its arguments.
    pub(crate) fn start(script: &str, arguments: &[&str]) -> Self {
        let mut command = Command::new("sh");
        command
            .args(["-c", script, "warden"])
            .args(arguments)
            // Neither the test's library preloads nor its PG* variables are meant for the server.
            .env_clear()
            .envs(["PATH", "TMPDIR"].map(|name| (name, std::env::var(name).unwrap_or_default())))
            .env("LC_ALL", "C")
            .current_dir("/")
            // Ctrl-C in a terminal ends the test process, which is when the warden is needed.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        if let Some(user) = unprivileged() {
            command.uid(user.uid).gid(user.gid);
        }
        let mut child = command.spawn().expect("a shell");
        let orders = child.stdin.take().expect("a piped stdin");
        let answers = BufReader::new(child.stdout.take().expect("a piped stdout"));
        Self {
            talk: Mutex::new(Some((orders, answers))),
            child: Mutex::new(child),
        }
    }

    /// Waits for the warden's next line: `ok` and a word, or else why it failed.
    pub(crate) fn answer(&self) -> Result<String, String> {
        let mut talk = self.talk.lock().expect("a lock");
        let (_, answers) = talk.as_mut().expect("a warden on duty");
        let mut line = String::new();
        answers.read_line(&mut line).expect("a line");
        match line.trim_end().split_once(' ') {
            Some(("ok", word)) => Ok(word.to_owned()),
            _ if line.trim_end() == "ok" => Ok(String::new()),
            _ if line.is_empty() => Err("its warden has ended".to_owned()),
            _ => Err(line.trim_end().to_owned()),
        }
    }

    /// Gives an order and waits for its answer.
    pub(crate) fn order(&self, order: &str) -> Result<String, String> {
        {
            let mut talk = self.talk.lock().expect("a lock");
            let (orders, _) = talk.as_mut().expect("a warden on duty");
            if let Err(why) = writeln!(orders, "{order}") {
                panic!("the server's warden takes no orders: {why}");
            }
        }
        self.answer()
    }
}

impl Drop for Warden {
    fn drop(&mut self) {
        if let Ok(mut talk) = self.talk.lock() {
            *talk = None;
        }
        if let Ok(mut child) = self.child.lock() {
            let _ = child.wait();
        }
    }
}

/// The user for servers when this process is root; none when it is not.
///
/// # Panics
/// When the system has neither `postgres` nor `nobody`.
#[expect(clippy::expect_used, reason = "a test without a user has failed")]
pub(crate) fn unprivileged() -> Option<User> {
    let id = Command::new("id").arg("-u").output().expect("id runs");
    if id.stdout.trim_ascii() != b"0" {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").expect("the list of users");
    let find = |name: &str| {
        let line = users
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        let uid = fields.next()?.parse().ok()?;
        let gid = fields.next()?.parse().ok()?;
        Some(User { uid, gid })
    };
    Some(
        find("postgres")
            .or_else(|| find("nobody"))
            .expect("a user postgres or nobody, since servers refuse to run as root"),
    )
}
