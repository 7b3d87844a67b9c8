//! What axe-core finds on the pages: whoever can't see, hear or point well uses them too.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::browser::Browser;
use super::everybody::{PAGES, SIGHTS, furnished};
use super::{Home, READER, Served};

/// Pages that nobody wants to see.
const WRONG: [&str; 2] = ["/jobs/999", "/nowhere"];

/// The rules' source; without it nothing was checked, so there is no way around it.
fn rules() -> String {
    let beside = || {
        // Below target/debug/deps.
        let program = std::env::current_exe().unwrap();
        let target = program.ancestors().nth(3).unwrap();
        target.join("axe-core/axe.min.js")
    };
    let path = std::env::var_os("ROWLOCK_AXE").map_or_else(beside, PathBuf::from);
    std::fs::read_to_string(&path).unwrap_or_else(|why| {
        let path = path.display();
        panic!("{path}: {why}: type scripts/axe, or set ROWLOCK_AXE")
    })
}

/// What axe-core has against the page that is shown, in its words.
fn found(browser: &mut Browser, rules: &str) -> Vec<Value> {
    browser.act(rules);
    let run = "axe.run(document, { resultTypes: ['violations'] }).then(({ violations, passes }) => \
               ({ passes: passes.length, found: violations.map(({ id, impact, nodes }) => \
               [impact, id, nodes.map(({ html }) => html.slice(0, 200))]) }))";
    let told = browser.tell(run);
    // A check that has looked at nothing is none.
    assert!(told["passes"].as_u64() > Some(10), "{told}");
    told["found"].as_array().unwrap().clone()
}

/// The page that is shown is one that everybody can use.
pub fn nothing_is_found(browser: &mut Browser) {
    let found = found(browser, &rules());
    assert!(found.is_empty(), "{found:#?}");
}

pub fn axe_finds_nothing_on_any_page(home: &dyn Home) {
    let rules = rules();
    let served = furnished(home);
    let mut browser = Browser::open();
    let mut all = Vec::new();
    for (width, scheme) in SIGHTS {
        browser.sight(width, scheme);
        for path in PAGES.into_iter().chain(WRONG) {
            browser.go(&format!("http://{}{path}", served.address));
            for each in found(&mut browser, &rules) {
                all.push(format!("{path} {width} {scheme}: {each}"));
            }
        }
        browser.press("?");
        browser.wait("document.querySelector('#help').open");
        for each in found(&mut browser, &rules) {
            all.push(format!("the keys, {width} {scheme}: {each}"));
        }
    }
    // Whoever may only read has other things to go to.
    let tokens = Served::with_tokens(home, &[]);
    let header = json!({ "Authorization": format!("Bearer {READER}") });
    browser.call("Network.enable", json!({}));
    browser.call("Network.setExtraHTTPHeaders", json!({ "headers": header }));
    for path in PAGES.into_iter().chain(WRONG) {
        browser.go(&format!("http://{}{path}", tokens.address));
        for each in found(&mut browser, &rules) {
            all.push(format!("{path} for a reader: {each}"));
        }
    }
    assert!(all.is_empty(), "{all:#?}");
    // What should be found is found.
    browser.act("document.querySelector('main').innerHTML = '<button></button><img src=x>'");
    let ids = json!(found(&mut browser, &rules)).to_string();
    assert!(
        ids.contains("button-name") && ids.contains("image-alt"),
        "{ids}"
    );
}
