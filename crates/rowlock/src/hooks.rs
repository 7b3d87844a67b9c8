//! Only for this repository's tests: safeguards that can be taken out, to see a case notice it.
//!
//! `ROWLOCK_MUTANT` names a file of tests/mutants. It edits statements or switches off a piece of
//! Rust, at run time, so that all mutants share one build.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;

/// A safeguard taken out.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// What is missing, in words.
    pub about: String,
    /// The cases that must fail.
    pub caught_by: Vec<String>,
    /// Whether it belongs to the quick set.
    #[serde(default)]
    pub quick: bool,
    /// The piece of Rust that is switched off.
    #[serde(default)]
    pub switch: Option<String>,
    /// The statements that are changed.
    #[serde(default, rename = "edit")]
    pub edits: Vec<Edit>,
}

/// A change of one statement.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The engine.
    pub engine: String,
    /// The statement's file name without its ending.
    pub statement: String,
    /// The text that goes.
    pub find: String,
    /// The text that comes.
    pub put: String,
}

fn mutant() -> Option<&'static Mutant> {
    static MUTANT: OnceLock<Option<Mutant>> = OnceLock::new();
    MUTANT
        .get_or_init(|| {
            let path = PathBuf::from(std::env::var_os("ROWLOCK_MUTANT")?);
            #[expect(clippy::expect_used, reason = "a broken mutant must stop its run")]
            let text = std::fs::read_to_string(&path).expect("ROWLOCK_MUTANT names a file");
            #[expect(clippy::expect_used, reason = "a broken mutant must stop its run")]
            Some(toml::from_str(&text).expect("a mutant has the fields of hooks::Mutant"))
        })
        .as_ref()
}

/// The statement with the mutant's edits, if it has any.
#[must_use]
pub fn statement(engine: &str, name: &str, text: &str) -> Option<String> {
    let mut edits = mutant()?
        .edits
        .iter()
        .filter(|edit| edit.engine == engine && edit.statement == name)
        .peekable();
    edits.peek()?;
    Some(edits.fold(text.to_owned(), |text, edit| {
        assert!(
            text.contains(&edit.find),
            "the mutant's text is not in {name}.sql: {}",
            edit.find
        );
        text.replace(&edit.find, &edit.put)
    }))
}

/// Whether a mutant has switched this safeguard off.
#[must_use]
pub fn switched_off(safeguard: &str) -> bool {
    mutant().is_some_and(|mutant| mutant.switch.as_deref() == Some(safeguard))
}

/// A crash point that was named, and how often it must be passed first.
struct Planned {
    name: String,
    passes: AtomicU64,
}

impl Planned {
    /// `name` or `name#3`: at the third time.
    fn from_env(variable: &str) -> Option<Self> {
        let text = std::env::var(variable).ok()?;
        let (name, times) = text.split_once('#').unwrap_or((&text, "1"));
        #[expect(clippy::expect_used, reason = "a broken plan must stop its run")]
        let times: u64 = times.parse().expect("a crash point is name#times");
        Some(Self {
            name: name.to_owned(),
            passes: AtomicU64::new(times),
        })
    }

    fn is_now(&self, name: &str) -> bool {
        self.name == name && self.passes.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

/// Aborts the process when `ROWLOCK_CRASH_AT` names this step, stops it (until SIGCONT) when
/// `ROWLOCK_PAUSE_AT` does; both say so on standard output.
#[expect(clippy::print_stdout, reason = "the test waits for this line")]
pub fn crash_point(name: &str) {
    static CRASH: OnceLock<Option<Planned>> = OnceLock::new();
    static PAUSE: OnceLock<Option<Planned>> = OnceLock::new();
    let planned = |plan: &'static OnceLock<Option<Planned>>, variable| {
        plan.get_or_init(|| Planned::from_env(variable)).as_ref()
    };
    if planned(&CRASH, "ROWLOCK_CRASH_AT").is_some_and(|plan| plan.is_now(name)) {
        println!("crash point {name}");
        std::process::abort();
    }
    if planned(&PAUSE, "ROWLOCK_PAUSE_AT").is_some_and(|plan| plan.is_now(name)) {
        println!("paused at {name}");
        #[expect(clippy::expect_used, reason = "a test that can't pause has failed")]
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP)
            .expect("a process may stop itself");
    }
}

/// Panics when `ROWLOCK_PANIC_AT` names this place: `name#3` the third time, `name` every time.
#[expect(clippy::panic, reason = "that is what it is for")]
pub fn panic_point(name: &str) {
    static PANIC: OnceLock<Option<(Planned, bool)>> = OnceLock::new();
    let planned = PANIC.get_or_init(|| {
        let every = !std::env::var("ROWLOCK_PANIC_AT").ok()?.contains('#');
        Some((Planned::from_env("ROWLOCK_PANIC_AT")?, every))
    });
    if let Some((plan, every)) = planned
        && (plan.is_now(name) || *every && plan.name == name)
    {
        panic!("panic point {name}");
    }
}

/// How many virtual machine instructions one count stands for.
#[cfg(feature = "sqlite")]
pub(crate) const STEPS: std::os::raw::c_int = 50;
static COUNTED: AtomicU64 = AtomicU64::new(0);

#[cfg(feature = "sqlite")]
pub(crate) fn count_steps() -> bool {
    COUNTED.fetch_add(1, Ordering::Relaxed);
    false
}

/// The work SQLite has done in this process so far, in units of a few instructions.
#[must_use]
pub fn sqlite_steps() -> u64 {
    COUNTED.load(Ordering::Relaxed)
}
