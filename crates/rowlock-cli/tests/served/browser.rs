//! A real browser, driven through a pair of pipes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rowlock_testbed::{TempDir, until};
use serde_json::{Value, json};

/// One window of a headless Chromium.
pub struct Browser {
    process: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    session: Option<String>,
    asked: u64,
    _profile: TempDir,
}

impl Browser {
    /// Starts one; what a page's policy has refused is counted in `window.refused`, and what has moved after it was
    /// drawn, and before anything in it was new, is listed in `window.moved`.
    pub fn open() -> Self {
        let profile = rowlock_testbed::folder();
        let program = std::env::var("ROWLOCK_CHROMIUM").unwrap_or_else(|_| "chromium".to_owned());
        // The browser takes its orders from 3 and answers on 4.
        let line = "exec \"$0\" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage \
                    --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync \
                    --remote-debugging-pipe --user-data-dir=\"$1\" about:blank 3<&0 4>&1 2>/dev/null";
        let mut process = Command::new("sh")
            .args(["-c", line, &program])
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut browser = Self {
            to: process.stdin.take(),
            from: BufReader::new(process.stdout.take().unwrap()),
            process,
            session: None,
            asked: 0,
            _profile: profile,
        };
        let page = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": page["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        browser.call("Page.enable", json!({}));
        let count = include_str!("watch.js");
        browser.call(
            "Page.addScriptToEvaluateOnNewDocument",
            json!({ "source": count }),
        );
        browser
    }

    /// Gives an order and waits for its answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let mut order = json!({ "id": self.asked, "method": method, "params": params });
        if let Some(session) = &self.session {
            order["sessionId"] = session.as_str().into();
        }
        let to = self.to.as_mut().unwrap();
        let sent = write!(to, "{order}\0").and_then(|()| to.flush());
        sent.expect("chromium: type apt-get install -y chromium, or set ROWLOCK_CHROMIUM");
        loop {
            let mut text = Vec::new();
            self.from.read_until(0, &mut text).unwrap();
            text.pop();
            let said: Value = serde_json::from_slice(&text)
                .expect("chromium: type apt-get install -y chromium, or set ROWLOCK_CHROMIUM");
            if said["id"] == self.asked {
                assert!(said["error"].is_null(), "{method}: {said}");
                return said["result"].clone();
            }
        }
    }

    /// What an expression says in the page. Nothing while the page is being left.
    pub fn look(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true });
        self.call("Runtime.evaluate", params)["result"]["value"].clone()
    }

    /// What a promise says in the page.
    pub fn tell(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let said = self.call("Runtime.evaluate", params);
        assert!(said["exceptionDetails"].is_null(), "{said}");
        said["result"]["value"].clone()
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

    /// Waits until an expression is true.
    pub fn wait(&mut self, expression: &str) {
        until(expression, || (self.look(expression) == true).then_some(()));
    }

    /// Goes to a page.
    pub fn go(&mut self, url: &str) {
        self.look("window.left = true");
        self.call("Page.navigate", json!({ "url": url }));
        self.loaded();
    }

    /// Waits until the next page is there, and whatever wants the keys has them: that comes a moment later.
    pub fn loaded(&mut self) {
        self.wait("!window.left && document.readyState === 'complete'");
        self.wait("(document.querySelector('[autofocus]') ?? document.activeElement) === document.activeElement");
    }

    /// Does something that leads to another page, and waits for it.
    pub fn follow(&mut self, act: impl FnOnce(&mut Self)) {
        self.look("window.left = true");
        act(self);
        self.loaded();
    }

    /// Clicks on the first thing that the selector finds and that says this.
    pub fn click(&mut self, selector: &str, words: &str) {
        let found = format!(
            "(() => {{ const found = [...document.querySelectorAll({selector:?})]\
             .find((each) => each.textContent.trim() === {words:?}); found?.click(); return !!found }})()"
        );
        assert_eq!(self.look(&found), true, "{selector} {words}");
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
        self.call("Input.dispatchKeyEvent", down);
        let up = json!({ "type": "keyUp", "key": key, "windowsVirtualKeyCode": code });
        self.call("Input.dispatchKeyEvent", up);
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

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends when nobody is left who could tell it anything.
        self.to.take();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
