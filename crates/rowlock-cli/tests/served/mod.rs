//! The API of a real process, asked by a client that knows nothing but a socket.
#![allow(dead_code, reason = "each test binary uses its part")]

pub mod accessible;
pub mod browser;
pub mod doors;
pub mod drained;
pub mod everybody;
pub mod hostile;
pub mod kept;
pub mod matrix;
pub mod pages;
pub mod seen;
pub mod told;
pub mod verbs;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rowlock_testbed::Process;
use serde_json::Value;

/// Tokens that nobody may show.
pub const OPERATOR: &str = "c4nary-operator-0123456789";
pub const READER: &str = "c4nary-reader-0123456789ab";

/// One of everything.
pub const CONFIG: &str = r#"
[handlers.echo]
builtin = "echo"
[handlers.fail]
exec = ["sh", "-c", "cat >&2; exit 65"]
[handlers.gate]
exec = ["sh", "-c", "read -r _ <gate"]
[[cron]]
name = "nightly"
kind = "echo"
cron = "0 3 * * *"
[[pair]]
kind = "make"
every = "1h"
key = ["id"]
query = "SELECT id FROM things"
"#;

/// A store, and the binary working with it.
pub trait Home {
    fn command(&self, args: &[&str]) -> Command;
    fn sql(&self, text: &str);
    /// What must not be seen anywhere.
    fn secrets(&self) -> Vec<String>;
}

/// Runs the binary to its end; the answer is its stdout.
pub fn ok(home: &dyn Home, args: &[&str]) -> String {
    let finished = Process::run(&mut home.command(args), "");
    assert_eq!(finished.code, Some(0), "{args:?}: {finished:?}");
    finished.stdout
}

/// A job of kind `gate` that has begun ends when this is opened.
pub struct Gate(PathBuf);

impl Gate {
    pub fn of(home: &dyn Home) -> Self {
        let command = home.command(&[]);
        let path = command.get_current_dir().unwrap().join("gate");
        let made = Process::run(Command::new("mkfifo").arg(&path), "");
        assert_eq!(made.code, Some(0), "{made:?}");
        Self(path)
    }

    /// Waits until the job has come to it.
    pub fn open(&self) {
        std::fs::write(&self.0, "\n").unwrap();
    }
}

/// A store with one of everything, and jobs in several states.
pub fn furnish(home: &dyn Home) {
    ok(home, &["migrate", "up"]);
    home.sql("CREATE TABLE things (id integer PRIMARY KEY); INSERT INTO things VALUES (7)");
    ok(home, &["apply"]);
    for kind in ["echo", "echo", "echo", "other"] {
        ok(home, &["enqueue", kind, r#"{"to":"ada"}"#]);
    }
    ok(home, &["job", "cancel", "1"]);
    ok(
        home,
        &["switch", "set", "queue:mail", "hold", "--reason", "x"],
    );
}

/// A server.
pub struct Served {
    pub process: Process,
    pub address: String,
}

impl Served {
    /// Starts one with a reader's and an operator's token.
    pub fn with_tokens(home: &dyn Home, args: &[&str]) -> Self {
        let mut command = home.command(&[&["dashboard", "--bind", "127.0.0.1:0"], args].concat());
        command.env("ROWLOCK_DASHBOARD_TOKEN", OPERATOR);
        command.env("ROWLOCK_DASHBOARD_READER_TOKEN", READER);
        Self::of(&mut command)
    }

    /// Starts one that lets everybody in.
    pub fn open(home: &dyn Home) -> Self {
        Self::of(&mut home.command(&["dashboard", "--bind", "127.0.0.1:0"]))
    }

    pub fn of(command: &mut Command) -> Self {
        let mut process = Process::start(command);
        let line = process.line_with("  api        http://");
        let rest = line.trim_start().strip_prefix("api        http://");
        let address = rest.and_then(|rest| rest.split_once("/api/v1"));
        let address = address.unwrap_or_else(|| panic!("{line}")).0.to_owned();
        Self { process, address }
    }

    pub fn ask(&self, ask: &Ask) -> Answer {
        Answer::from(self.send(ask))
    }

    /// A request whose answer is read later.
    pub fn send(&self, ask: &Ask) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        // A server that refuses early may close before everything was sent.
        let _ = stream.write_all(&ask.bytes(&self.address));
        stream
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask(&Ask::new("GET", path))
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        self.ask(&Ask::new("POST", path).json(body))
    }

    /// Ends it; everything it has said.
    pub fn end(self) -> Vec<String> {
        self.process.signal("TERM");
        let (code, lines) = self.process.wait();
        assert_eq!(code, Some(0), "{lines:#?}");
        lines
    }
}

/// A request.
#[derive(Debug, Clone)]
pub struct Ask {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Ask {
    /// A path below the API's root, or any other.
    pub fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: String::new(),
        }
    }

    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn json(mut self, body: &str) -> Self {
        self.body = body.to_owned();
        self.with("Content-Type", "application/json")
    }

    pub fn bearer(self, token: &str) -> Self {
        self.with("Authorization", &format!("Bearer {token}"))
    }

    fn bytes(&self, address: &str) -> Vec<u8> {
        // Two slashes lead past the API.
        let path = match self.path.strip_prefix('/') {
            Some(rest) if rest.starts_with('/') => rest.to_owned(),
            _ if self.path.starts_with("/api") => self.path.clone(),
            _ => format!("/api/v1{}", self.path),
        };
        let mut head = format!("{} {path} HTTP/1.1\r\nConnection: close\r\n", self.method);
        if !self.headers.iter().any(|(name, _)| name == "Host") {
            head += &format!("Host: {address}\r\n");
        }
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n{}", self.body.len(), self.body);
        head.into_bytes()
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl From<TcpStream> for Answer {
    fn from(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        Self::of(&String::from_utf8_lossy(&bytes))
    }
}

impl Answer {
    fn of(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Self {
            status: status.unwrap_or_else(|| panic!("{text:?}")),
            head: head.to_ascii_lowercase(),
            body: body.to_owned(),
        }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|why| panic!("{why}: {self:?}"))
    }

    /// The answer of something that went well.
    pub fn ok(&self) -> Value {
        assert!(matches!(self.status, 200 | 201), "{self:?}");
        self.json()
    }

    /// The word of something that didn't.
    pub fn code(&self) -> String {
        let json = self.json();
        for field in ["code", "sentence", "remedy"] {
            assert!(json["error"][field].is_string(), "{self:?}");
        }
        json["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }
}

/// Makes a test of each case.
#[macro_export]
macro_rules! served {
    ($home:expr; $($module:ident: $($case:ident),+ $(,)?;)+) => {
        $($(
            #[test]
            fn $case() {
                let home = $home;
                $crate::served::$module::$case(&home);
            }
        )+)+
    };
}
