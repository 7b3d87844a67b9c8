//! A terminal for programs that draw: tmux shows what is on the screen, and types.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::deadline::until;

/// A terminal with a shell in it, whose prompt is `ready> `. It is gone when this is dropped, or when
/// the test process is.
#[derive(Debug)]
pub struct Terminal {
    socket: PathBuf,
    warden: Child,
    orders: Option<ChildStdin>,
}

#[expect(
    clippy::expect_used,
    reason = "a test that can't have its terminal has failed"
)]
impl Terminal {
    /// A shell that works in `folder`, with these variables beside the test's own; `ROWLOCK_*` and
    /// `NO_COLOR` are none of those.
    ///
    /// # Panics
    /// When tmux isn't installed or doesn't start.
    #[must_use]
    pub fn start(folder: &Path, (columns, rows): (u16, u16), variables: &[(&str, &str)]) -> Self {
        // One that has just been ended may still listen.
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let socket = folder.join(format!("tmux-{}", STARTED.fetch_add(1, Ordering::Relaxed)));
        let mut command = Command::new("sh");
        command
            .args(["-c", include_str!("warden.sh"), "warden"])
            .arg(&socket)
            .arg(folder)
            .args([columns.to_string(), rows.to_string()])
            // It may itself run in a tmux.
            .env_remove("TMUX")
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "xterm-256color")
            // Ctrl-C in a terminal ends the test process, which is when the warden is needed.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("ROWLOCK_") || name == "NO_COLOR" {
                command.env_remove(&*name);
            }
        }
        command.envs(variables.iter().copied());
        let mut warden = command.spawn().expect("a shell");
        let orders = warden.stdin.take();
        let answers = warden.stdout.take().expect("a piped stdout");
        let mut line = String::new();
        BufReader::new(answers)
            .read_line(&mut line)
            .expect("a line");
        assert_eq!(line, "ok\n", "tmux doesn't start: is it installed?");
        let terminal = Self {
            socket,
            warden,
            orders,
        };
        terminal.wait("ready>");
        terminal
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(&self.socket).args(arguments);
        tmux
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("tmux runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "tmux {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Types a text as it is.
    pub fn write(&self, text: &str) {
        self.tmux(&["send-keys", "-t", "it", "-l", text]);
    }

    /// Presses a key by its name in tmux, such as `Enter`, `C-c` or `F12`.
    pub fn press(&self, key: &str) {
        self.tmux(&["send-keys", "-t", "it", key]);
    }

    /// Types a command once the shell asks for one: what comes before is echoed between other lines.
    pub fn run(&self, command: &str) {
        self.wait_for("the prompt", |screen| screen.trim_end().ends_with("ready>"));
        self.write(command);
        self.press("Enter");
    }

    /// What is on the screen.
    #[must_use]
    pub fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-t", "it"])
    }

    /// The same with what makes its colours.
    #[must_use]
    pub fn coloured(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e", "-t", "it"])
    }

    /// Whether a program has the screen for itself.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        let flags = self.tmux(&["display-message", "-p", "-t", "it", "#{alternate_on}"]);
        flags.trim() != "0"
    }

    /// Whether the cursor can be seen.
    #[must_use]
    pub fn has_cursor(&self) -> bool {
        let flags = self.tmux(&["display-message", "-p", "-t", "it", "#{cursor_flag}"]);
        flags.trim() == "1"
    }

    /// Makes it larger or smaller.
    pub fn resize(&self, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        self.tmux(&["resize-window", "-t", "it", "-x", &columns, "-y", &rows]);
    }

    /// Waits until a text is on the screen, and gives all of it.
    ///
    /// # Panics
    /// When the deadline passes first.
    pub fn wait(&self, text: &str) -> String {
        self.wait_for(text, |screen| screen.contains(text))
    }

    /// Waits until the screen is as it should be.
    ///
    /// # Panics
    /// When the deadline passes first.
    pub fn wait_for(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        until(&format!("{what} on the screen"), || {
            Some(self.screen()).filter(|screen| is_so(screen))
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Whoever reads of a failure wants to see what the test saw.
        if std::thread::panicking()
            && let Ok(seen) = self.command(&["capture-pane", "-p", "-t", "it"]).output()
        {
            let screen = String::from_utf8_lossy(&seen.stdout);
            #[expect(
                clippy::print_stderr,
                reason = "it belongs to the message of the panic"
            )]
            let () = eprintln!("the screen was:\n{screen}");
        }
        self.orders = None;
        let _ = self.warden.wait();
    }
}
