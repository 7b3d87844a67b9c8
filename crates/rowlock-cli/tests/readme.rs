//! What README.md shows is what happens: every ```console block is run, in one new folder.
//!
//! A line that begins with `$ ` is run, what follows it is its stdout. `dev` and what ends with `&` run in
//! the background until the next heading; after an enqueue the log of dev's worker says when the job is
//! settled, and Redis when it was sent. `cat` of a file that isn't there writes that file: it stands for the
//! reader's editor, and `sqlite3 FILE < SCRIPT` for the reader's application. The reader's PostgreSQL and
//! Redis are of our own.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that can't go on has failed"
)]

mod place;

use place::Place;
use rowlock_testbed::{Database, Postgres, Process, Redis, repository, until};

const DEV: &str = "cargo run --release -- dev";
/// What the page calls the reader's database.
const SERVER: &str = "postgres://localhost/app";
/// And the reader's Redis.
const REDIS: &str = "redis://127.0.0.1:6379/0";

/// A command with the output it should have.
struct Step {
    command: String,
    output: String,
}

enum Part {
    Heading,
    Step(Step),
}

fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut inside = None;
    for line in text.lines() {
        match (inside, line) {
            (None, fence) if fence.starts_with("```") => inside = Some(fence == "```console"),
            (None, heading) if heading.starts_with('#') => parts.push(Part::Heading),
            (Some(_), "```") => inside = None,
            (Some(true), line) => match (line.strip_prefix("$ "), parts.last_mut()) {
                (Some(command), _) => parts.push(Part::Step(Step {
                    command: command.to_owned(),
                    output: String::new(),
                })),
                (None, Some(Part::Step(step))) => step.output += &format!("{line}\n"),
                (None, _) => panic!("a console block begins with output: {line}"),
            },
            _ => {}
        }
    }
    parts
}

/// `waited 3 ms  ran 1 ms` becomes `waited <time>  ran <time>`.
fn masked(text: &str) -> String {
    text.lines().map(|line| masked_line(line) + "\n").collect()
}

fn masked_line(line: &str) -> String {
    // What chance decides about a demonstration of crashes.
    let line = &["more than once ", "answers refused ", "--seed "]
        .into_iter()
        .fold(line.to_owned(), |line, before| masked_after(&line, before));
    let mut out: Vec<&str> = Vec::new();
    let mut words = line.split(' ').peekable();
    while let Some(word) = words.next() {
        let unit = words.peek().copied();
        if word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            out.push("<key>");
        } else if is_time_of_day(word) {
            out.push("<time>");
        } else if word.parse::<f64>().is_ok() && matches!(unit, Some("ms" | "s" | "m" | "h" | "d"))
        {
            words.next();
            if out.last() != Some(&"<time>") {
                out.push("<time>");
            }
        } else {
            out.push(word);
        }
    }
    out.join(" ")
}

fn is_time_of_day(word: &str) -> bool {
    let parts: Vec<&str> = word.split(':').collect();
    let two = |part: &&str| part.len() == 2 && part.bytes().all(|digit| digit.is_ascii_digit());
    parts.len() == 3 && parts.iter().all(two)
}

/// The number after these words becomes `<n>`, unless it is nought.
fn masked_after(line: &str, words: &str) -> String {
    let Some((before, after)) = line.split_once(words) else {
        return line.to_owned();
    };
    let rest = after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',');
    match &after[..after.len() - rest.len()] {
        "" | "0" => line.to_owned(),
        _ => format!("{before}{words}<n>{rest}"),
    }
}

/// Our own servers, and the reader's names for them.
struct Servers {
    database: Database,
    redis: Redis,
}

impl Servers {
    fn as_shown(&self, text: &str) -> String {
        let url = self.database.url();
        let anonymous = url.replace("postgres@", "");
        let text = text.replace(url, SERVER).replace(&anonymous, SERVER);
        text.replace(&self.redis.url(), REDIS)
    }

    fn here(&self, text: &str) -> String {
        let text = text.replace(SERVER, self.database.url());
        text.replace(REDIS, &self.redis.url())
    }
}

/// Waits until a number of the route that drains is this one.
fn wait_for_route(place: &Place, drain: &str, what: &str, number: u64) {
    let flags = drain.split_once("run").map_or("", |(_, flags)| flags);
    until(&format!("{what} is {number}"), || {
        let told = bash(place, &format!("rowlock drain status --json {flags}"));
        let told: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
        (told[what] == number).then_some(())
    });
}

fn bash(place: &Place, line: &str) -> rowlock_testbed::Finished {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_rowlock"));
    let old = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{old}", binary.parent().unwrap().display());
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", line]).current_dir(place.folder.path());
    shell
        .env("PATH", path)
        .env_remove("ROWLOCK_URL")
        .env_remove("ROWLOCK_SCHEMA")
        .env_remove("ROWLOCK_CONFIG");
    Process::run(&mut shell, "")
}

/// Runs a script in the reader's own file.
fn application(place: &Place, file: &str, script: &str) {
    let script = std::fs::read_to_string(place.path(script)).unwrap();
    let connection = rusqlite::Connection::open(place.path(file)).unwrap();
    let done = connection.execute_batch(&script);
    done.unwrap_or_else(|why| panic!("{script}: {why}"));
}

fn end(dev: Option<Process>) {
    let Some(dev) = dev else { return };
    dev.signal("TERM");
    let (code, lines) = dev.wait();
    assert_eq!(code, Some(0), "{lines:#?}");
}

#[test]
fn every_console_block_of_the_readme_does_what_it_shows() {
    let text = std::fs::read_to_string(repository().join("README.md")).unwrap();
    let place = Place::new();
    let servers = Servers {
        database: Postgres::shared().database_from(None),
        redis: Redis::start(),
    };
    let mut dev: Option<Process> = None;
    let mut drain: Option<(Process, String)> = None;
    let mut ran = 0;
    for part in parts(&text) {
        let Part::Step(Step { command, output }) = part else {
            end(dev.take());
            end(drain.take().map(|(drain, _)| drain));
            continue;
        };
        ran += 1;
        if command.starts_with(DEV) {
            // The page shows the usual port; here it may be somebody else's.
            let mut started = place.start(&["dev", "-v", "--listen", "127.0.0.1:0"]);
            for line in output.lines() {
                started.line_with(line.split("7878").next().unwrap_or(line));
            }
            dev = Some(started);
            continue;
        }
        if let Some(line) = command.strip_suffix(" &") {
            let words: Vec<&str> = line.split(' ').skip(1).collect();
            let mut started = place.start(&words);
            for line in servers.here(&output).lines() {
                started.line_with(line);
            }
            drain = Some((started, line.to_owned()));
            continue;
        }
        if let Some(file) = command.strip_prefix("cat ")
            && !place.path(file).exists()
        {
            place.write(file, servers.here(&output));
            continue;
        }
        if let Some((file, script)) = command
            .strip_prefix("sqlite3 ")
            .and_then(|rest| rest.split_once(" < "))
        {
            application(&place, file, script);
            continue;
        }
        let mut finished = bash(&place, &servers.here(&command));
        finished.stdout = servers.as_shown(&finished.stdout);
        assert_eq!(finished.code, Some(0), "{command}: {finished:?}");
        assert_eq!(
            masked(&finished.stdout),
            masked(&output),
            "$ {command}\n{}",
            finished.stderr
        );
        assert_eq!(finished.stderr, "", "$ {command}");
        let queued = finished.stdout.strip_prefix("queued ");
        let id = queued.and_then(|rest| rest.split(' ').next());
        if let (Some(dev), Some(id)) = (&mut dev, id) {
            dev.line_with(&format!("settled job={id}"));
        }
        match &drain {
            Some((_, drain)) if id.is_some() => wait_for_route(&place, drain, "ready", 1),
            Some((_, drain)) => wait_for_route(&place, drain, "sent", 0),
            None => {}
        }
    }
    end(dev);
    end(drain.map(|(drain, _)| drain));
    assert!(ran >= 8, "only {ran} commands were found");
}

#[test]
fn durations_are_masked_and_nothing_else() {
    assert_eq!(
        masked("lost 0 · run more than once 1,029 · late answers refused 0 · (--seed 7)\n"),
        "lost 0 · run more than once <n> · late answers refused 0 · (--seed <n>)\n"
    );
    assert_eq!(
        masked("empty 19:22:01 · back 19:22:02 (10 of 10)\n"),
        "empty <time> · back <time> (10 of 10)\n"
    );
    assert_eq!(
        masked("1  echo  waited 3 ms  ran 1.5 s\n2 of 5  in 10 m 5 s\n"),
        "1  echo  waited <time>  ran <time>\n2 of 5  in <time>\n"
    );
}
