//! Finds the configuration and the store: file < environment < flag.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rowlock::config::Config;
use rowlock::engine::sqlite::{self, Address, LATEST, Owner, Sqlite, Synchronous};
use rowlock::{Clock, Rowlock};

use crate::cli::Global;
use crate::{exit, out, show};

/// Where the configuration is when nobody says so.
pub const CONFIG: &str = "rowlock.toml";
const URL: &str = "sqlite:rowlock.db";

/// What a verb does with the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It only reads: a missing file is an error.
    Read,
    /// It writes: a missing file is made.
    Write,
}

/// The configuration and the address that came of it.
#[derive(Debug)]
pub struct Setup {
    pub config: Config,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    pub address: Address,
    /// The flags that lead another command to the same store.
    flags: String,
}

impl Setup {
    /// Reads the configuration, if there is one, and decides on the store.
    pub fn read(global: &Global) -> Result<Self> {
        let file = match &global.config {
            Some(path) if !path.exists() => {
                let path = path.display();
                return Err(exit::with(
                    exit::USAGE,
                    format!(
                        "the configuration {path} doesn't exist: `rowlock init --config {path}` writes one"
                    ),
                ));
            }
            Some(path) => Some(path.clone()),
            None => Some(PathBuf::from(CONFIG)).filter(|path| path.exists()),
        };
        let config = match &file {
            Some(path) => Config::load(path)?,
            None => Config::default(),
        };
        let (address, flags) = match (&global.url, &config.url, &file) {
            (Some(url), _, _) => (parse(url)?, format!(" --url {}", quoted(url))),
            (None, Some(url), Some(file)) => {
                let folder = file.parent().unwrap_or(Path::new(""));
                (parse(url)?.relative_to(folder), config_flag(global))
            }
            _ => (parse(URL)?, config_flag(global)),
        };
        Ok(Self {
            config,
            file,
            address,
            flags,
        })
    }

    /// Opens the store; says so when it had to be made.
    pub fn open(&self, access: Access) -> Result<Rowlock> {
        let (rowlock, created) = self.open_quietly(access)?;
        if created {
            let path = show::path(&self.address.path);
            out::note(&format!("created {path} (schema {LATEST})"));
        }
        Ok(rowlock)
    }

    /// Opens the store; whether it had to be made is the second answer.
    pub fn open_quietly(&self, access: Access) -> Result<(Rowlock, bool)> {
        let clock = Clock::system();
        let mut created = false;
        match self.owner(access)? {
            Owner::Rowlock => {}
            Owner::Foreign => {
                return Err(exit::with(
                    exit::SCHEMA,
                    format!(
                        "{} has another application's tables and none of rowlock's: {} adds ours \
                         beside them, or choose another file with --url",
                        show::path(&self.address.path),
                        self.command("migrate up"),
                    ),
                ));
            }
            Owner::Nobody if access == Access::Read => {
                return Err(exit::with(
                    exit::SCHEMA,
                    format!(
                        "{} is empty: {} adds the tables",
                        show::path(&self.address.path),
                        self.command("migrate up"),
                    ),
                ));
            }
            // Two processes may do so at once: the lock decides who was first.
            Owner::Nobody => created = !sqlite::migrate_up(&self.address, &clock)?.is_empty(),
        }
        if access == Access::Write {
            self.warn_of_loss();
        }
        let version = sqlite::schema_version(&self.address)?;
        if version.stored < version.latest {
            return Err(exit::with(
                exit::SCHEMA,
                format!(
                    "{} has schema {}, this rowlock needs {}: {} brings it up to date",
                    show::path(&self.address.path),
                    version.stored,
                    version.latest,
                    self.command("migrate up"),
                ),
            ));
        }
        let engine = Sqlite::open(self.address.clone(), clock.clone())?
            .keep_errors(self.config.limits.errors_kept);
        Ok((Rowlock::with(engine, clock), created))
    }

    /// Whose file it is; a verb that only reads wants one to be there.
    pub fn owner(&self, access: Access) -> Result<Owner> {
        if access == Access::Read && !self.address.path.exists() {
            return Err(exit::with(
                exit::UNREACHABLE,
                format!(
                    "{} doesn't exist: check --url, or make it with {}",
                    show::path(&self.address.path),
                    self.command("migrate up"),
                ),
            ));
        }
        Ok(sqlite::owner(&self.address)?)
    }

    /// A command line for the same store, quoted for a message.
    pub fn command(&self, verb: &str) -> String {
        format!("`{}`", self.line(verb))
    }

    /// A command line for the same store.
    pub fn line(&self, verb: &str) -> String {
        format!("rowlock {verb}{}", self.flags)
    }

    fn warn_of_loss(&self) {
        if self.address.synchronous == Synchronous::Normal {
            out::warn(
                "synchronous=normal: a power cut can lose the last jobs that were already answered \
                 as queued, and the last results; the file stays whole",
            );
        }
    }
}

fn config_flag(global: &Global) -> String {
    let flag = |path: &PathBuf| format!(" --config {}", quoted(&path.display().to_string()));
    global.config.as_ref().map(flag).unwrap_or_default()
}

/// As a shell needs it.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=".contains(c);
    match text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", show::text(text).replace('\'', "'\\''")),
    }
}

/// Reads a URL. One of another store may have a password in it: only its scheme is repeated.
fn parse(url: &str) -> Result<Address> {
    match url.split_once(':') {
        Some(("sqlite", _)) => Ok(Address::parse(url)?),
        Some((scheme, _)) if scheme.len() > 1 => Err(exit::with(
            exit::USAGE,
            format!(
                "{}: is not a store that rowlock {} knows: write sqlite:PATH",
                show::excerpt(scheme, 20),
                env!("CARGO_PKG_VERSION")
            ),
        )),
        _ => Err(exit::with(
            exit::USAGE,
            format!("{url:?} is not the address of a store: write sqlite:PATH"),
        )),
    }
}
