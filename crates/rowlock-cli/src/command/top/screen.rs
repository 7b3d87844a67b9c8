//! The terminal: taken at the start, and given back as it was however this ends.

use std::io::Stdout;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::layout::Rect;
use rowlock::run::task::Thread;
use tokio::sync::mpsc;

use super::draw;
use super::state::State;
use crate::exit;

/// How long the thread of the keys may take to notice that it is over.
const ATTENTIVE: Duration = Duration::from_millis(100);

static TAKEN: AtomicBool = AtomicBool::new(false);
static PANICKED: AtomicBool = AtomicBool::new(false);

/// The terminal, while it is ours. ratatui's own end is left out: it panics when the terminal is gone.
pub struct Screen(ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>);

impl Screen {
    pub fn take() -> Result<Self> {
        // A panic's message belongs on the screen that stays, whichever thread it came from.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICKED.store(true, Ordering::Relaxed);
            give_back();
            before(panic);
        }));
        TAKEN.store(true, Ordering::Relaxed);
        let taken = enable_raw_mode()
            .and_then(|()| execute!(std::io::stdout(), EnterAlternateScreen))
            .and_then(|()| Terminal::new(CrosstermBackend::new(std::io::stdout())));
        match taken {
            Ok(terminal) => Ok(Self(ManuallyDrop::new(terminal))),
            Err(why) => {
                give_back();
                Err(why).context("can't draw on this terminal")
            }
        }
    }

    pub fn draw(&mut self, state: &mut State) -> Result<()> {
        if PANICKED.load(Ordering::Relaxed) {
            // The terminal is given back already.
            return Err(exit::with(
                exit::FAILED,
                "a part of rowlock panicked, see above",
            ));
        }
        self.0
            .draw(|frame| draw::frame(frame, state))
            .context("can't draw on this terminal")?;
        Ok(())
    }

    /// Draws everything anew, whatever others have written in between.
    pub fn renew(&mut self, columns: u16, rows: u16) -> Result<()> {
        self.0
            .resize(Rect::new(0, 0, columns, rows))
            .context("can't draw on this terminal")
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Once: what follows on the screen is somebody else's.
fn give_back() {
    if TAKEN.swap(false, Ordering::Relaxed) {
        // If the terminal is gone there is nothing to give back.
        let _ = execute!(std::io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

/// What comes from the terminal.
pub struct Keys {
    over: Arc<AtomicBool>,
    events: mpsc::UnboundedReceiver<std::io::Result<Event>>,
    /// It ends with the process: without its terminal it would never notice that it is over.
    _thread: ManuallyDrop<Thread>,
}

impl Keys {
    pub fn listen() -> Result<Self> {
        let over = Arc::new(AtomicBool::new(false));
        let (send, events) = mpsc::unbounded_channel();
        let ends = Arc::clone(&over);
        let thread = Thread::start("keys", move || {
            while !ends.load(Ordering::Relaxed) {
                let told = match event::poll(ATTENTIVE) {
                    Ok(false) => continue,
                    Ok(true) => event::read(),
                    Err(why) => Err(why),
                };
                let failed = told.is_err();
                if send.send(told).is_err() || failed {
                    return;
                }
            }
        })?;
        Ok(Self {
            over,
            events,
            _thread: ManuallyDrop::new(thread),
        })
    }

    /// The next event; an error when the terminal is gone.
    pub async fn next(&mut self) -> Result<Event> {
        match self.events.recv().await {
            Some(told) => told.context("can't read from this terminal"),
            None => Err(exit::with(
                exit::FAILED,
                "this terminal sends no keys any more",
            )),
        }
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}
