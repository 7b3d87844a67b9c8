//! Enqueues as fast as the store takes it and prints each job's id once it is committed.
//!
//! `cargo run --example produce -- sqlite:rowlock.db` ends when the store refuses, or never.
//! scripts/power-cut cuts the power under it and asks which of these ids are still there.
#![allow(clippy::print_stdout)]

use rowlock::{NewJob, Rowlock};

#[tokio::main(flavor = "current_thread")]
async fn main() -> rowlock::error::Result<()> {
    let url = std::env::args()
        .nth(1)
        .unwrap_or("sqlite:rowlock.db".into());
    let rowlock = Rowlock::open(&url)?;
    // Several at once, so that commits are shared as they would be in an application.
    let (one, two) = (produce(&rowlock), produce(&rowlock));
    let (three, four) = (produce(&rowlock), produce(&rowlock));
    tokio::try_join!(one, two, three, four)?;
    Ok(())
}

async fn produce(rowlock: &Rowlock) -> rowlock::error::Result<()> {
    let job = NewJob::new("echo")?;
    loop {
        let answer = rowlock.enqueue(&job).await?;
        if let Some(id) = answer.id {
            println!("{id}");
        }
    }
}
