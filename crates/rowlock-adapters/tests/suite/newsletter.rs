//! The example of a newsletter, run as a program: its letters go to workers through Redis.

use std::process::{Command, ExitCode};

use libtest_mimic::Trial;
use rowlock_testbed::{Process, Redis};

use crate::plain;

// Its own `main` only reads the arguments, which are others here.
#[allow(dead_code)]
#[path = "../../../../examples/newsletter/main.rs"]
mod example;

pub fn trials() -> Vec<Trial> {
    vec![
        plain("the_newsletter_goes_out_through_redis", || {
            let folder = rowlock_testbed::folder();
            run(&format!(
                "sqlite:{}",
                folder.path().join("app.db").display()
            ));
        }),
        plain("postgres::the_newsletter_goes_out_through_redis", || {
            run(rowlock_testbed::Postgres::shared()
                .database_from(None)
                .url());
        }),
    ]
}

/// `example newsletter URL REDIS`: is the example.
pub fn act(url: Option<&str>, redis: Option<&str>) -> ExitCode {
    let (url, redis) = (url.unwrap_or_default(), redis.unwrap_or_default());
    let published = crate::runtime().block_on(example::publish(url, redis, 300));
    published.unwrap_or_else(|why| {
        eprintln!("{why}");
        ExitCode::FAILURE
    })
}

fn run(url: &str) {
    let redis = Redis::start();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let ended = Process::run(
        command.args(["example", "newsletter", url, &redis.url()]),
        "",
    );
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let told = [
        "staged 300 letters",
        "drained 300 letters, 300 answers came back",
        "sent 300 letters, 300 by two workers",
    ];
    assert_eq!(lines, told);
}
