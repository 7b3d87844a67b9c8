//! Lines over the last minutes, as SVG without a style or a script.

use maud::{Markup, html};

/// What a chart shows.
pub struct Chart<'a> {
    pub title: &'a str,
    /// The value now, as text.
    pub now: String,
    /// Which way to draw it.
    pub class: &'a str,
    /// From 0 (the window's start) to 1 (now), and the value there.
    pub points: Vec<(f64, f64)>,
    /// How to write a value.
    pub write: fn(f64) -> String,
    pub about: &'a str,
}

const WIDE: f64 = 600.0;
const HIGH: f64 = 96.0;

impl Chart<'_> {
    pub fn draw(&self) -> Markup {
        let most = self.points.iter().map(|(_, y)| *y).fold(0.0, f64::max);
        // A line of nothing lies on the ground.
        let scale = if most > 0.0 { most * 1.08 } else { 1.0 };
        let place = |(x, y): &(f64, f64)| {
            let (x, y) = (
                x.clamp(0.0, 1.0) * WIDE,
                HIGH - 1.0 - y / scale * (HIGH - 4.0),
            );
            format!("{x:.1} {y:.1}")
        };
        let line: Vec<String> = self.points.iter().map(place).collect();
        let line = line.join(" L");
        let first = self
            .points
            .first()
            .map_or(0.0, |(x, _)| x.clamp(0.0, 1.0) * WIDE);
        let told = format!(
            "{}: {} now, {} at most in the last 10 minutes",
            self.title,
            self.now,
            (self.write)(most)
        );
        html! {
            figure class={ "panel chart " (self.class) } {
                figcaption {
                    span.label title=(self.about) { (self.title) }
                    strong.value { (self.now) }
                }
                svg viewBox={ "0 0 " (WIDE) " " (HIGH) } preserveAspectRatio="none" role="img" aria-label=(told) {
                    line.grid x1="0" x2=(WIDE) y1="4" y2="4" vector-effect="non-scaling-stroke" {}
                    line.grid x1="0" x2=(WIDE) y1=(HIGH / 2.0) y2=(HIGH / 2.0) vector-effect="non-scaling-stroke" {}
                    line.ground x1="0" x2=(WIDE) y1=(HIGH - 1.0) y2=(HIGH - 1.0) vector-effect="non-scaling-stroke" {}
                    @if self.points.len() > 1 {
                        path.area d={ "M" (format!("{first:.1}")) " " (HIGH) " L" (line) " L" (WIDE) " " (HIGH) " Z" } {}
                        path.line d={ "M" (line) } vector-effect="non-scaling-stroke" {}
                    }
                }
                div.axis aria-hidden="true" {
                    span { "10 m ago" }
                    span { "highest " (( self.write)(most)) }
                    span { "now" }
                }
            }
        }
    }
}
