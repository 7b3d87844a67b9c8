//! What the page after a change says about it. The words stay here and the URL has only a number that
//! can't be guessed: a link can't make a page say anything.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// How many are kept.
const KEPT: usize = 64;

/// Something that was done, or wasn't.
#[derive(Debug, Clone)]
pub struct Note {
    pub well: bool,
    pub words: String,
}

impl Note {
    pub fn done(words: impl Into<String>) -> Self {
        let words = words.into();
        Self { well: true, words }
    }

    pub fn warning(words: impl Into<String>) -> Self {
        let words = words.into();
        Self { well: false, words }
    }
}

/// The latest ones.
#[derive(Debug, Default)]
pub struct Notes(Mutex<VecDeque<(String, Note)>>);

impl Notes {
    /// Keeps a note; the answer is what the URL says.
    pub fn keep(&self, note: Note) -> String {
        let mut bytes = [0; 8];
        // Without randomness there is no note: nothing depends on it.
        if getrandom::fill(&mut bytes).is_err() {
            return String::new();
        }
        let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((id.clone(), note));
        while kept.len() > KEPT {
            kept.pop_front();
        }
        id
    }

    pub fn find(&self, id: &str) -> Option<Note> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(own, _)| own == id);
        found.map(|(_, note)| note.clone())
    }
}
