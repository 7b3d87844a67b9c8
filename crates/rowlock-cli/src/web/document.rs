//! The OpenAPI document, written from the table of routes.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::api::ROUTES;
use super::problem::Problem;
use super::route::{Given, Route};
use super::shape::{Field, object};
use super::{ROOT, Web};

/// What answers look like.
const ANSWERS: &str = include_str!("answers.json");

/// What may go wrong with any request, and with a change.
const READ: &[(&str, &str)] = &[
    ("400", "The request breaks a rule"),
    ("401", "A token is needed"),
    (
        "403",
        "Called by a foreign name, from another site's page, or without the role",
    ),
    ("404", "There is no such thing"),
    ("409", "Not in this state, or not in this store"),
    (
        "503",
        "The store is busy or away: try again after Retry-After",
    ),
];
const WRITE: &[(&str, &str)] = &[
    ("413", "The body is too large"),
    ("415", "The body is not application/json"),
    ("422", "The database refused it"),
    (
        "429",
        "Too many changes at once: try again after Retry-After",
    ),
    ("507", "The database has no space left"),
];

pub async fn show(_: Arc<Web>, _: Given) -> Result<Value, Problem> {
    document()
}

fn document() -> Result<Value, Problem> {
    let schemas: Value =
        serde_json::from_str(ANSWERS).map_err(|why| Problem::from(anyhow::Error::new(why)))?;
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = paths
            .entry(format!("{ROOT}{}", route.path))
            .or_insert(json!({}));
        path[route.method.to_ascii_lowercase()] = operation(route);
    }
    Ok(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "rowlock",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Jobs, and what runs them. A change is asked for with Content-Type: application/json.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{}, { "bearer": [] }, { "basic": [] }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer" },
                "basic": { "type": "http", "scheme": "basic" },
            },
        },
    }))
}

fn operation(route: &Route) -> Value {
    let parameters = |fields: &[Field], place: &str| -> Vec<Value> {
        let one = |field: &Field| {
            json!({
                "name": field.name, "in": place, "required": field.needed,
                "description": field.about, "schema": field.is.schema(),
            })
        };
        fields.iter().map(one).collect()
    };
    let mut all = parameters(route.path_fields, "path");
    all.extend(parameters(route.query, "query"));
    if route.raw {
        all.push(json!({
            "name": "traceparent", "in": "header", "required": false,
            "description": "The W3C trace context that the jobs run in",
            "schema": { "type": "string" },
        }));
    }
    let mut operation = json!({
        "summary": route.about,
        "operationId": operation_id(route),
        "tags": [route.path.split('/').nth(1).unwrap_or_default()],
        "description": format!("Needs the role {}.", route.role().as_str()),
        "parameters": all,
        "responses": responses(route),
    });
    if let Some(fields) = route.body {
        operation["requestBody"] = json!({
            "required": fields.iter().any(|field| field.needed),
            "content": { "application/json": { "schema": object(fields) } },
        });
    }
    operation
}

/// `post_queues_pause`, as programs that are made from the document call it.
fn operation_id(route: &Route) -> String {
    let words = route.path.split('/').filter(|part| !part.is_empty());
    let words: Vec<String> = words
        .map(|part| match part.strip_prefix('{') {
            Some(name) => format!("by_{}", name.trim_end_matches('}')),
            None => part.replace('.', "_"),
        })
        .collect();
    format!("{}_{}", route.method.to_ascii_lowercase(), words.join("_"))
}

fn responses(route: &Route) -> Value {
    let content = |schema: &str| {
        let schema = format!("#/components/schemas/{schema}");
        json!({ "application/json": { "schema": { "$ref": schema } } })
    };
    let mut all = Map::new();
    all.insert(
        route.status.to_string(),
        json!({ "description": route.about, "content": content(route.gives) }),
    );
    let write = if route.is_write() { WRITE } else { &[] };
    for (status, about) in READ.iter().chain(write) {
        let answer = json!({ "description": about, "content": content("Problem") });
        all.insert((*status).to_owned(), answer);
    }
    Value::Object(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_document_has_every_route_and_no_other() {
        let document = document().unwrap();
        let mut told = BTreeSet::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                told.insert(format!("{} {path}", method.to_ascii_uppercase()));
            }
        }
        let table: BTreeSet<String> = ROUTES
            .iter()
            .map(|route| format!("{} {ROOT}{}", route.method, route.path))
            .collect();
        assert_eq!(told, table);
        assert_eq!(table.len(), ROUTES.len());
    }

    #[test]
    fn every_answer_has_a_shape_and_every_shape_an_answer() {
        let shapes: Value = serde_json::from_str(ANSWERS).unwrap();
        let text = document().unwrap().to_string();
        for name in shapes.as_object().unwrap().keys() {
            let used = format!("#/components/schemas/{name}\"");
            assert!(text.contains(&used), "{name} is not used");
        }
        for route in ROUTES {
            assert!(
                shapes[route.gives].is_object(),
                "{} has no shape",
                route.gives
            );
        }
    }

    #[test]
    fn the_variable_parts_of_a_path_are_declared() {
        for route in ROUTES {
            let parts = route
                .path
                .split('/')
                .filter_map(|part| part.strip_prefix('{'));
            let parts: Vec<&str> = parts.map(|part| part.trim_end_matches('}')).collect();
            let fields: Vec<&str> = route.path_fields.iter().map(|field| field.name).collect();
            assert_eq!(parts, fields, "{}", route.path);
        }
    }

    #[test]
    fn names_of_operations_are_unique() {
        let names: BTreeSet<String> = ROUTES.iter().map(operation_id).collect();
        assert_eq!(names.len(), ROUTES.len());
    }
}
