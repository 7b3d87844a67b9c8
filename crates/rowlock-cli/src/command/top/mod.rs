//! `rowlock top`: a screen that shows how a store is doing, and lets an operator step in.
//!
//! [`look`] reads, [`state`] is what the screen is about, [`panel`] turns what was read into rows,
//! [`draw`] puts them on the screen, [`keys`] says what a key does and [`act`] does it. In: keys and
//! looks, in whatever order they come. Out: a terminal as it was before, whatever happens.

mod act;
mod draw;
mod keys;
mod look;
mod panel;
mod rate;
mod screen;
mod state;
#[cfg(test)]
mod tests;
mod text;

use std::io::IsTerminal;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, Result};
use ratatui::crossterm::event::{Event, KeyEventKind};
use rowlock::clock::Elapsed;
use rowlock::run::Signals;
use rowlock::{Clock, JobId, Record};
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::keys::Intent;
use self::look::{Link, Looked, Plan};
use self::panel::{Panel, job_page};
use self::screen::{Keys, Screen};
use self::state::{Mode, State};
use super::doctor::{self, Finding};
use super::job_show::not_found;
use crate::cli;
use crate::exit;
use crate::open::Setup;

/// A checkup reads the whole store: the next one waits at least this long, and many times as long as the
/// last one took.
const CHECKUP: Duration = Duration::from_secs(30);
const CHECKUP_DUTY: u32 = 20;

pub async fn run(setup: &Setup, how: &cli::Top, json: bool) -> Result<u8> {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let why = match json {
        true => Some("top draws a screen and has no JSON"),
        false if dumb => Some("top draws on a terminal, and TERM names none that can be drawn on"),
        false => None,
    };
    let why = why
        .or((!std::io::stdout().is_terminal())
            .then_some("top draws on a terminal, and stdout is none"));
    if let Some(why) = why {
        let stats = setup.command("stats --json");
        let text = format!("{why}: {stats} is for programs");
        return Err(exit::with(exit::USAGE, text));
    }
    let colours = std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    let state = State::new(setup.store.shown(), how.every, colours);
    let ends = Ends::listen()?;
    let screen = Screen::take()?;
    let mut keys = Keys::listen()?;
    let mut top = Top::new(setup, state);
    let done = top.run(screen, &mut keys, ends).await;
    // The terminal is given back. Nothing else is waited for: a checkup of a large file can't be
    // interrupted, and the thread of the keys doesn't end when its terminal is gone. What was changed is
    // committed, or was never begun.
    let code = match done {
        Ok(()) => exit::OK,
        Err(why) => {
            crate::out::error(&format!("{why:#}"));
            exit::FAILED
        }
    };
    std::process::exit(i32::from(code));
}

/// The signals after which somebody else wants the terminal, or nobody has it any more.
struct Ends(Signals, Signal);

impl Ends {
    fn listen() -> Result<Self> {
        let hangup = signal(SignalKind::hangup()).context("can't wait for SIGHUP")?;
        Ok(Self(Signals::listen()?, hangup))
    }

    async fn next(&mut self) {
        tokio::select! {
            () = self.0.next() => {}
            _ = self.1.recv() => {}
        }
    }
}

/// Something that is under way, if it is.
type Task<'a, T> = Option<Pin<Box<dyn Future<Output = T> + 'a>>>;

/// Its answer, once; forever nothing when it isn't under way. Whoever stops waiting loses nothing.
async fn answer<T>(task: &mut Task<'_, T>) -> T {
    match task {
        Some(under_way) => {
            let answer = under_way.await;
            *task = None;
            answer
        }
        None => std::future::pending().await,
    }
}

struct Top<'a> {
    setup: &'a Setup,
    clock: Clock,
    state: State,
    link: Option<Link>,
    /// How many looks the panel had, and when the next one is due.
    turn: u64,
    due: Elapsed,
    /// When the look under way began.
    began: Elapsed,
    looking: Task<'a, Looked>,
    opening: Task<'a, Result<Option<Record>, String>>,
    acting: Task<'a, Result<String, String>>,
    examining: Task<'a, Result<Vec<Finding>, String>>,
    examined: Option<(Elapsed, Elapsed)>,
    opened: Option<JobId>,
}

impl<'a> Top<'a> {
    fn new(setup: &'a Setup, state: State) -> Self {
        Self {
            setup,
            clock: Clock::system(),
            state,
            link: None,
            turn: 0,
            due: Elapsed::ZERO,
            began: Elapsed::ZERO,
            looking: None,
            opening: None,
            acting: None,
            examining: None,
            examined: None,
            opened: None,
        }
    }

    async fn run(&mut self, mut screen: Screen, keys: &mut Keys, mut ends: Ends) -> Result<()> {
        loop {
            self.begin();
            screen.draw(&mut self.state)?;
            let wait = self.due.saturating_sub(self.clock.elapsed());
            let waits = self.looking.is_none() && !self.state.frozen;
            tokio::select! {
                () = ends.next() => return Ok(()),
                event = keys.next() => match event? {
                    Event::Key(key) if key.kind != KeyEventKind::Release => {
                        let intent = keys::press(&mut self.state, key);
                        if intent == Some(Intent::Quit) {
                            return Ok(());
                        }
                        self.follow(intent);
                    }
                    Event::Resize(columns, rows) => screen.renew(columns, rows)?,
                    _ => {}
                },
                looked = answer(&mut self.looking) => self.looked(looked),
                job = answer(&mut self.opening) => self.show(job),
                told = answer(&mut self.acting) => {
                    self.state.note = Some(told.unwrap_or_else(|why| why));
                    self.look_now();
                }
                found = answer(&mut self.examining) => self.examined(found),
                () = self.clock.sleep(wait), if waits => {}
            }
        }
    }

    /// Begins what is due.
    fn begin(&mut self) {
        let now = self.clock.elapsed();
        // What was never read isn't there to be frozen.
        let lacks = self.turn == 0 && self.state.seen.lacks(self.state.panel, self.state.view);
        if self.state.frozen && !lacks {
            return;
        }
        if self.looking.is_none() && now >= self.due {
            let plan = Plan::of(self.state.panel, self.state.view, self.turn);
            self.turn += 1;
            self.began = now;
            let (setup, link) = (self.setup, self.link.clone());
            self.looking = Some(Box::pin(look::look(setup, link, plan)));
        }
        let due = match self.examined {
            Some((since, took)) => now >= since + CHECKUP.max(took * CHECKUP_DUTY),
            None => true,
        };
        let shown = self.state.panel == Panel::Health;
        // A store that can't be opened can't be examined.
        if shown && due && self.examining.is_none() && self.link.is_some() {
            self.examined = Some((now, Elapsed::ZERO));
            let setup = self.setup;
            self.examining = Some(Box::pin(async move {
                let found = doctor::findings(setup, doctor::Depth::Quick).await;
                found.map_err(|why| format!("{why:#}"))
            }));
        }
    }

    fn looked(&mut self, looked: Looked) {
        self.link = looked.link;
        self.due = match self.turn {
            // What is shown now was chosen while the look was under way.
            0 => Elapsed::ZERO,
            // A store that is slow to answer isn't asked all the time.
            _ => rest(self.began, self.clock.elapsed(), self.state.every),
        };
        match looked.found {
            Ok(found) => {
                self.state.seen.take(found);
                self.state.trouble = None;
            }
            Err(why) => self.state.trouble = Some(why),
        }
    }

    fn look_now(&mut self) {
        self.turn = 0;
        self.due = Elapsed::ZERO;
    }

    fn follow(&mut self, intent: Option<Intent>) {
        let (link, intent) = match (self.link.clone(), intent) {
            (_, None | Some(Intent::Quit)) => return,
            (_, Some(Intent::Look)) => return self.look_now(),
            (Some(link), Some(intent)) => (link.rowlock, intent),
            (None, Some(_)) => {
                self.state.note = Some("the store can't be reached just now".to_owned());
                return;
            }
        };
        match intent {
            Intent::Open(id) => {
                self.opened = Some(id);
                self.opening = Some(Box::pin(async move {
                    let job = link.operate().job(id).await;
                    job.map_err(|why| why.to_string())
                }));
            }
            Intent::Do(action) if self.acting.is_none() => {
                self.acting = Some(Box::pin(async move {
                    action.run(link).await.map_err(|why| why.to_string())
                }));
            }
            _ => self.state.note = Some("the action before is still under way".to_owned()),
        }
    }

    fn show(&mut self, job: Result<Option<Record>, String>) {
        let now = self.link.as_ref().map_or(self.state.seen.now, Link::now);
        match job {
            Ok(Some(job)) => self.state.mode = Mode::Page(job_page(&job, now)),
            Ok(None) => self.state.note = self.opened.map(not_found),
            Err(why) => self.state.note = Some(why),
        }
    }

    fn examined(&mut self, found: Result<Vec<Finding>, String>) {
        let now = self.clock.elapsed();
        let took = self
            .examined
            .map_or(Elapsed::ZERO, |(began, _)| now - began);
        self.examined = Some((now, took));
        match found {
            Ok(found) => self.state.seen.health = Some(found),
            Err(why) => self.state.note = Some(why),
        }
    }
}

/// When to look again: after the pause that was asked for, and after at least as long a rest as the look took.
fn rest(began: Elapsed, ended: Elapsed, every: Elapsed) -> Elapsed {
    ended + every.max(ended.saturating_sub(began))
}
