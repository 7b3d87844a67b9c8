//! Who may do what: `migrate up` lets nobody in but the owner, who made the schema.

use super::connect::{self, Address, Schema};
use super::error::map;
use super::statements::{Sql, sql};
use crate::error::{Error, Result};
use crate::io::Io;

/// The name of a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role(String);

impl Role {
    /// A role's name: letters, digits, `_` and `-`.
    ///
    /// # Errors
    /// [`Error::Invalid`] that shows the rule.
    pub fn new(name: &str) -> Result<Self> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let reserved = name.starts_with("pg_") || name == "public" || name == "none";
        if name.is_empty() || name.len() > 63 || reserved || !name.chars().all(fits) {
            return Err(Error::invalid(format!(
                "{name:?} can't be a role: use 1 to 63 of A-Z a-z 0-9 _ -, and not pg_ at its start"
            )));
        }
        Ok(Self(name.to_owned()))
    }

    /// Its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One role for each task. The owner needs none: it is whoever ran `migrate up`.
#[derive(Debug, Clone)]
pub struct Roles {
    /// May only stage jobs, and complete one in its own transaction.
    pub app: Role,
    /// May do whatever workers and operators do.
    pub worker: Role,
    /// May see and end other sessions.
    pub guard: Role,
    /// May look.
    pub reader: Role,
}

/// What one role is granted.
struct Grant<'a> {
    role: &'a Role,
    sql: Sql,
    /// Whether only a superuser may grant it, as a rule.
    special: bool,
}

impl Roles {
    fn grants(&self) -> [Grant<'_>; 5] {
        let grant = |role, sql, special| Grant { role, sql, special };
        [
            grant(&self.app, sql!("role_app"), false),
            grant(&self.worker, sql!("role_worker"), false),
            grant(&self.reader, sql!("role_reader"), false),
            grant(&self.guard, sql!("role_guard"), false),
            grant(&self.guard, sql!("role_guard_sessions"), true),
        ]
    }
}

impl Grant<'_> {
    fn text(&self, sql: Sql, schema: &Schema) -> String {
        let text = sql.text(schema).replace("{role}", self.role.as_str());
        text.trim_end().to_owned()
    }
}

/// The statements that make the roles and grant them their rights, for reading or for running by hand.
/// They may be run again, as after a migration that adds tables.
#[must_use]
pub fn roles_sql(schema: &Schema, roles: &Roles) -> String {
    let mut text =
        "-- The owner is whoever ran `rowlock migrate up`; nobody else may do anything yet.\n\
        -- Let a login in with GRANT role TO login.\nBEGIN;\n"
            .to_owned();
    for grant in roles.grants() {
        let header = grant.sql.text.lines().next().unwrap_or_default();
        let purpose = header.trim_start_matches("-- purpose: ");
        text.push_str(&format!(
            "\n-- {purpose}\n{};\n{};\n",
            grant.text(sql!("role_make"), schema),
            grant.text(grant.sql, schema),
        ));
    }
    text + "COMMIT;\n"
}

/// Makes the roles that are missing and grants them their rights, all or none; says of which special
/// ones we lack the right ourselves.
///
/// # Errors
/// [`Error::Unreachable`] when this role may not grant, and whatever the server answers.
pub async fn grant_roles(address: &Address, roles: &Roles) -> Result<Vec<Role>> {
    let io = Io::start("rowlock-postgres")?;
    let mut client = connect::connect(address, &io).await?;
    let failed = |why: tokio_postgres::Error| map(&why, "granting");
    let mut refused = Vec::new();
    let mut transaction = client.transaction().await.map_err(failed)?;
    let settings = sql!("migration_settings").text(&address.schema);
    transaction.batch_execute(&settings).await.map_err(failed)?;
    for grant in roles.grants() {
        let make = grant.text(sql!("role_make"), &address.schema);
        transaction.batch_execute(&make).await.map_err(failed)?;
        let text = grant.text(grant.sql, &address.schema);
        let step = transaction.transaction().await.map_err(failed)?;
        match step.batch_execute(&text).await.map_err(failed) {
            Ok(()) => step.commit().await.map_err(failed)?,
            Err(Error::Unreachable(_)) if grant.special => {
                step.rollback().await.map_err(failed)?;
                refused.push(grant.role.clone());
            }
            Err(why) => return Err(why),
        }
    }
    transaction.commit().await.map_err(failed)?;
    Ok(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_role_is_refused() {
        for bad in [
            "",
            "a b",
            "a\"",
            "a'",
            "x;drop",
            "pg_monitor",
            "public",
            &"x".repeat(64),
        ] {
            assert!(Role::new(bad).is_err(), "{bad}");
        }
        assert_eq!(Role::new("app-1").unwrap().as_str(), "app-1");
    }

    #[test]
    fn the_statements_speak_of_the_schema_and_of_every_role() {
        let role = |name| Role::new(name).unwrap();
        let roles = Roles {
            app: role("a"),
            worker: role("w"),
            guard: role("g"),
            reader: role("r"),
        };
        let text = roles_sql(&Schema::new("jobs").unwrap(), &roles);
        for part in [
            "ON FUNCTION jobs.enqueue, ",
            "IN SCHEMA \"jobs\" TO \"w\"",
            "TO \"g\";",
            "rolname = 'r'",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
        assert!(!text.contains("{role}"), "{text}");
    }
}
