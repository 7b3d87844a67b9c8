//! Waiting for something that must happen.

use std::time::Duration;

/// How long a test waits for something that must happen. Generous: it only ever fails a test.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// Between two looks, so that what is awaited has the processor: a test that looks without a rest takes a core from it.
const REST: Duration = Duration::from_millis(2);

/// Looks again and again until `look` has found something.
///
/// # Panics
/// When the deadline passes first; says what was awaited.
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    #[expect(clippy::disallowed_methods, reason = "a deadline of real time")]
    let since = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < DEADLINE, "not in time: {what}");
        std::thread::park_timeout(REST);
    }
}
