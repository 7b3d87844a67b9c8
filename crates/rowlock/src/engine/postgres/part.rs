//! The statements that make one part of the schema anew: an index or a function that somebody dropped or changed.

use super::connect::Schema;
use super::migrate::{functions, tables};
use super::statements::{SEGMENTS, sql};

/// What makes `index NAME`, `function NAME` or `trigger NAME` of the schema; nothing for what holds rows, and for names that we
/// don't know.
#[must_use]
pub fn part_sql(schema: &Schema, part: &str) -> Option<String> {
    match part.split_once(' ')? {
        ("index", name) => index(schema, name),
        ("function", name) => function(schema, name),
        ("trigger", name) => trigger(schema, name),
        _ => None,
    }
}

fn function(schema: &Schema, name: &str) -> Option<String> {
    let begins = format!("FUNCTION {}.{name}(", schema.as_str());
    let all = functions().flat_map(|each| each.definitions(schema));
    let of_it = all.filter(|text| text.contains(&begins));
    let mut texts: Vec<String> = of_it.collect();
    if texts.is_empty() {
        return None;
    }
    // One that was gone may be called by everybody at first.
    texts.push(sql!("revoke").text(schema));
    texts.push(sql!("migration_grants").text(schema));
    Some(joined(&texts))
}

fn trigger(schema: &Schema, name: &str) -> Option<String> {
    let begins = format!("TRIGGER {name} ");
    let of_it = functions()
        .flat_map(|each| each.definitions(schema))
        .find(|text| text.contains(&begins))?;
    let table = of_it.split_once(" ON ")?.1.split_whitespace().next()?;
    // Made anew it is as it was, but one that was switched off stays so.
    let on = sql!("trigger_on").text(schema);
    let on = on.replace("{table}", table).replace("{trigger}", name);
    Some(joined(&[of_it, on]))
}

fn index(schema: &Schema, name: &str) -> Option<String> {
    let mut texts = Vec::new();
    for text in tables().map(|each| each.text(schema)) {
        // Those of the segments are made in a loop.
        let looped = (0..SEGMENTS).map(|s| {
            text.replace("%1$s", &s.to_string())
                .replace("%s", &s.to_string())
        });
        for text in looped {
            let within = |begins: String| {
                let from = text.find(&begins)?;
                let rest = &text[from..];
                let end = rest.find([';', '\'']).unwrap_or(rest.len());
                Some(rest[..end].trim_end().to_owned())
            };
            texts.extend(within(format!("CREATE INDEX {name} ON ")));
            texts.extend(within(format!("CREATE INDEX IF NOT EXISTS {name} ON ")));
            texts.extend(within(format!(
                "ALTER INDEX {}.{name} SET ",
                schema.as_str()
            )));
        }
    }
    texts.dedup();
    if texts.is_empty() {
        return None;
    }
    texts.insert(
        0,
        format!("DROP INDEX IF EXISTS {}.{name}", schema.as_str()),
    );
    Some(joined(&texts))
}

fn joined(texts: &[String]) -> String {
    let ended = |text: &String| format!("{};\n", text.trim_end().trim_end_matches(';'));
    texts.iter().map(ended).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_made_as_its_migrations_left_it() {
        let schema = Schema::new("shop").unwrap();
        let of = |part| part_sql(&schema, part);
        assert_eq!(
            of("index job_2_ready").unwrap(),
            "DROP INDEX IF EXISTS shop.job_2_ready;\n\
             CREATE INDEX job_2_ready ON shop.job_2 (queue, kind, priority, ready_at, id);\n\
             ALTER INDEX shop.job_2_ready SET (deduplicate_items = off);\n"
        );
        let held = of("index aside_held").unwrap();
        assert!(
            held.contains("CREATE INDEX aside_held ON shop.aside (queue, kind) WHERE held;"),
            "{held}"
        );
        let holder = of("index key_holder").unwrap();
        assert!(holder.contains("key_holder ON shop.key (id);"), "{holder}");
        assert_eq!(of("index other"), None);
        assert_eq!(of("table job_0"), None);
        let text = of("function is_on").unwrap();
        assert!(
            text.starts_with("CREATE OR REPLACE FUNCTION shop.is_on("),
            "{text}"
        );
        assert_eq!(text.matches("CREATE OR REPLACE").count(), 1, "{text}");
    }
}
