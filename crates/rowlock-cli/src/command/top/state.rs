//! What the screen is about: which panel, which row, what is asked, and what was seen last.

use std::time::Duration;

use super::act::Action;
use super::look::Seen;
use super::panel::{Grid, Key, Panel, Row};
use super::text::clean;

/// Which jobs the panel of jobs shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Running,
    Failed,
}

/// What keys mean.
#[derive(Debug)]
pub enum Mode {
    Browse,
    /// A text is typed that rows must have.
    Filter,
    /// Waits for y or n.
    Ask(Action),
    /// One thing and everything about it.
    Page(Page),
    Help,
}

/// Lines about one thing. All of them are harmless.
#[derive(Debug, Clone)]
pub struct Page {
    pub title: String,
    pub lines: Vec<String>,
    /// The first line on the screen.
    pub top: usize,
}

impl Page {
    pub fn new(title: String) -> Self {
        Self {
            title,
            lines: Vec::new(),
            top: 0,
        }
    }

    /// A line `what  value`; line breaks and control characters of the value are shown as such.
    pub fn add(&mut self, what: &str, value: &str) {
        self.lines.push(format!("{what:<9}  {}", clean(value)));
    }
}

/// A place in a table.
#[derive(Debug, Clone, Default)]
pub struct Cursor {
    /// What is selected.
    key: Option<Key>,
    /// Where that was.
    pub at: usize,
    /// The first row on the screen.
    pub top: usize,
}

impl Cursor {
    /// Follows what is selected to where it is now; whoever is gone leaves its place to the next.
    pub fn follow(&mut self, rows: &[Row]) {
        let found = rows
            .iter()
            .position(|row| Some(&row.key) == self.key.as_ref());
        self.at = found.unwrap_or(self.at).min(rows.len().saturating_sub(1));
        self.key = rows.get(self.at).map(|row| row.key.clone());
    }

    /// Selects the row that is so many further down.
    pub fn step(&mut self, by: isize, rows: &[Row]) {
        self.follow(rows);
        self.at = self.at.saturating_add_signed(by);
        self.key = None;
        self.follow(rows);
    }
}

/// How often it is looked at the store.
pub const PACES: [Duration; 9] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(3),
    Duration::from_secs(5),
    Duration::from_secs(10),
    Duration::from_secs(20),
    Duration::from_secs(30),
    Duration::from_secs(60),
];

#[derive(Debug)]
pub struct State {
    /// What people call the store; it has no password.
    pub store: String,
    pub panel: Panel,
    pub view: View,
    cursors: [Cursor; Panel::ALL.len()],
    pub filter: String,
    pub mode: Mode,
    pub frozen: bool,
    pub every: Duration,
    pub seen: Seen,
    /// Why the last look failed.
    pub trouble: Option<String>,
    /// What became of the last action.
    pub note: Option<String>,
    pub colours: bool,
}

impl State {
    pub fn new(store: String, every: Duration, colours: bool) -> Self {
        Self {
            store,
            panel: Panel::Queues,
            view: View::Running,
            cursors: Default::default(),
            filter: String::new(),
            mode: Mode::Browse,
            frozen: false,
            every,
            seen: Seen::default(),
            trouble: None,
            note: None,
            colours,
        }
    }

    /// The rows of the panel that is shown.
    pub fn grid(&self) -> Grid {
        let grid = self.panel.grid(&self.seen, self.view);
        grid.filtered(&self.filter)
    }

    pub fn cursor(&mut self) -> &mut Cursor {
        &mut self.cursors[self.panel as usize]
    }

    /// The row that is selected.
    pub fn selected(&mut self) -> Option<Key> {
        let rows = self.grid().rows;
        let cursor = self.cursor();
        cursor.follow(&rows);
        cursor.key.clone()
    }

    /// Looks more often, or less.
    pub fn pace(&mut self, faster: bool) {
        let every = self.every;
        let next = match faster {
            true => PACES.iter().rev().find(|pace| **pace < every),
            false => PACES.iter().find(|pace| **pace > every),
        };
        self.every = next.copied().unwrap_or(every);
    }
}
