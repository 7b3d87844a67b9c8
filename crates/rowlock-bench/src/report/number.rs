//! Figures for people.

/// Three digits that count, thousands apart.
#[must_use]
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    match value.abs() {
        large if large >= 100.0 => apart(&format!("{value:.0}")),
        middle if middle >= 10.0 => trim(format!("{value:.1}")),
        _ => trim(format!("{value:.2}")),
    }
}

fn trim(text: String) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn apart(digits: &str) -> String {
    let mut text = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn figures_are_as_long_as_they_mean_something() {
        for (value, text) in [
            (1_234_567.8, "1,234,568"),
            (431.2, "431"),
            (12.34, "12.3"),
            (0.5, "0.5"),
            (20.0, "20"),
            (0.0, "0"),
            (f64::NAN, "-"),
        ] {
            assert_eq!(short(value), text);
        }
    }
}
