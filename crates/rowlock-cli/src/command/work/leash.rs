//! A worker that ends with whoever started it.

use anyhow::{Context, Result};

use crate::exit;

/// Ends the process when whoever holds the other end of stdin is gone. Like a crash, which is safe.
pub fn leash(parent: i32) -> Result<()> {
    die_with(parent)?;
    let wait = || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(i32::from(exit::FAILED));
    };
    // Nobody waits for it: it ends with the process.
    std::thread::Builder::new()
        .name("leash".to_owned())
        .spawn(wait)
        .context("can't watch stdin")?;
    Ok(())
}

/// Lets the system kill us with the thread that started us, which also ends a process that stands still
/// and can't see that its stdin is closed.
#[cfg(target_os = "linux")]
fn die_with(parent: i32) -> Result<()> {
    use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::KILL)).context("can't follow our parent")?;
    // It may have been gone before that, and then nothing will tell us.
    match getppid().map(Pid::as_raw_pid) == Some(parent) {
        true => Ok(()),
        false => Err(exit::with(exit::FAILED, "whoever started this is gone")),
    }
}

/// Elsewhere the closed stdin must do.
#[cfg(not(target_os = "linux"))]
fn die_with(_parent: i32) -> Result<()> {
    Ok(())
}
