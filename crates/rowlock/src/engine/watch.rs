//! What a guard asks of the server, and the budgets of workload classes.

use async_trait::async_trait;

use super::{Applied, Vitals};
use crate::error::{Error, Result};
use crate::guard::{Action, Class, Cost, End, Pin};
use crate::job::Name;

/// What keeps a server from removing old rows. An engine without a server has nothing of it, and says so.
#[async_trait]
pub trait Watch: Send + Sync + 'static {
    /// Everything that pins the horizon now.
    async fn pins(&self) -> Result<Vec<Pin>> {
        Err(no_server())
    }

    /// What is dead in the tables of this database.
    async fn cost(&self) -> Result<Cost> {
        Err(no_server())
    }

    /// How many bytes of the log each replication slot keeps, by its name.
    async fn kept_log(&self) -> Result<Vec<(String, u64)>> {
        Err(no_server())
    }

    /// Numbers for a scrape: no job is read for them.
    async fn vitals(&self) -> Result<Vitals>;

    /// Ends the transaction that began in a process then.
    async fn end(&self, pid: i32, began: i64, action: Action) -> Result<End> {
        let _ = (pid, began, action);
        Err(no_server())
    }

    /// The workload classes, by name.
    async fn classes(&self) -> Result<Vec<Class>> {
        Err(no_server())
    }

    /// Writes a class.
    async fn declare_class(&self, class: &Class) -> Result<Applied> {
        let _ = class;
        Err(no_server())
    }

    /// Forgets a class; whether it was there.
    async fn forget_class(&self, name: &Name) -> Result<bool> {
        let _ = name;
        Err(no_server())
    }
}

fn no_server() -> Error {
    Error::invalid(
        "guard and budget are for PostgreSQL only: a SQLite file has no sessions that could pin a horizon",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    struct File;

    #[async_trait]
    impl Watch for File {
        async fn vitals(&self) -> Result<Vitals> {
            Ok(Vitals::default())
        }
    }

    #[tokio::test]
    async fn an_engine_without_a_server_says_so() {
        let name = Name::new("analytics").unwrap();
        let class = Class::new(name.clone(), 1).unwrap();
        for why in [
            File.pins().await.unwrap_err(),
            File.cost().await.unwrap_err(),
            File.kept_log().await.unwrap_err(),
            File.end(1, 0, Action::Terminate).await.unwrap_err(),
            File.classes().await.unwrap_err(),
            File.declare_class(&class).await.unwrap_err(),
            File.forget_class(&name).await.unwrap_err(),
        ] {
            let why = why.to_string();
            assert!(why.contains("for PostgreSQL only"), "{why}");
        }
    }
}
