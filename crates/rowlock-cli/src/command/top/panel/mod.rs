//! The six panels: each one turns what was read into rows, and a row into a page.

mod health;
mod jobs;
mod pairs;
mod queues;
mod routes;
mod workers;

pub use jobs::page as job_page;

use rowlock::{JobId, Name};

use super::look::Seen;
use super::state::{Page, View};

/// Which one is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Panel {
    Queues,
    Workers,
    Jobs,
    Pairs,
    Routes,
    Health,
}

impl Panel {
    /// In the order of their keys.
    pub const ALL: [Self; 6] = [
        Self::Queues,
        Self::Workers,
        Self::Jobs,
        Self::Pairs,
        Self::Routes,
        Self::Health,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::Queues => "queues",
            Self::Workers => "workers",
            Self::Jobs => "jobs",
            Self::Pairs => "pairs and crons",
            Self::Routes => "routes",
            Self::Health => "health",
        }
    }

    /// The one that is so many further, round and round.
    pub fn next(self, by: usize) -> Self {
        Self::ALL[(self as usize + by) % Self::ALL.len()]
    }

    /// Its table.
    pub fn grid(self, seen: &Seen, view: View) -> Grid {
        match self {
            Self::Queues => queues::grid(seen),
            Self::Workers => workers::grid(seen),
            Self::Jobs => jobs::grid(seen, view),
            Self::Pairs => pairs::grid(seen),
            Self::Routes => routes::grid(seen),
            Self::Health => health::grid(seen),
        }
    }

    /// What there is to say about a row, beside a job, which is read anew.
    pub fn page(self, seen: &Seen, key: &Key) -> Option<Page> {
        match self {
            Self::Queues => queues::page(seen, key),
            Self::Workers => workers::page(seen, key),
            Self::Jobs => None,
            Self::Pairs => pairs::page(seen, key),
            Self::Routes => routes::page(seen, key),
            Self::Health => health::page(seen, key),
        }
    }
}

/// What a row stands for: it stays selected when others come and go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    Queue(Name),
    Job(JobId),
    Named(String),
}

/// How a row is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    /// Nothing that needs attention.
    Quiet,
    Warn,
    Bad,
}

#[derive(Debug, Clone)]
pub struct Row {
    pub key: Key,
    /// Harmless already.
    pub cells: Vec<String>,
    pub tone: Tone,
}

/// A column. Where there is no room, wide ones are cut, then those with the highest rank go.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    pub right: bool,
    pub rank: u8,
}

/// A column of text.
const fn text(name: &'static str, rank: u8) -> Column {
    let right = false;
    Column { name, right, rank }
}

/// A column of numbers.
const fn number(name: &'static str, rank: u8) -> Column {
    let right = true;
    Column { name, right, rank }
}

#[derive(Debug, Clone)]
pub struct Grid {
    pub columns: &'static [Column],
    pub rows: Vec<Row>,
    /// What is said when there are no rows.
    pub empty: &'static str,
}

impl Grid {
    /// Only the rows that have the text somewhere, in whatever case.
    pub fn filtered(mut self, filter: &str) -> Self {
        if filter.is_empty() {
            return self;
        }
        let filter = filter.to_lowercase();
        let has = |row: &Row| {
            let mut cells = row.cells.iter();
            cells.any(|cell| cell.to_lowercase().contains(&filter))
        };
        self.rows.retain(has);
        self.empty = "nothing here has that text; Esc shows everything again";
        self
    }
}

/// What is said until the first answer is there.
const WAITING: &str = "reading ...";
