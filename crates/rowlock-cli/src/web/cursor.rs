//! Where a page of jobs ends: opaque to callers, and in which direction it was going.

use rowlock::JobId;

/// A place in the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub newest: bool,
    pub at: JobId,
}

impl Cursor {
    /// `a17` goes on after job 17, `n17` before it.
    pub fn parse(text: &str) -> Option<Self> {
        let (newest, digits) = match text.split_at_checked(1)? {
            ("a", digits) => (false, digits),
            ("n", digits) => (true, digits),
            _ => return None,
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let at = JobId(digits.parse().ok()?);
        Some(Self { newest, at })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let way = if self.newest { "n" } else { "a" };
        write!(f, "{way}{}", self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written_and_nothing_else_is_one() {
        for (newest, id) in [(false, 1), (true, i64::MAX)] {
            let cursor = Cursor {
                newest,
                at: JobId(id),
            };
            assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        }
        for bad in [
            "",
            "a",
            "a-1",
            "a+1",
            "b1",
            "17",
            "a1 ",
            "a99999999999999999999",
            "ä1",
        ] {
            assert_eq!(Cursor::parse(bad), None, "{bad}");
        }
    }
}
