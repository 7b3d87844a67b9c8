//! Where everything on stderr goes. No line of it ever ends the process, and none holds up a worker.
//!
//! A process that runs for long hands its lines to a thread, which may wait for whatever reads them: a log disk may be
//! full, a pipe may have lost its reader, and one that is merely full takes nothing for as long as it likes. What doesn't
//! fit is dropped, counted, and owned up to as soon as stderr takes lines again.

use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::Result;
use rowlock::run::task::Thread;

/// How many bytes may wait for stderr.
const ROOM: usize = 1 << 20;
/// How much is written at once: a pipe takes it whole, so that its progress is seen.
const AT_ONCE: usize = 4096;
/// How long a process that ends waits for a stderr that takes nothing.
const LAST_LINES: Duration = Duration::from_secs(1);

static QUEUE: Queue = Queue {
    state: Mutex::new(State {
        lines: Vec::new(),
        lost: 0,
        writing: false,
        taken: 0,
    }),
    changed: Condvar::new(),
};
static THREAD: OnceLock<Thread> = OnceLock::new();

struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    lines: Vec<u8>,
    /// Lines that were dropped and not told of yet.
    lost: usize,
    writing: bool,
    /// How often stderr has taken something.
    taken: u64,
}

/// From here on lines wait in memory, and their writer nowhere. `told` words how many lines were lost.
pub fn start(told: fn(usize) -> String) -> Result<()> {
    #[cfg(feature = "test-hooks")]
    if rowlock::hooks::switched_off("log.queued") {
        return Ok(());
    }
    let thread = Thread::start("log", move || QUEUE.serve(told))?;
    // It ends with the process.
    THREAD.get_or_init(|| thread);
    Ok(())
}

/// Writes whole lines. What can't be written is lost.
pub fn put(lines: &[u8]) {
    match THREAD.get() {
        Some(_) => QUEUE.put(lines),
        None => drop(io::stderr().lock().write_all(lines)),
    }
}

/// Waits until all lines are written, as long as stderr takes them.
pub fn flush() {
    if THREAD.get().is_some() {
        QUEUE.flush();
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, lines: &[u8]) {
        let mut state = self.state();
        if state.lines.len() + lines.len() <= ROOM {
            state.lines.extend_from_slice(lines);
        } else {
            state.lost += count(lines);
        }
        drop(state);
        self.changed.notify_all();
    }

    fn flush(&self) {
        let mut state = self.state();
        while state.writing || !state.lines.is_empty() {
            let before = state.taken;
            let waited = self.changed.wait_timeout(state, LAST_LINES);
            let (now, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            if timeout.timed_out() && now.taken == before {
                return;
            }
            state = now;
        }
    }

    fn serve(&self, told: fn(usize) -> String) {
        let mut torn = false;
        loop {
            let mut state = self.state();
            while state.lines.is_empty() {
                state.writing = false;
                self.changed.notify_all();
                let waited = self.changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
            state.writing = true;
            let lines = std::mem::take(&mut state.lines);
            let lost = std::mem::take(&mut state.lost);
            drop(state);
            // Half a line is ended first.
            let mut text = if torn { b"\n".to_vec() } else { Vec::new() };
            if lost > 0 {
                text.extend_from_slice(told(lost).as_bytes());
            }
            let told = self.write(&text);
            let rest = if told == text.len() {
                &lines[self.write(&lines)..]
            } else {
                &lines[..]
            };
            torn = match told == text.len() {
                true => !rest.is_empty() && rest.len() < lines.len() && !ends_a_line(&lines, rest),
                false => torn || told > 0,
            };
            let again = if told == text.len() { 0 } else { lost };
            self.state().lost += again + count(rest);
        }
    }

    /// How many bytes of these stderr takes.
    fn write(&self, text: &[u8]) -> usize {
        let mut written = 0;
        while written < text.len() {
            let next = &text[written..text.len().min(written + AT_ONCE)];
            match io::stderr().lock().write(next) {
                Ok(0) => break,
                Ok(bytes) => written += bytes,
                Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
            self.state().taken += 1;
        }
        written
    }
}

fn count(lines: &[u8]) -> usize {
    lines.iter().filter(|byte| **byte == b'\n').count()
}

/// Whether what was written before `rest` is whole lines.
fn ends_a_line(lines: &[u8], rest: &[u8]) -> bool {
    lines[..lines.len() - rest.len()].ends_with(b"\n")
}

/// Where `tracing` writes an event.
pub struct Stderr;

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        put(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
