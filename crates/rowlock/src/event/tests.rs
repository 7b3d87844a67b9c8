use super::*;

#[test]
fn names_say_what_they_count() {
    for each in TABLE {
        assert!(each.name.starts_with("rowlock_"), "{}", each.name);
        let total = each.name.ends_with("_total");
        assert_eq!(total, each.of == Type::Counter, "{}", each.name);
        let seconds = each.name.ends_with("_seconds");
        assert!(seconds || each.of != Type::Seconds, "{}", each.name);
    }
}

#[test]
fn the_page_lists_every_metric_as_it_is() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/metrics.md");
    let page = std::fs::read_to_string(page).unwrap();
    let listed: Vec<&str> = page.lines().filter(|at| at.starts_with("| `")).collect();
    let table: Vec<String> = TABLE
        .iter()
        .map(|each| {
            let (name, of, says) = (each.name, each.of.as_str(), each.says);
            let labels: Vec<_> = each.labels.iter().map(|at| format!("`{at}`")).collect();
            format!("| `{name}` | {of} | {} | {says} |", labels.join(", "))
        })
        .collect();
    assert_eq!(listed, table, "{}", table.join("\n"));
}
