//! The dashboard as people see and use it: in a browser, live, by mouse and by keyboard.

use super::browser::Browser;
use super::everybody::PAGES;
use super::{Gate, Home, Served, furnish, ok};

fn dev(home: &dyn Home) -> Served {
    Served::of(&mut home.command(&["dev", "--listen", "127.0.0.1:0"]))
}

impl Served {
    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

pub fn a_job_is_added_by_keyboard_and_seen_to_run(home: &dyn Home) {
    furnish(home);
    let gate = Gate::of(home);
    let served = dev(home);
    let mut browser = Browser::open();
    browser.go(&served.url("/"));
    browser.press("?");
    browser.wait("document.querySelector('#help').open");
    browser.press("Escape");
    browser.wait("!document.querySelector('#help').open");
    browser.press("g");
    browser.follow(|browser| browser.press("n"));
    browser.type_in("gate");
    browser.press("Tab");
    browser.type_in(r#"{"to":"ada"}"#);
    browser.tab_to("Add the job");
    browser.follow(|browser| browser.press("Enter"));
    assert!(browser.text().contains("is added"), "{}", browser.text());
    // From here on the page isn't touched.
    browser.act("window.untouched = true");
    browser.wait("document.querySelector('h1 .badge').textContent === 'processing'");
    gate.open();
    browser.wait("document.querySelector('h1 .badge').textContent === 'completed'");
    assert_eq!(browser.look("window.untouched"), true);
    assert_eq!(browser.look("refused"), 0);
    served.end();
}

/// Without this the driver would ask a page that is just being left, and fail now and then.
pub fn a_page_that_is_left_before_it_has_answered_is_followed(home: &dyn Home) {
    ok(home, &["migrate", "up"]);
    let served = Served::open(home);
    let mut browser = Browser::open();
    browser.go(&served.url("/jobs"));
    browser.act("window.visits = (window.visits ?? 0) + 1");
    browser.follow(|browser| browser.act("new Promise(() => { location.href = '/queues' })"));
    assert_eq!(browser.look("location.pathname"), "/queues");
    assert_eq!(browser.look("document.readyState"), "complete");
    assert_eq!(browser.look("typeof visits"), "undefined", "a new document");
}

pub fn failed_jobs_are_filtered_and_retried_by_keyboard_only(home: &dyn Home) {
    furnish(home);
    for _ in 0..3 {
        ok(home, &["enqueue", "fail", r#"{"why":"provider is down"}"#]);
    }
    ok(home, &["work", "--once"]);
    let served = Served::open(home);
    let mut browser = Browser::open();
    browser.go(&served.url("/"));
    browser.press("g");
    browser.follow(|browser| browser.press("j"));
    browser.press("/");
    browser.wait("document.activeElement.name === 'id'");
    browser.press("Tab");
    browser.type_in("fail");
    browser.follow(|browser| browser.press("Enter"));
    assert_eq!(
        browser.look("new URLSearchParams(location.search).get('kind')"),
        "fail"
    );
    assert_eq!(
        browser.look("document.querySelectorAll('tr[data-row]').length"),
        3
    );
    browser.press("j");
    browser.press("x");
    browser.press("j");
    browser.press("x");
    browser.tab_to("Retry …");
    browser.follow(|browser| browser.press("Enter"));
    assert!(
        browser.text().contains("Retry 2 selected jobs?"),
        "{}",
        browser.text()
    );
    browser.follow(|browser| browser.press("Enter"));
    assert!(browser.text().contains("2 retried"), "{}", browser.text());
    assert_eq!(
        served.get("/jobs?kind=fail&state=pending").ok()["items"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    // All that a filter finds.
    browser.follow(|browser| browser.click(".tabs a", "pending"));
    browser.act("document.querySelector('[name=which][value=filter]').click()");
    browser.follow(|browser| browser.click("button", "Cancel …"));
    assert!(
        browser
            .text()
            .contains("Cancel 2 pending jobs of kind fail?"),
        "{}",
        browser.text()
    );
    browser.follow(|browser| browser.press("Enter"));
    assert!(browser.text().contains("2 cancelled"), "{}", browser.text());
    assert_eq!(browser.look("refused"), 0);
}

pub fn a_queue_is_paused_a_switch_set_and_a_running_job_cancelled(home: &dyn Home) {
    furnish(home);
    let served = dev(home);
    let mut browser = Browser::open();
    browser.go(&served.url("/queues"));
    browser.click("summary", "Pause");
    browser
        .act("document.querySelector('[action$=\"/default/pause\"] [name=reason]').value = 'rest'");
    browser.follow(|browser| browser.click("button", "Pause default"));
    assert!(browser.text().contains("rest"), "{}", browser.text());
    browser.go(&served.url("/"));
    assert!(browser.text().starts_with("Degraded") || browser.text().starts_with("Flowing"));
    browser.go(&served.url("/queues"));
    browser.follow(|browser| browser.click("[action$='/default/resume'] button", "Resume"));
    browser.go(&served.url("/switches"));
    browser.act("document.querySelector('[name=name]').value = 'sleep'");
    browser.act("document.querySelector('[name=reason]').value = 'wrong template'");
    browser.follow(|browser| browser.click("button", "Set the switch"));
    assert!(
        browser.text().contains("wrong template"),
        "{}",
        browser.text()
    );
    browser.follow(|browser| browser.click("[action$='/kind/sleep/clear'] button", "Clear"));
    assert!(
        browser.text().contains("kind sleep goes on"),
        "{}",
        browser.text()
    );
    let added = served
        .post("/jobs", r#"{"kind":"sleep","payload":{"for":"10m"}}"#)
        .ok();
    browser.go(&served.url(&format!("/jobs/{}", added["id"])));
    browser.wait("document.querySelector('h1 .badge').textContent === 'processing'");
    browser.follow(|browser| browser.click("button", "Yes, cancel it"));
    browser.wait("document.querySelector('h1 .badge').textContent === 'cancelled'");
    browser.go(&served.url("/pairs/make"));
    browser.follow(|browser| browser.click("button", "Dry run"));
    assert!(
        browser.text().contains("Dry run, nothing was changed"),
        "{}",
        browser.text()
    );
    browser.follow(|browser| browser.click("button", "Run now"));
    assert!(browser.text().contains("found"), "{}", browser.text());
    assert_eq!(browser.look("refused"), 0);
    served.end();
}

pub fn markup_runs_on_no_page(home: &dyn Home) {
    furnish(home);
    let markup = "<img src=x onerror='window.hit=1'><script>window.hit=1</script>";
    let payload = serde_json::json!({ markup: markup }).to_string();
    ok(home, &["enqueue", "fail", &payload, "--unique", markup]);
    ok(home, &["work", "--once"]);
    ok(home, &["queue", "pause", "default", "--reason", markup]);
    let served = Served::open(home);
    let mut browser = Browser::open();
    let spelled = "%3Cimg%20src%3Dx%20onerror%3D%27window.hit%3D1%27%3E";
    let fields = [
        "key", "kind", "queue", "tag", "state", "since", "cursor", "note", "id",
    ];
    let asked = fields.map(|field| format!("/jobs?{field}={spelled}"));
    let places = ["/", "/jobs/", "/pairs/"].map(|place| format!("{place}{spelled}"));
    let confirm = ["action=retry&which=filter&key", "id", "which=filter&action"];
    let confirm = confirm.map(|asked| format!("/jobs/bulk?{asked}={spelled}"));
    let pages = PAGES.map(str::to_owned).into_iter();
    for path in pages.chain(asked).chain(places).chain(confirm) {
        let path = path.as_str();
        browser.go(&served.url(path));
        assert_eq!(
            browser.look("document.querySelectorAll('img').length"),
            0,
            "{path}"
        );
        assert_eq!(browser.look("typeof window.hit"), "undefined", "{path}");
        // Nothing was even tried: the policy had nothing to refuse.
        assert_eq!(browser.look("refused"), 0, "{path}");
        assert_eq!(
            browser.look("document.documentElement.scrollWidth <= innerWidth"),
            true,
            "{path}"
        );
    }
}

pub fn a_page_goes_on_when_its_server_comes_back(home: &dyn Home) {
    furnish(home);
    // A port that the system gives to no outgoing connection while the server is away.
    let address = format!("127.0.0.1:{}", rowlock_testbed::free_port());
    let serve = || Served::of(&mut home.command(&["dashboard", "--bind", &address]));
    let served = serve();
    let mut browser = Browser::open();
    browser.go(&served.url("/jobs"));
    browser.wait("document.querySelector('#pulse').textContent === 'live'");
    served.end();
    browser.wait("document.querySelector('#pulse').classList.contains('lost')");
    let again = serve();
    ok(home, &["enqueue", "echo", "--tag", "late"]);
    browser.wait("document.querySelector('#pulse').textContent === 'live'");
    browser.wait("document.querySelector('tr[data-row] a').textContent === '5'");
    again.end();
}

pub fn enter_pressed_once_too_often_deletes_nothing(home: &dyn Home) {
    furnish(home);
    let served = Served::open(home);
    let mut browser = Browser::open();
    browser.go(&served.url("/jobs?kind=echo"));
    browser.act("document.querySelector('[name=which][value=filter]').click()");
    // News from the store leave the choice as it is.
    ok(home, &["enqueue", "other"]);
    browser.tab_to("Delete …");
    browser.follow(|browser| browser.press("Enter"));
    browser.wait("document.activeElement.textContent === 'Leave them'");
    browser.follow(|browser| browser.press("Enter"));
    let after = browser.look("document.querySelectorAll('tr[data-row]').length");
    assert_eq!(after, 3);
}

pub fn only_whoever_rejects_is_asked_to_lose_jobs(home: &dyn Home) {
    furnish(home);
    let served = Served::open(home);
    let mut browser = Browser::open();
    browser.go(&served.url("/switches"));
    let asked = "document.querySelector('[name=lose_jobs]').checkVisibility()";
    assert_eq!(browser.look(asked), false);
    browser.act("document.querySelector('[value=reject]').click()");
    assert_eq!(browser.look(asked), true);
    browser.act("document.querySelector('[value=pause]').click()");
    assert_eq!(browser.look(asked), false);
}
