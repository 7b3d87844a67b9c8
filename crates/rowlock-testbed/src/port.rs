//! A free port for a server that comes back to it after a restart.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that systems give to outgoing connections: one of those could take the port while
/// its server is down.
const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

/// A port of 127.0.0.1 on which nobody listens at this moment.
///
/// # Panics
/// When there is none.
#[expect(clippy::expect_used, reason = "a test without a port has failed")]
pub(crate) fn free() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test processes that run at the same time look in different places first.
    let place = std::process::id().wrapping_mul(7919) % u32::from(COUNT);
    let place = u16::try_from(place).unwrap_or(0);
    (0..COUNT)
        .map(|_| FIRST + (place + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}
