//! Real processes, killed on either side of the commit.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Duration;

use rowlock::run::{Options, Stopper};
use rowlock::{Clock, Context, JobState, Outcome, Rowlock, Worker};
use rowlock_testbed::Process;
use tokio::sync::mpsc;

use crate::complete::{kind, staged};
use crate::driver::{Driver, End};
use crate::file::File;

/// Short, so that the survivor needn't wait long for what the dead process held; long enough that it keeps its own on a
/// busy machine.
fn options() -> Options {
    Options {
        lease: Duration::from_secs(3),
        ..Options::default()
    }
}

/// Generous: it can only fail a test.
const DEADLINE: Duration = Duration::from_secs(120);

/// `victim DRIVER FILE before|after`: works until it is killed.
pub fn victim(arguments: &[String]) -> ExitCode {
    let [driver, path, moment] = arguments else {
        return ExitCode::FAILURE;
    };
    let end = match moment.as_str() {
        "before" => End::HangBefore,
        _ => End::HangAfter,
    };
    let with = crate::drivers()
        .into_iter()
        .find(|with| with.name() == driver)
        .unwrap();
    let rowlock = Rowlock::open(&format!("sqlite:{path}")).unwrap();
    let worker = worker(rowlock, with, PathBuf::from(path), end, None);
    let stopper = Stopper::default();
    crate::runtime()
        .block_on(worker.run_until(stopper.stop()))
        .unwrap();
    ExitCode::SUCCESS
}

fn worker(
    rowlock: Rowlock,
    with: Arc<dyn Driver>,
    path: PathBuf,
    end: End,
    done: Option<mpsc::UnboundedSender<()>>,
) -> Worker {
    let handler = move |cx: Context| {
        let (with, path, done) = (Arc::clone(&with), path.clone(), done.clone());
        async move {
            with.complete(&path, "", &cx, end).await.unwrap();
            done.map(|done| done.send(()));
            Outcome::Done
        }
    };
    Worker::new(rowlock, ())
        .options(options())
        .handle_kind(kind(), handler)
}

fn killed(file: &File, with: &Arc<dyn Driver>, moment: &str) {
    let mut process = Process::start(
        Command::new(std::env::current_exe().unwrap())
            .args(["victim", with.name()])
            .arg(&file.path)
            .arg(moment),
    );
    process.line_with("waiting to be killed");
    process.signal("KILL");
    let (code, _) = process.wait();
    assert_eq!(code, None, "a signal ended it");
}

pub async fn a_process_killed_before_the_commit_leaves_neither(with: Arc<dyn Driver>) {
    let file = File::new();
    let id = staged(&file).await;
    killed(&file, &with, "before");
    assert_eq!(file.notes(), 0);
    assert_eq!(file.job(id).await.state, JobState::Processing);

    // Whoever lives on does it, once.
    let (done, mut events) = mpsc::unbounded_channel();
    let survivor = worker(
        file.open(),
        with,
        file.path.clone(),
        End::Commit,
        Some(done),
    );
    let stopper = Stopper::default();
    let watch = async {
        let done = Clock::system().timeout(DEADLINE, events.recv()).await;
        stopper.ask();
        done.expect("the survivor runs it").unwrap();
    };
    let (tally, ()) = tokio::join!(survivor.run_until(stopper.stop()), watch);
    assert_eq!(tally.unwrap().lost, 0);
    assert_eq!(file.notes(), 1);
    assert_eq!(file.job(id).await.state, JobState::Completed);
}

pub async fn a_process_killed_after_the_commit_leaves_both(with: Arc<dyn Driver>) {
    let file = File::new();
    let id = staged(&file).await;
    killed(&file, &with, "after");
    assert_eq!(file.notes(), 1);
    let job = file.job(id).await;
    assert_eq!((job.state, job.attempt), (JobState::Completed, 1));
}
