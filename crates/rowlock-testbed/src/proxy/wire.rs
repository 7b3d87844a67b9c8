//! The messages of a PostgreSQL conversation, as far as a proxy must know them.

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;

/// Cuts a stream of bytes into whole messages.
#[derive(Debug, Default)]
pub(super) struct Messages {
    bytes: Vec<u8>,
}

impl Messages {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A message with a letter and a length.
    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        self.take(number(self.bytes.get(1..5)?)? + 1)
    }

    /// What comes first from a client: a length without a letter.
    pub(super) fn next_of_startup(&mut self) -> Option<Vec<u8>> {
        self.take(number(self.bytes.get(..4)?)?)
    }

    /// An answer of one letter, as a server gives to a client that asks for encryption.
    pub(super) fn next_letter(&mut self) -> Option<Vec<u8>> {
        self.take(1)
    }

    fn take(&mut self, length: u32) -> Option<Vec<u8>> {
        let length = usize::try_from(length).ok()?;
        (self.bytes.len() >= length).then(|| self.bytes.drain(..length).collect())
    }
}

/// What a message at the start of a conversation asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Opening {
    Encryption,
    Cancel,
    Session,
}

pub(super) fn opening(message: &[u8]) -> Opening {
    match message.get(4..8).and_then(number) {
        Some(SSL_REQUEST | GSS_REQUEST) => Opening::Encryption,
        Some(CANCEL_REQUEST) => Opening::Cancel,
        _ => Opening::Session,
    }
}

/// Whether the server is ready for the next query when it has answered this message of a client: a
/// query, a sync, a call.
pub(super) fn ends_a_group(message: &[u8]) -> bool {
    matches!(message.first(), Some(b'Q' | b'S' | b'F'))
}

/// Whether the server says that it is ready.
pub(super) fn is_ready(message: &[u8]) -> bool {
    message.first() == Some(&b'Z')
}

fn number(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.try_into().ok()?))
}
