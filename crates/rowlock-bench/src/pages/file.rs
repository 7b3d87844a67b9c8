//! Over a file.

use std::path::{Path, PathBuf};

use anyhow::Result;
use rowlock::Clock;
use rusqlite::params;

use super::{KIND, PAGES, PAYLOAD, ROUTED, Size, furnish};
use crate::dashboard::{Client, Served, compare};
use crate::sqlite::{connect, create, fill};
use crate::{Measurement, Place, Progress};

pub(super) async fn measure(
    size: &Size,
    place: &Place,
    say: Progress<'_>,
) -> Result<Vec<Measurement>> {
    let mut files = Vec::new();
    for (name, rows) in [("large", size.file), ("small", size.small)] {
        let path = place.file(&format!("{name}.db"));
        say(&format!(
            "writing {} finished and {} pending jobs into a file",
            rows.0, rows.1
        ));
        store(&path, rows).await?;
        files.push(path);
    }
    let looks = PAGES.map(|(_, step, path)| (step, path));
    let served: Result<Vec<Served>> = files
        .iter()
        .map(|file: &PathBuf| Served::of_file(file))
        .collect();
    let served = served?;
    let mut clients = [0, 1].map(|at: usize| Client::new(&served[at].address, ""));
    compare(&looks, &mut clients, size.turns(size.file), say).await
}

async fn store(path: &Path, (finished, pending): (usize, usize)) -> Result<()> {
    let rowlock = create(path)?;
    let connection = connect(path)?;
    fill(path, finished)?;
    let now = Clock::system().now().as_millisecond();
    for (kind, queue, jobs) in [
        (KIND, "default", pending - pending.div_ceil(10)),
        (ROUTED, "mail", pending.div_ceil(10)),
    ] {
        let jobs = i64::try_from(jobs)?;
        let text = include_str!("sql/sqlite_pending.sql");
        connection.execute(text, params![jobs, now, kind, queue, PAYLOAD])?;
    }
    connection.execute(include_str!("sql/sqlite_thing.sql"), [])?;
    furnish(&rowlock, "thing").await
}
