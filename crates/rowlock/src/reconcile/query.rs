//! What can be said about a query without a database: it must stand inside another one.

/// Refuses what can't be asked by key, with the reason.
pub(crate) fn check(text: &str) -> Result<(), String> {
    let words = outer_words(text)?;
    let first = words.first().map(String::as_str).unwrap_or_default();
    if !["SELECT", "WITH", "VALUES", "TABLE"].contains(&first) {
        return Err("its query must be one SELECT".to_owned());
    }
    for word in ["LIMIT", "OFFSET", "FETCH"] {
        if words.iter().any(|found| found == word) {
            return Err(format!(
                "its query has {word}, so it can't be asked about a single row: take it out, ticks \
                 are bounded by batch"
            ));
        }
    }
    if words.windows(2).any(|pair| {
        pair[0] == "FOR" && ["UPDATE", "SHARE", "NO", "KEY"].contains(&pair[1].as_str())
    }) {
        return Err("its query locks rows (FOR ...): take that out".to_owned());
    }
    Ok(())
}

/// The words outside of parentheses, strings and comments, in capitals.
fn outer_words(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut depth = 0_usize;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let part_of_word = c.is_alphanumeric() || c == '_';
        if !part_of_word && !word.is_empty() {
            if depth == 0 {
                words.push(word.to_uppercase());
            }
            word.clear();
        }
        match c {
            '\'' | '"' | '`' => {
                // A doubled quote is read as two strings side by side, which ends in the same place.
                let closed = rest.any(|next| next == c);
                if !closed {
                    return Err(format!("its query has a {c} that is never closed"));
                }
            }
            '-' if rest.peek() == Some(&'-') => {
                let _ = rest.find(|next| *next == '\n');
            }
            '/' if rest.peek() == Some(&'*') => {
                rest.next();
                let mut last = ' ';
                if !rest.any(|next| std::mem::replace(&mut last, next) == '*' && next == '/') {
                    return Err("its query has a comment that is never closed".to_owned());
                }
            }
            ';' => return Err("its query has a semicolon: take it out".to_owned()),
            '\0' => return Err("its query has a NUL character".to_owned()),
            '(' => depth += 1,
            ')' => {
                depth = depth
                    .checked_sub(1)
                    .ok_or("its query closes a parenthesis that it never opened")?;
            }
            _ if part_of_word => word.push(c),
            _ => {}
        }
    }
    if depth > 0 {
        return Err("its query opens a parenthesis that it never closes".to_owned());
    }
    if !word.is_empty() {
        words.push(word.to_uppercase());
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_that_could_stand_inside_another_is_taken() {
        for good in [
            "SELECT id FROM databases WHERE state = 'pending'",
            "select id from a where b in (select b from c limit 3)",
            "SELECT \"limit\", 'OFFSET 1; --' AS x FROM t -- LIMIT 3",
            "/* ; LIMIT */ WITH w AS (SELECT 1 AS id) SELECT * FROM w",
            "SELECT 'it''s' AS id",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn what_can_not_be_asked_by_key_is_refused_with_the_reason() {
        for (bad, word) in [
            ("SELECT id FROM t LIMIT 10", "LIMIT"),
            ("SELECT id FROM t ORDER BY 1 OFFSET 3", "OFFSET"),
            ("SELECT id FROM t FETCH FIRST ROW ONLY", "FETCH"),
            ("SELECT id FROM t FOR UPDATE", "locks rows"),
            ("DELETE FROM t RETURNING id", "one SELECT"),
            ("SELECT 1; DROP TABLE t", "semicolon"),
            ("SELECT id FROM t) AS q; --", "never opened"),
            ("SELECT (id FROM t", "never closes"),
            ("SELECT 'x FROM t", "never closed"),
            ("SELECT 1 /* x", "never closed"),
            ("", "one SELECT"),
        ] {
            let why = check(bad).unwrap_err();
            assert!(why.contains(word), "{bad}: {why}");
        }
    }
}
