//! The end of what a program has written, however much that was.

/// The last bytes of a stream.
#[derive(Debug)]
pub(super) struct Output {
    bytes: Vec<u8>,
    limit: usize,
    cut: bool,
}

impl Output {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
            cut: false,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Moved only once it has doubled: a byte is moved once at the most.
        if self.bytes.len() > self.limit.saturating_mul(2) {
            self.shrink();
        }
    }

    fn shrink(&mut self) {
        let over = self.bytes.len().saturating_sub(self.limit);
        self.cut |= over > 0;
        self.bytes.drain(..over);
    }

    /// What was kept, as text. It begins with `...` when it isn't all.
    pub(super) fn text(&mut self) -> String {
        self.shrink();
        let text = String::from_utf8_lossy(&self.bytes);
        match self.cut {
            true => format!("...{}", text.trim()),
            false => text.trim().to_owned(),
        }
    }
}

/// The end of a text, in at most `limit` bytes.
pub(super) fn tail(text: &str, limit: usize) -> String {
    const CUT: &str = "...";
    if text.len() <= limit {
        return text.to_owned();
    }
    let mut start = text.len() - limit.saturating_sub(CUT.len());
    while !text.is_char_boundary(start) {
        start += 1;
    }
    format!("{CUT}{}", &text[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let mut output = Output::new(4);
        for n in 0..10_000_u32 {
            output.push(n.to_string().as_bytes());
            assert!(output.bytes.len() <= 8);
        }
        assert_eq!(output.text(), "...9999");
    }

    #[test]
    fn what_fits_is_kept_as_it_is() {
        let mut output = Output::new(100);
        output.push(b"hello\n");
        assert_eq!(output.text(), "hello");
    }

    #[test]
    fn a_tail_never_splits_a_character() {
        assert_eq!(tail("äöü", 5), "...ü");
        assert_eq!(tail("äöü", 6), "äöü");
        assert_eq!(tail("äöü", 4), "...");
    }
}
