//! `migrate`: the tables, and who may use them.

use clap::{Args, Subcommand};
use rowlock::engine::postgres::Role;

#[derive(Debug, Subcommand)]
pub enum Migrate {
    /// Bring the tables up to date, in a new file or beside an application's own tables
    #[command(after_help = "\
SQLite: all tables begin with rowlock_. In an application's own file nothing else changes but the
journal mode, which becomes WAL; user_version and application_id stay.
PostgreSQL: everything is in the schema rowlock (or --schema), which is made if it isn't there; that
needs CREATE on the database, and no other right. Nobody but the owner may use it until `migrate
roles` says so.

Examples:
  rowlock migrate up --url sqlite:app.db
  rowlock migrate up --url postgres://localhost/app")]
    Up,
    /// Say which schema the database has and which one this rowlock needs
    #[command(after_help = "Example:\n  rowlock migrate status --json")]
    Status,
    /// Print the statements of every migration
    #[command(after_help = "\
For the engine of --url; no database is asked.

Examples:
  rowlock migrate sql > rowlock.sql
  rowlock migrate sql --url postgres://localhost/app | psql app
  rowlock migrate sql --part 'index aside_due' --url postgres://localhost/app | psql app")]
    Sql {
        /// Only what makes this index, function, view or trigger anew, as `rowlock doctor` names it
        #[arg(long, value_name = "PART")]
        part: Option<String>,
    },
    /// Print the roles of a PostgreSQL store and what each may do, or make them so
    Roles(Roles),
}

#[derive(Debug, Args)]
#[command(after_help = "\
The owner is whoever ran `migrate up`. Roles that are missing are made, without a login; a login
gets in with GRANT rowlock_worker TO login. It may be run again, and has to be after a migration.
The guard's rights can be granted by a superuser only, as a rule; without one it says so.

Examples:
  rowlock migrate roles --url postgres://localhost/app | less
  rowlock migrate roles --url postgres://localhost/app --run --app shop")]
pub struct Roles {
    /// Run the statements instead of printing them, in one transaction
    #[arg(long)]
    pub run: bool,
    /// May only enqueue, and complete a job in its own transaction
    #[arg(long, value_name = "ROLE", default_value = "rowlock_app", value_parser = role)]
    pub app: Role,
    /// May do whatever workers and operators do
    #[arg(long, value_name = "ROLE", default_value = "rowlock_worker", value_parser = role)]
    pub worker: Role,
    /// May see and end other sessions
    #[arg(long, value_name = "ROLE", default_value = "rowlock_guard", value_parser = role)]
    pub guard: Role,
    /// May look, and change nothing
    #[arg(long, value_name = "ROLE", default_value = "rowlock_reader", value_parser = role)]
    pub reader: Role,
}

fn role(text: &str) -> Result<Role, String> {
    Role::new(text).map_err(|why| why.to_string())
}
