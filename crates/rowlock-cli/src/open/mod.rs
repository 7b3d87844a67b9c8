//! Finds the configuration and the store: file < environment < flag.

mod postgres;
mod routes;
mod sqlite;
mod url;
mod wait;

pub use self::url::{Store, is_postgres, parse, quoted, sink, without_password};
pub use self::wait::{Wait, Waited};

use std::path::{Path, PathBuf};

use anyhow::Result;
use rowlock::config::Config;
use rowlock::engine::postgres::Schema;
use rowlock::{Pair, Rowlock};

use crate::cli::Global;
use crate::{exit, out, rights, show};

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

/// The configuration and the store that came of it.
#[derive(Debug, Clone)]
pub struct Setup {
    pub config: Config,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    pub store: Store,
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
            // A link that leads nowhere, as to a folder that isn't mounted yet, is none that is missing.
            None => Some(PathBuf::from(CONFIG)).filter(|path| path.symlink_metadata().is_ok()),
        };
        let config = match &file {
            Some(path) => Config::load(path)?,
            None => Config::default(),
        };
        if let Some(path) = &file {
            warn_of_passwords(path, &config)?;
        }
        let (store, mut flags) = match (&global.url, &config.url, &file) {
            (Some(url), _, _) => (
                parse(url)?,
                format!(" --url {}", quoted(&without_password(url))),
            ),
            (None, Some(url), Some(file)) => {
                let folder = file.parent().unwrap_or(Path::new(""));
                (parse(url)?.relative_to(folder), config_flag(global))
            }
            _ => {
                let store = parse(URL)?;
                never_beside(&store)?;
                (store, config_flag(global))
            }
        };
        if let Some(schema) = &global.schema {
            flags += &format!(" --schema {}", schema.as_str());
        } else if let (Some(_), Some(name)) = (&global.url, &config.schema)
            && matches!(store, Store::Postgres(_))
        {
            // The URL doesn't lead back to the file.
            flags += &format!(" --schema {name}");
        }
        let store = in_schema(store, global, &config)?;
        Ok(Self {
            config,
            file,
            store,
            flags,
        })
    }

    /// Opens the store; says so when it had to be made.
    pub async fn open(&self, access: Access) -> Result<Rowlock> {
        let (rowlock, created) = self.open_quietly(access).await?;
        if created {
            out::note(&format!(
                "created {} (schema {})",
                self.store.shown(),
                self.store.latest()
            ));
        }
        Ok(rowlock)
    }

    /// Opens the store; whether it had to be made is the second answer.
    pub async fn open_quietly(&self, access: Access) -> Result<(Rowlock, bool)> {
        match &self.store {
            Store::Sqlite(address) => sqlite::open(self, address, access),
            Store::Postgres(address) => Ok((postgres::open(self, address).await?, false)),
        }
    }

    /// Whose file it is; a verb that only reads wants one to be there.
    pub fn owner(
        &self,
        address: &rowlock::engine::sqlite::Address,
        access: Access,
    ) -> Result<rowlock::engine::sqlite::Owner> {
        sqlite::owner(self, address, access)
    }

    /// The pairs of the configuration; the path of a source starts at the file's folder.
    pub fn pairs(&self) -> Result<Vec<Pair>> {
        let mut pairs = self.config.pairs()?;
        let folder = self.file.as_deref().and_then(Path::parent);
        for pair in &mut pairs {
            if let Some(url) = pair.source.take() {
                let place = parse(&url)?.relative_to(folder.unwrap_or(Path::new("")));
                pair.source = Some(match place {
                    Store::Sqlite(address) => format!("sqlite:{}", address.path.display()),
                    Store::Postgres(_) => url,
                });
            }
        }
        Ok(pairs)
    }

    /// A command line for the same store, quoted for a message.
    pub fn command(&self, verb: &str) -> String {
        format!("`{}`", self.line(verb))
    }

    /// A command line for the same store. It holds no password.
    pub fn line(&self, verb: &str) -> String {
        format!("rowlock {verb}{}", self.flags)
    }
}

/// A program that a handler runs doesn't get the worker's URL. Without one it would make a store that no worker looks
/// at, and its jobs would wait there for ever.
fn never_beside(store: &Store) -> Result<()> {
    let Store::Sqlite(address) = store else {
        return Ok(());
    };
    let is_there = std::fs::metadata(&address.path).is_ok_and(|file| file.len() > 0);
    if is_there || std::env::var_os("ROWLOCK_JOB_ID").is_none() {
        return Ok(());
    }
    Err(exit::with(
        exit::UNREACHABLE,
        "this runs inside a handler and has no URL: write env = [\"ROWLOCK_URL\", ...] into its [handlers.NAME], \
         with every variable that it needs, or url = ... into rowlock.toml",
    ))
}

/// Says so when everybody on this machine may read a configuration with a password in it.
fn warn_of_passwords(path: &Path, config: &Config) -> Result<()> {
    let mut urls: Vec<String> = config.url.iter().cloned().collect();
    urls.extend(config.pairs()?.into_iter().filter_map(|pair| pair.source));
    urls.extend(config.routes()?.into_iter().map(|route| route.to));
    urls.extend(
        config
            .handlers
            .values()
            .filter_map(|each| each.http.clone()),
    );
    if urls.iter().any(|url| self::url::has_password(url)) && rights::open_to_everybody(path) {
        let path = show::path(path);
        out::warn(&format!(
            "everybody on this machine may read {path}, and it has a password in a URL: chmod o= {path}, or take \
             the URL from the environment"
        ));
    }
    Ok(())
}

fn config_flag(global: &Global) -> String {
    let flag = |path: &PathBuf| format!(" --config {}", quoted(&path.display().to_string()));
    global.config.as_ref().map(flag).unwrap_or_default()
}

/// Only a server has schemas. One that the file names may be meant for the URL that a flag replaces.
fn in_schema(store: Store, global: &Global, config: &Config) -> Result<Store> {
    let named = match (&global.schema, &config.schema) {
        (Some(schema), _) => Some(schema.clone()),
        (None, Some(name)) => Some(Schema::new(name)?),
        (None, None) => None,
    };
    match (store, named) {
        (Store::Postgres(mut address), Some(schema)) => {
            address.schema = schema;
            Ok(Store::Postgres(address))
        }
        (Store::Sqlite(_), Some(_)) if global.schema.is_some() || global.url.is_none() => {
            Err(exit::with(
                exit::USAGE,
                "a schema is for PostgreSQL, and the store is a SQLite file, whose tables begin with \
                 rowlock_: take the schema out, or check --url",
            ))
        }
        (store, _) => Ok(store),
    }
}
