//! A real browser, driven through a pair of pipes.
//!
//! A page that is left is an event, not a moment: [`Browser::go`] and [`Browser::follow`] wait until Chromium has said
//! that another document is there and has loaded. Nothing is asked on the way, and nothing is done twice.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rowlock_testbed::{TempDir, until};
use serde_json::{Value, json};

/// Generous: it only ever fails a test.
const DEADLINE: Duration = Duration::from_secs(120);

/// What a missing browser looks like from here.
const MISSING: &str = "chromium: type apt-get install -y chromium, or set ROWLOCK_CHROMIUM";

/// The browser takes its orders from 3 and answers on 4. Without `allow-pre-commit-input` it drops keys that come
/// before a page's first picture, which takes its time on a busy machine.
const LINE: &str = "exec \"$0\" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-quic \
    --no-first-run --disable-background-networking --disable-component-update --disable-sync --allow-pre-commit-input \
    --remote-debugging-pipe --user-data-dir=\"$1\" about:blank 3<&0 4>&1 2>/dev/null";

/// One window of a headless Chromium.
pub struct Browser {
    process: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
    session: Option<String>,
    asked: u64,
    /// The frame that fills the window; pages may have others.
    frame: Value,
    /// The document that was last loaded in it, by the name Chromium gives to its loading.
    loaded: Value,
    _profile: TempDir,
}

impl Browser {
    /// Starts one; what a page's policy has refused is counted in `window.refused`, and what has moved after it was
    /// drawn, and before anything in it was new, is listed in `window.moved`.
    pub fn open() -> Self {
        let profile = rowlock_testbed::folder();
        let program = std::env::var("ROWLOCK_CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
        let mut process = Command::new("sh")
            .args(["-c", LINE, &program])
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).split(0);
        let (heard, from) = channel();
        let listen = move || {
            while let Some(Ok(line)) = lines.next() {
                let said = serde_json::from_slice(&line).expect(MISSING);
                if heard.send(said).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("browser".to_owned());
        thread.spawn(listen).expect("a thread");
        let mut browser = Self {
            to: process.stdin.take(),
            from,
            process,
            session: None,
            asked: 0,
            frame: Value::Null,
            loaded: Value::Null,
            _profile: profile,
        };
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        browser.call("Page.enable", json!({}));
        let tree = browser.call("Page.getFrameTree", json!({}));
        browser.frame = tree["frameTree"]["frame"]["id"].clone();
        browser.call("Page.setLifecycleEventsEnabled", json!({ "enabled": true }));
        let source = json!({ "source": include_str!("watch.js") });
        browser.call("Page.addScriptToEvaluateOnNewDocument", source);
        browser
    }

    /// Gives an order and waits for its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let answer = self.ask(method, params);
        answer.unwrap_or_else(|| panic!("{method}: the page was left, and not by follow()"))
    }

    /// The same; nothing when the page was left before it could answer.
    fn ask(&mut self, method: &str, params: Value) -> Option<Value> {
        self.asked += 1;
        let mut order = json!({ "id": self.asked, "method": method, "params": params });
        if let Some(session) = &self.session {
            order["sessionId"] = session.as_str().into();
        }
        let to = self.to.as_mut().unwrap();
        let sent = write!(to, "{order}\0").and_then(|()| to.flush());
        sent.expect(MISSING);
        loop {
            let mut said = self.hear(method);
            if said["id"] == self.asked {
                let error = said["error"]["message"].as_str();
                if error.is_some_and(|error| error.contains("Inspected target navigated")) {
                    return None;
                }
                assert!(error.is_none(), "{method}: {said}");
                return Some(said["result"].take());
            }
        }
    }

    /// Waits for the next thing that the browser says, and remembers which document has loaded.
    fn hear(&mut self, awaited: &str) -> Value {
        let said = match self.from.recv_timeout(DEADLINE) {
            Ok(said) => said,
            Err(RecvTimeoutError::Timeout) => panic!("not in time: {awaited}"),
            Err(RecvTimeoutError::Disconnected) => panic!("{MISSING}"),
        };
        let event = &said["params"];
        if said["method"] == "Page.lifecycleEvent"
            && event["name"] == "load"
            && event["frameId"] == self.frame
        {
            self.loaded = event["loaderId"].clone();
        }
        said
    }

    /// What an expression or a promise comes to in the page; nothing when the page was left meanwhile.
    fn evaluate(&mut self, expression: &str, promise: bool) -> Option<Value> {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": promise });
        self.ask("Runtime.evaluate", params)
    }

    /// What an expression says in the page.
    pub fn look(&mut self, expression: &str) -> Value {
        value(expression, self.evaluate(expression, false))
    }

    /// What a promise says in the page.
    pub fn tell(&mut self, expression: &str) -> Value {
        value(expression, self.evaluate(expression, true))
    }

    /// Does something in the page, once, and waits for its end. A page that it leads to may come before that.
    pub fn act(&mut self, expression: &str) {
        if let Some(said) = self.evaluate(expression, true) {
            value(expression, Some(said));
        }
    }

    /// Sees with a window so wide, and in the light or in the dark.
    pub fn sight(&mut self, width: u32, scheme: &str) {
        self.sight_of((width, 844), scheme);
    }

    /// The same with its height.
    pub fn sight_of(&mut self, (width, height): (u32, u32), scheme: &str) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.call("Emulation.setDeviceMetricsOverride", size);
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", media);
    }

    /// Waits until an expression is true. One that fails, or whose page is left, isn't true yet.
    pub fn wait(&mut self, expression: &str) {
        until(expression, || {
            let said = self.evaluate(expression, false)?;
            (said["result"]["value"] == true).then_some(())
        });
    }

    /// Goes to a page.
    pub fn go(&mut self, url: &str) {
        let begun = self.call("Page.navigate", json!({ "url": url }));
        assert!(begun["errorText"].is_null(), "{url}: {begun}");
        self.loaded(url, |loaded| *loaded == begun["loaderId"]);
    }

    /// Does something that leads to another page, and waits for it.
    pub fn follow(&mut self, act: impl FnOnce(&mut Self)) {
        let before = self.loaded.clone();
        act(self);
        self.loaded("another page", |loaded| *loaded != before);
    }

    /// Waits until the document that is wanted has loaded, and what wants the keys has them: that comes a moment
    /// later.
    fn loaded(&mut self, what: &str, is_wanted: impl Fn(&Value) -> bool) {
        while !is_wanted(&self.loaded) {
            self.hear(what);
        }
        self.wait("(document.querySelector('[autofocus]') ?? document.activeElement) === document.activeElement");
    }

    /// Clicks on the first thing that the selector finds and that says this.
    pub fn click(&mut self, selector: &str, words: &str) {
        self.act(&format!(
            "[...document.querySelectorAll({selector:?})].find((each) => each.textContent.trim() === {words:?}).click()"
        ));
    }

    /// Presses a key: a character, `Enter` or `Tab`.
    pub fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            "Tab" => (9, ""),
            "Escape" => (27, ""),
            " " => (32, " "),
            key => (0, key),
        };
        let kind = if text.is_empty() {
            "rawKeyDown"
        } else {
            "keyDown"
        };
        let mut down = json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code });
        if !text.is_empty() {
            down["text"] = text.into();
        }
        let up = json!({ "type": "keyUp", "key": key, "windowsVirtualKeyCode": code });
        for event in [down, up] {
            // It was pressed, also when the page that it leads to comes before the answer.
            self.ask("Input.dispatchKeyEvent", event);
        }
    }

    /// Types text, key by key.
    pub fn type_in(&mut self, text: &str) {
        for key in text.chars() {
            self.press(&key.to_string());
        }
    }

    /// Goes from one thing to the next until it is at the one that says this.
    pub fn tab_to(&mut self, words: &str) {
        let here = format!("document.activeElement.textContent.trim() === {words:?}");
        for _ in 0..400 {
            if self.look(&here) == true {
                return;
            }
            self.press("Tab");
        }
        panic!("no way to {words} by keyboard");
    }

    /// The text of the page.
    pub fn text(&mut self) -> String {
        let text = self.look("document.querySelector('main').innerText");
        text.as_str().unwrap_or_default().to_owned()
    }
}

/// The value of an expression that was asked in a page that stays.
fn value(expression: &str, said: Option<Value>) -> Value {
    let said =
        said.unwrap_or_else(|| panic!("the page was left, and not by follow(): {expression}"));
    assert!(said["exceptionDetails"].is_null(), "{expression}: {said}");
    said["result"]["value"].clone()
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends when nobody is left who could tell it anything.
        self.to.take();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
