//! Lines over the last minutes, as SVG without a style or a script.

use maud::{Markup, html};

/// What a chart shows.
pub struct Chart<'a> {
    pub title: &'a str,
    /// Which way to draw it.
    pub class: &'a str,
    /// From 0 (the window's start) to 1 (now), and the value there.
    pub points: Vec<(f64, f64)>,
    /// The same of a second line, which is drawn finer, and what it is called.
    pub above: Option<(&'a str, Vec<(f64, f64)>)>,
    /// How to write a value.
    pub write: fn(f64) -> String,
    pub about: &'a str,
}

const WIDE: f64 = 600.0;
const HIGH: f64 = 96.0;
/// Where the highest value is drawn, and where nothing is.
const TOP: f64 = 4.0;
const GROUND: f64 = HIGH - 1.0;

/// Points that are further apart have nothing between them: a line would tell what nobody has seen.
const GAP: f64 = 0.06;

impl Chart<'_> {
    pub fn draw(&self) -> Markup {
        let above = self.above.iter().flat_map(|(_, points)| points);
        let all = self.points.iter().chain(above);
        let most = all.map(|(_, y)| *y).fold(0.0, f64::max);
        // A line of nothing lies on the ground.
        let scale = if most > 0.0 { most } else { 1.0 };
        // Where the line ends: another number beside it would deny it.
        let last = self.points.last();
        let now = last.map_or("–".to_owned(), |(_, last)| (self.write)(*last));
        let highest = (self.write)(most);
        let told = format!(
            "{}: {now} now, {highest} at most in the last 10 minutes",
            self.title
        );
        html! {
            figure class={ "panel chart " (self.class) } {
                figcaption {
                    span.label title=(self.about) { (self.title) }
                    @if let Some((name, points)) = &self.above {
                        @if let Some((_, last)) = points.last() { span.hint { (name) " " ((self.write)(*last)) } }
                    }
                    @if last.is_some() { span.hint { "highest " (highest) } }
                    strong.value { (now) }
                }
                svg viewBox={ "0 0 " (WIDE) " " (HIGH) } preserveAspectRatio="none" role="img" aria-label=(told) {
                    line.grid x1="0" x2=(WIDE) y1=(TOP) y2=(TOP) vector-effect="non-scaling-stroke" {}
                    line.grid x1="0" x2=(WIDE) y1=((TOP + GROUND) / 2.0) y2=((TOP + GROUND) / 2.0) vector-effect="non-scaling-stroke" {}
                    line.ground x1="0" x2=(WIDE) y1=(GROUND) y2=(GROUND) vector-effect="non-scaling-stroke" {}
                    @for part in parts(&self.points) {
                        path.area d=(area(part, scale)) {}
                        path.line d={ "M" (line(part, scale)) } vector-effect="non-scaling-stroke" {}
                    }
                    @for part in self.above.iter().flat_map(|(_, points)| parts(points)) {
                        path.line.fine d={ "M" (line(part, scale)) } vector-effect="non-scaling-stroke" {}
                    }
                }
                div.axis aria-hidden="true" {
                    span { "10 m ago" }
                    span { "now" }
                }
            }
        }
    }
}

/// Runs of points that are near each other.
fn parts(points: &[(f64, f64)]) -> impl Iterator<Item = &[(f64, f64)]> {
    points.chunk_by(|(before, _), (after, _)| after - before <= GAP)
}

fn across(x: f64) -> f64 {
    x.clamp(0.0, 1.0) * WIDE
}

fn line(points: &[(f64, f64)], scale: f64) -> String {
    let place = |(x, y): &(f64, f64)| {
        let y = GROUND - y / scale * (GROUND - TOP);
        format!("{:.1} {y:.1}", across(*x))
    };
    let mut all: Vec<String> = points.iter().map(place).collect();
    // A point that is alone is drawn as a dot.
    if let [only] = &all[..] {
        all.push(only.clone());
    }
    all.join(" L")
}

fn area(points: &[(f64, f64)], scale: f64) -> String {
    let end = |point: Option<&(f64, f64)>| across(point.map_or(0.0, |(x, _)| *x));
    let (first, last) = (end(points.first()), end(points.last()));
    let line = line(points, scale);
    format!("M{first:.1} {HIGH} L{line} L{last:.1} {HIGH} Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_where_nothing_was_seen() {
        let points = [(0.1, 1.0), (0.12, 2.0), (0.5, 1.0)];
        let parts: Vec<_> = parts(&points).map(<[_]>::len).collect();
        assert_eq!(parts, [2, 1]);
        assert_eq!(line(&points[2..], 1.0), "300.0 4.0 L300.0 4.0");
        assert_eq!(
            area(&points[..2], 2.0),
            "M60.0 96 L60.0 49.5 L72.0 4.0 L72.0 96 Z"
        );
    }
}
