//! A folder with nothing in it, and the binary under test working there.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::path::PathBuf;
use std::process::Command;

use rowlock_testbed::{Finished, Process, TempDir, folder};

/// A place of a test's own.
pub struct Place {
    pub folder: TempDir,
}

impl Place {
    /// An empty folder.
    pub fn new() -> Self {
        Self { folder: folder() }
    }

    /// A folder with a configuration.
    pub fn with_config(text: &str) -> Self {
        let place = Self::new();
        place.write("rowlock.toml", text);
        place
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), text).expect("a file");
    }

    /// The binary, to be run here.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rowlock"));
        command.args(args).current_dir(self.folder.path());
        // What the test's own shell has set is nobody's business here.
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            // A mutant is for the binary: the case that runs it must notice.
            if name == "ROWLOCK_MUTANT" {
                continue;
            }
            if name.starts_with("ROWLOCK_") || name == "NO_COLOR" {
                command.env_remove(&*name);
            }
        }
        command
    }

    /// The store's file, as an application of its own sees it.
    pub fn file(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path("rowlock.db")).expect("a file")
    }

    /// Runs statements in it.
    pub fn sql(&self, text: &str) {
        let done = self.file().execute_batch(text);
        done.unwrap_or_else(|why| panic!("{text}: {why}"));
    }

    /// Runs it to its end.
    pub fn run(&self, args: &[&str]) -> Finished {
        self.feed(args, "")
    }

    /// Runs it to its end with `input` on stdin.
    pub fn feed(&self, args: &[&str], input: &str) -> Finished {
        let finished = Process::run(&mut self.command(args), input);
        assert!(
            !finished.stderr.contains("panicked"),
            "{args:?}: {finished:?}"
        );
        finished
    }

    /// Runs it and wants it to succeed; the answer is its stdout.
    pub fn ok(&self, args: &[&str]) -> String {
        let finished = self.run(args);
        assert_eq!(finished.code, Some(0), "{args:?}: {finished:?}");
        finished.stdout
    }

    /// Starts it in the background.
    pub fn start(&self, args: &[&str]) -> Process {
        Process::start(&mut self.command(args))
    }

    /// One JSON answer.
    pub fn json(&self, args: &[&str]) -> serde_json::Value {
        let text = self.ok(args);
        serde_json::from_str(&text).unwrap_or_else(|why| panic!("{args:?}: {why}: {text}"))
    }

    /// How `doctor` ends, and everything it says.
    pub fn doctor(&self, flags: &[&str]) -> (Option<i32>, Vec<serde_json::Value>) {
        let finished = self.run(&[&["doctor", "--json"], flags].concat());
        let lines = finished.stdout.lines();
        let found: Vec<serde_json::Value> = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        for each in &found {
            let fields: Vec<_> = each.as_object().unwrap().keys().collect();
            assert_eq!(fields, ["code", "level", "remedy", "what"], "{each}");
        }
        assert_eq!(finished.stderr, "", "{found:#?}");
        (finished.code, found)
    }

    /// The one thing that isn't well: its level, its sentence and its remedy.
    pub fn only(&self, code: &str, flags: &[&str]) -> (String, String, String) {
        let (exit, found) = self.doctor(flags);
        let bad: Vec<_> = found.iter().filter(|each| each["level"] != "ok").collect();
        assert_eq!(bad.len(), 1, "{found:#?}");
        assert_eq!(bad[0]["code"], code, "{found:#?}");
        let text = |field: &str| bad[0][field].as_str().unwrap().to_owned();
        let harmless = text("level") == "info";
        assert_eq!(exit, Some(if harmless { 0 } else { 6 }), "{found:#?}");
        (text("level"), text("what"), text("remedy"))
    }

    /// A shell in which a remedy is run as it is printed: it finds the binary.
    pub fn shell(&self, line: &str) -> Command {
        let binary = self.command(&[]);
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).current_dir(self.folder.path());
        for (name, value) in binary.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        let folder = PathBuf::from(env!("CARGO_BIN_EXE_rowlock"));
        let folder = folder.parent().expect("a folder").display();
        let path = std::env::var("PATH").unwrap_or_default();
        shell.env("PATH", format!("{folder}:{path}"));
        shell
    }

    /// Runs a remedy as it is printed, and nothing is wrong any more.
    pub fn mend(&self, remedy: &str) {
        self.remedy(remedy);
        let (exit, found) = self.doctor(&[]);
        assert_eq!(exit, Some(0), "after {remedy}: {found:#?}");
    }

    /// Runs a remedy as it is printed.
    pub fn remedy(&self, remedy: &str) {
        let finished = Process::run(&mut self.shell(remedy), "");
        assert_eq!(finished.code, Some(0), "{remedy}: {finished:?}");
    }

    /// How many jobs the store has, whatever their state.
    pub fn jobs(&self) -> u64 {
        let stats = self.json(&["stats", "--json"]);
        ["pending", "processing", "completed", "failed", "cancelled"]
            .iter()
            .filter_map(|state| stats[*state].as_u64())
            .sum()
    }
}
