//! Colours, and what stands for them where there are none (no-color.org).

use ratatui::style::{Color, Modifier, Style};

use crate::command::top::panel::Tone;

#[derive(Debug, Clone, Copy)]
pub struct Palette {
    pub colours: bool,
}

impl Palette {
    pub fn tone(self, tone: Tone) -> Style {
        let plain = Style::new();
        match (tone, self.colours) {
            (Tone::Plain, _) => plain,
            (Tone::Quiet, true) => plain.fg(Color::Green),
            (Tone::Quiet, false) => plain,
            (Tone::Warn, true) => plain.fg(Color::Yellow),
            (Tone::Bad, true) => plain.fg(Color::Red),
            (Tone::Warn | Tone::Bad, false) => plain.add_modifier(Modifier::BOLD),
        }
    }

    pub fn heading(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// What is selected, and which panel is shown.
    pub fn selected(self, under: Style) -> Style {
        under.add_modifier(Modifier::REVERSED)
    }

    /// What is said beside.
    pub fn aside(self) -> Style {
        match self.colours {
            true => Style::new().fg(Color::Cyan),
            false => Style::new(),
        }
    }
}
