//! A free port for a server that comes back to it after a restart.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that systems give to outgoing connections: one of those could take the port while
/// its server is down.
const FIRST: u16 = 12_000;
const COUNT: u16 = 20_000;

/// A port of 127.0.0.1 that refuses every connection while this lives: it is taken, and nothing listens on it.
#[derive(Debug)]
pub struct ClosedPort {
    _socket: OwnedFd,
    address: SocketAddrV4,
}

impl ClosedPort {
    /// Takes one.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    #[expect(clippy::expect_used, reason = "a test without a port has failed")]
    pub fn take() -> Self {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
        let any = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        let taken = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        bind(&taken, &any).expect("a free port");
        let address = getsockname(&taken).expect("an address");
        Self {
            _socket: taken,
            address: address.try_into().expect("an address of IPv4"),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn address(&self) -> SocketAddrV4 {
        self.address
    }
}

/// A port of 127.0.0.1 on which nobody listens at this moment.
///
/// # Panics
/// When there is none.
#[expect(clippy::expect_used, reason = "a test without a port has failed")]
#[must_use]
pub fn free() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Test processes that run at the same time look in different places first.
    let place = std::process::id().wrapping_mul(7919) % u32::from(COUNT);
    let place = u16::try_from(place).unwrap_or(0);
    (0..COUNT)
        .map(|_| FIRST + (place + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}
