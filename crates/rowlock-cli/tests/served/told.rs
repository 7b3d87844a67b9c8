//! What open pages are told, and when.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rowlock_testbed::until;

use super::browser::Browser;
use super::{Ask, Home, Served, furnish, ok};

/// What an open page is told.
struct Told {
    stream: TcpStream,
    text: String,
}

impl Told {
    fn open(served: &Served, query: &str) -> Self {
        let stream = TcpStream::connect(&served.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let head = format!(
            "GET /events{query} HTTP/1.1\r\nHost: {}\r\n\r\n",
            served.address
        );
        (&stream).write_all(head.as_bytes()).unwrap();
        let text = String::new();
        let mut told = Self { stream, text };
        told.until(&["retry: "]);
        told
    }

    /// Reads until one of these is there, and says which.
    fn until<'a>(&mut self, signs: &[&'a str]) -> &'a str {
        let mut part = [0; 1_000];
        loop {
            for sign in signs {
                if let Some(at) = self.text.find(sign) {
                    self.text.drain(..at + sign.len());
                    return sign;
                }
            }
            let n = self.stream.read(&mut part).unwrap();
            assert!(n > 0, "{}", self.text);
            self.text.push_str(&String::from_utf8_lossy(&part[..n]));
        }
    }
}

pub fn an_open_page_hears_what_changes(home: &dyn Home) {
    furnish(home);
    let served = Served::open(home);
    let mut told = Told::open(&served, "");
    for _ in 0..2 {
        ok(home, &["enqueue", "echo"]);
        told.until(&["data: "]);
    }
    served.end();
}

pub fn a_page_hears_what_changed_while_it_was_on_its_way(home: &dyn Home) {
    ok(home, &["migrate", "up"]);
    let served = Served::open(home);
    let told = || {
        let page = served.ask(&Ask::new("GET", "//jobs")).body;
        let said = page.split("data-told=\"").nth(1).unwrap();
        said.split('"').next().unwrap().to_owned()
    };
    until("a first look", || (told() != "0").then_some(()));
    let read = told();
    // It isn't listening yet. What waits for its time is news once, not at every look.
    ok(home, &["enqueue", "echo", "--in", "1h"]);
    until("news", || (told() != read).then_some(()));
    let mut late = Told::open(&served, &format!("?told={read}"));
    assert_eq!(late.until(&["data: ", "still here"]), "data: ");
    let mut newest = Told::open(&served, &format!("?told={}", told()));
    assert_eq!(newest.until(&["data: ", "still here"]), "still here");
    served.end();
}

/// The other half of it is the script's.
pub fn a_page_says_what_it_has_read_when_it_begins_to_listen(home: &dyn Home) {
    furnish(home);
    let served = Served::open(home);
    let mut browser = Browser::open();
    browser.go(&format!("http://{}/jobs", served.address));
    browser.wait("listened.length > 0");
    let read = browser.look("document.body.dataset.told");
    let listened = browser.look("listened[0]");
    let said = format!("/events?told={}", read.as_str().unwrap());
    assert_eq!(listened, said.as_str());
    served.end();
}
