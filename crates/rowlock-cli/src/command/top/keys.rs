//! What a key does. They are those of `less`, `top` and `vi`.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use rowlock::JobId;
use rowlock::switch::{Mode as Switching, Target};

use super::act::Action;
use super::panel::{Key, Panel};
use super::state::{Mode, Page, State, View};

/// What the loop has to do after a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Intent {
    Quit,
    /// Look at once: something else is shown now.
    Look,
    /// Read a job and show it.
    Open(JobId),
    Do(Action),
}

/// A longest filter: what is typed must fit a line.
const FILTER: usize = 60;

pub fn press(state: &mut State, key: KeyEvent) -> Option<Intent> {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if control && matches!(key.code, KeyCode::Char('c' | 'C')) {
        return Some(Intent::Quit);
    }
    #[cfg(feature = "test-hooks")]
    if key.code == KeyCode::F(12) {
        #[expect(
            clippy::panic,
            reason = "a test sees whether the terminal is given back"
        )]
        std::panic::panic_any("F12 is for a test");
    }
    match std::mem::replace(&mut state.mode, Mode::Browse) {
        Mode::Browse => browse(state, key.code),
        Mode::Filter => {
            filter(state, key.code);
            None
        }
        Mode::Ask(action) => match key.code {
            KeyCode::Char('y' | 'Y') => Some(Intent::Do(action)),
            KeyCode::Char('n' | 'N' | 'q') | KeyCode::Esc => {
                state.note = Some("nothing was changed".to_owned());
                None
            }
            // A key that was meant for something else is no answer.
            _ => {
                state.mode = Mode::Ask(action);
                None
            }
        },
        Mode::Page(page) => {
            read(state, page, key.code);
            None
        }
        Mode::Help => None,
    }
}

fn browse(state: &mut State, code: KeyCode) -> Option<Intent> {
    state.note = None;
    match code {
        KeyCode::Char('q') => return Some(Intent::Quit),
        KeyCode::Tab | KeyCode::Right => return go(state, state.panel.next(1)),
        KeyCode::BackTab | KeyCode::Left => {
            return go(state, state.panel.next(Panel::ALL.len() - 1));
        }
        KeyCode::Char(digit @ '1'..='6') => {
            return go(state, Panel::ALL[digit as usize - '1' as usize]);
        }
        KeyCode::Char('s') if state.panel == Panel::Jobs => {
            state.view = match state.view {
                View::Running => View::Failed,
                View::Failed => View::Running,
            };
            return Some(Intent::Look);
        }
        KeyCode::Enter => return open(state),
        KeyCode::Char('p') => ask(state, pause),
        KeyCode::Char('r') => ask(state, |_, key| of_job(key, Action::Retry)),
        KeyCode::Char('c') => ask(state, |_, key| of_job(key, Action::Cancel)),
        KeyCode::Char('/') => state.mode = Mode::Filter,
        KeyCode::Esc => state.filter.clear(),
        KeyCode::Char(' ') => {
            state.frozen = !state.frozen;
            return (!state.frozen).then_some(Intent::Look);
        }
        KeyCode::Char('+' | '=') => state.pace(true),
        KeyCode::Char('-' | '_') => state.pace(false),
        KeyCode::Char('?' | 'h') => state.mode = Mode::Help,
        other => {
            if let Some(by) = steps(other) {
                let rows = state.grid().rows;
                state.cursor().step(by, &rows);
            }
        }
    }
    None
}

/// How far a key moves.
fn steps(code: KeyCode) -> Option<isize> {
    Some(match code {
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::PageDown => 10,
        KeyCode::PageUp => -10,
        KeyCode::Home | KeyCode::Char('g') => isize::MIN,
        KeyCode::End | KeyCode::Char('G') => isize::MAX,
        _ => return None,
    })
}

fn go(state: &mut State, panel: Panel) -> Option<Intent> {
    state.panel = panel;
    Some(Intent::Look)
}

fn open(state: &mut State) -> Option<Intent> {
    let key = state.selected()?;
    if let Key::Job(id) = key {
        return Some(Intent::Open(id));
    }
    let page = state.panel.page(&state.seen, &key)?;
    state.mode = Mode::Page(page);
    None
}

/// Asks before anything is changed, or says why it can't be.
fn ask(state: &mut State, action: impl FnOnce(&State, Key) -> Result<Action, String>) {
    let Some(key) = state.selected() else {
        state.note = Some("nothing is selected".to_owned());
        return;
    };
    match action(state, key) {
        Ok(action) => state.mode = Mode::Ask(action),
        Err(why) => state.note = Some(why),
    }
}

fn pause(state: &State, key: Key) -> Result<Action, String> {
    let Key::Queue(queue) = key else {
        return Err("p is for queues: 1 shows them".to_owned());
    };
    let mut switches = state.seen.switches.iter();
    let on = switches.find(|on| on.target == Target::Queue && on.name == queue);
    let mut rows = state.seen.queues.iter().flatten();
    let paused = rows.any(|row| row.queue == queue && row.paused);
    match (on, paused) {
        (Some(on), _) if on.mode != Switching::Pause => Err(format!(
            "queue {queue} is set to {}: `rowlock switch clear queue:{queue}` ends that",
            on.mode
        )),
        (_, true) => Ok(Action::Resume(queue)),
        (_, false) => Ok(Action::Pause(queue)),
    }
}

fn of_job(key: Key, action: fn(JobId) -> Action) -> Result<Action, String> {
    match key {
        Key::Job(id) => Ok(action(id)),
        _ => Err("r and c are for jobs: 3 shows them".to_owned()),
    }
}

fn filter(state: &mut State, code: KeyCode) {
    match code {
        KeyCode::Enter => return,
        KeyCode::Esc => return state.filter.clear(),
        KeyCode::Backspace => {
            state.filter.pop();
        }
        KeyCode::Char(c) if !c.is_control() && state.filter.chars().count() < FILTER => {
            state.filter.push(c);
        }
        _ => {}
    }
    state.mode = Mode::Filter;
}

fn read(state: &mut State, mut page: Page, code: KeyCode) {
    match (steps(code), code) {
        (_, KeyCode::Esc | KeyCode::Char('q') | KeyCode::Enter) => return,
        // How far that may go is known when it is drawn.
        (Some(by), _) => page.top = page.top.saturating_add_signed(by),
        (None, KeyCode::Char(' ')) => page.top = page.top.saturating_add(10),
        (None, _) => {}
    }
    state.mode = Mode::Page(page);
}
