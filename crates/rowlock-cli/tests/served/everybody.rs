//! The dashboard for everybody: on a phone, in the dark, without a script, for whoever listens to it.

use serde_json::{Value, json};

use super::browser::Browser;
use super::{Home, Served, furnish, ok};

pub const PAGES: [&str; 13] = [
    "/",
    "/jobs",
    "/jobs?state=failed",
    "/jobs/5",
    "/jobs/new",
    "/jobs/bulk?which=filter&action=delete&kind=fail",
    "/queues",
    "/workers",
    "/pairs",
    "/pairs/make",
    "/drains",
    "/switches",
    "/health",
];

/// How wide a window is, and what the system prefers.
pub const SIGHTS: [(u32, &str); 4] = [
    (1280, "light"),
    (1280, "dark"),
    (390, "light"),
    (390, "dark"),
];

/// Every text whose contrast with what is behind it is too low.
const FAINT: &str = r"(() => {
  const parse = (text) => text.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (at) => {
    for (; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const shown = [...document.body.querySelectorAll('*')].filter((each) =>
    each.checkVisibility() && [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()));
  return shown.map((each) => {
    const [a, b] = [light(parse(getComputedStyle(each).color)), light(behind(each))];
    return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), each.outerHTML.slice(0, 80)];
  }).filter(([ratio]) => ratio < 4.5).map(String);
})()";

pub fn furnished(home: &dyn Home) -> Served {
    furnish(home);
    ok(
        home,
        &[
            "enqueue",
            "fail",
            r#"{"why":["down",null,{"x":1}]}"#,
            "--tag",
            "one",
        ],
    );
    ok(home, &["work", "--once"]);
    ok(home, &["queue", "pause", "default", "--reason", "rest"]);
    Served::open(home)
}

/// What can be used, and has no name to call it by.
fn nameless(browser: &mut Browser) -> Vec<Value> {
    let tree = browser.call("Accessibility.getFullAXTree", json!({}));
    let used = [
        "link",
        "button",
        "textbox",
        "combobox",
        "checkbox",
        "radio",
        "DisclosureTriangle",
    ];
    let nodes = tree["nodes"].as_array().unwrap().iter().cloned();
    let nodes: Vec<Value> = nodes.filter(|node| node["ignored"] != true).collect();
    assert!(nodes.len() > 20, "{nodes:?}");
    let nameless = |node: &Value| {
        let role = node["role"]["value"].as_str().unwrap_or_default();
        used.contains(&role)
            && node["name"]["value"]
                .as_str()
                .unwrap_or_default()
                .is_empty()
    };
    nodes.into_iter().filter(nameless).collect()
}

pub fn every_page_can_be_read_and_used_by_everybody(home: &dyn Home) {
    let served = furnished(home);
    let mut browser = Browser::open();
    for (width, scheme) in SIGHTS {
        browser.sight(width, scheme);
        for path in PAGES {
            browser.go(&format!("http://{}{path}", served.address));
            assert_eq!(browser.look(FAINT), json!([]), "{path} {width} {scheme}");
            let wide = browser.look("document.documentElement.scrollWidth - innerWidth");
            assert!(wide.as_i64() <= Some(0), "{path} {width}: {wide}");
            assert_eq!(nameless(&mut browser), Vec::<Value>::new(), "{path}");
            let heads = browser.look("document.querySelectorAll('h1').length");
            assert_eq!(heads, 1, "{path}");
            let ids = "(() => { const ids = [...document.querySelectorAll('[id]')].map((each) => each.id); \
                       return new Set(ids).size === ids.length })()";
            assert_eq!(browser.look(ids), true, "{path}");
            assert_eq!(browser.look("document.documentElement.lang"), "en");
        }
    }
    // A check that would see nothing is none.
    browser.act("document.querySelector('h1').style.color = 'dimgray'");
    browser.act("document.querySelector('.brand').replaceChildren()");
    assert_ne!(browser.look(FAINT), json!([]));
    assert_ne!(nameless(&mut browser), Vec::<Value>::new());
}

pub fn nothing_moves_once_a_page_is_drawn(home: &dyn Home) {
    let served = furnished(home);
    let mut browser = Browser::open();
    for (width, scheme) in [SIGHTS[0], SIGHTS[2]] {
        browser.sight(width, scheme);
        for path in PAGES {
            browser.go(&format!("http://{}{path}", served.address));
            if browser.look("!!document.querySelector('[data-live]')") == true {
                browser.wait("document.querySelector('#pulse').textContent === 'live'");
            }
            // What was drawn meanwhile is told with the next picture.
            browser.tell("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))");
            assert_eq!(browser.look("moved"), json!([]), "{path} {width}");
        }
    }
    // What should be seen is seen.
    browser.go(&format!("http://{}/jobs/new", served.address));
    browser.act("document.querySelector('main').style.paddingTop = '200px'");
    browser.wait("moved.length > 0");
}

pub fn a_phone_shows_what_can_be_done_and_on_which_store(home: &dyn Home) {
    let served = furnished(home);
    ok(
        home,
        &[
            "switch",
            "set",
            "kind:made",
            "hold",
            "--reason",
            "a template that is wrong",
        ],
    );
    let mut browser = Browser::open();
    browser.sight(SIGHTS[2].0, SIGHTS[2].1);
    // The table is wider than the window; its buttons are within.
    let hidden = "[...document.querySelectorAll('td.acts :is(button, summary)')].filter((each) => each.checkVisibility() \
                  && each.getBoundingClientRect().right > innerWidth).length";
    let some = "document.querySelectorAll('td.acts :is(button, summary)').length > 0";
    for path in ["/queues", "/switches", "/pairs"] {
        browser.go(&format!("http://{}{path}", served.address));
        assert_eq!(browser.look(some), true, "{path}");
        assert_eq!(browser.look(hidden), 0, "{path}");
        let store = "document.querySelector('.store').checkVisibility()";
        assert_eq!(browser.look(store), true, "{path}");
    }
    browser.go(&format!("http://{}/jobs?state=failed", served.address));
    let error =
        "document.querySelector('td.error span').getBoundingClientRect().right < innerWidth";
    assert_eq!(browser.look(error), true);
}

pub fn pages_work_without_a_script(home: &dyn Home) {
    let served = furnished(home);
    let mut browser = Browser::open();
    browser.call(
        "Emulation.setScriptExecutionDisabled",
        json!({ "value": true }),
    );
    browser.go(&format!("http://{}/jobs?kind=fail", served.address));
    assert_eq!(browser.look("document.querySelector('#keys').hidden"), true);
    browser.tab_to("5");
    browser.follow(|browser| browser.press("Enter"));
    browser.tab_to("Retry");
    browser.follow(|browser| browser.press("Enter"));
    assert!(
        browser.text().contains("Job 5 waits again"),
        "{}",
        browser.text()
    );
    browser.tab_to("Delete");
    browser.press("Enter");
    browser.tab_to("Yes, delete it");
    browser.follow(|browser| browser.press("Enter"));
    assert!(
        browser.text().contains("Job 5 is deleted"),
        "{}",
        browser.text()
    );
    assert_eq!(served.get("/jobs/5").status, 404);
}
