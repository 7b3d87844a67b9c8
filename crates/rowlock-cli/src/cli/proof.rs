//! Verbs that show what is promised: `verify`, `demo`, `bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Subcommand)]
pub enum Demo {
    /// Kill and stop workers in the middle of jobs, and count what is lost
    Crash(Crash),
}

#[derive(Debug, Args)]
#[command(after_help = "\
Half of the faults kill a worker process (SIGKILL), half stop it until others have taken over and
then wake it: its late answers must be refused. A fault counts only if it hit a running job. At the
end `rowlock verify` looks at both logs and the store. Exit code 0 only if nothing is lost, 6 if an
invariant is broken.
With --url postgres://... it happens in that database, in a schema rowlock_demo_... of its own that
is dropped at the end; otherwise in a temporary SQLite file.

Examples:
  rowlock demo crash --jobs 1000 --kills 25
  rowlock demo crash --url postgres://localhost/app")]
pub struct Crash {
    /// How many jobs
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub jobs: u64,
    /// How many faults
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub kills: u32,
    /// Start the dice at this number: faults come in the same order again, though not to the moment
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
One line for each invariant: I3, I4, I6 and I7 from the store alone, I1 with --told, I2 and I5 with
both logs. Exit code 6 when one is broken. docs/verify.md has the formats.

Examples:
  rowlock verify
  rowlock enqueue --from jobs.ndjson --told told.ndjson
  rowlock work --once --ran ran.ndjson
  rowlock verify --told told.ndjson --ran ran.ndjson")]
pub struct Verify {
    /// What producers were told, as `enqueue --told` writes it
    #[arg(long, value_name = "FILE")]
    pub told: Option<PathBuf>,
    /// What workers ran, as `work --ran` writes it
    #[arg(long, value_name = "FILE")]
    pub ran: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub enum Bench {
    /// The SQLite engine, in a temporary folder; never in your store
    #[command(after_help = "\
It takes some ten minutes; the figures mean little while the machine does other things. All sides
use the same disk and wait for it at every commit. With --check a goal that was missed is named and
the exit code is 6.

Examples:
  rowlock bench sqlite
  rowlock bench sqlite --check --out docs/bench
  rowlock bench sqlite --quick --json")]
    Sqlite(BenchSqlite),
    /// The PostgreSQL engine, on the server of --url, in a schema of its own
    #[command(after_help = "\
Ours against the bare statements of the same writes, and against the queue that textbooks teach,
all in the database of --url postgres://... (or ROWLOCK_URL), in a schema rowlock_bench_... that is
dropped at the end, also after Ctrl-C. Nobody else should use that database meanwhile. It takes some
ten minutes. With --pinned two million jobs go through while a transaction stays open, in two
databases of its own that are dropped at the end: some twenty minutes. With --check a goal that was
missed is named and the exit code is 6.

Examples:
  rowlock bench postgres --url postgres://localhost/app
  rowlock bench postgres --url postgres://localhost/app --check --out docs/bench
  rowlock bench postgres --url postgres://localhost/app --only drain
  rowlock bench postgres --url postgres://localhost/app --pinned --check
  rowlock bench postgres --url postgres://localhost/app --quick --json")]
    Postgres(BenchPostgres),
    /// Ticks of a pair over a million rows, in a temporary folder or with --url on a server
    #[command(after_help = "\
Ours against plain INSERT ... SELECTs of the same columns, in batches of the same size. With --url
postgres://... (or ROWLOCK_URL) it happens in that database, in a schema rowlock_bench_... of its
own that is dropped at the end, also after Ctrl-C; otherwise in a temporary SQLite file, never in
your store. It takes some minutes. With --check a goal that was missed is named and the exit code
is 6.

Examples:
  rowlock bench pairs --check
  rowlock bench pairs --url postgres://localhost/app --check
  rowlock bench pairs --quick --json")]
    Pairs(BenchSqlite),
    /// The API of `dashboard`: behind six million rows, and while jobs run, on the server of --url
    #[command(after_help = "\
Every GET behind 5 million finished and 1 million pending jobs, beside the same behind a thousand; and
how fast jobs run while 200 requests a second are answered. It happens in the database of --url
postgres://... (or ROWLOCK_URL), in schemas rowlock_bench_... of its own that are dropped at the end,
also after Ctrl-C; it takes some ten minutes and 3 GB. With --check a goal that was missed is named and
the exit code is 6: p95 at most twice as long (what is quicker than 1 ms counts as 1 ms), no request
fails, and jobs run at 0.8 of their speed at least.

Examples:
  rowlock bench api --url postgres://localhost/app --check
  rowlock bench api --url postgres://localhost/app --quick --json")]
    Api(BenchSqlite),
    /// The pages of `dashboard` behind six million rows on the server of --url, and a million in a file
    #[command(after_help = "\
Every page behind 5 million finished and 1 million pending jobs in PostgreSQL and behind a million in a
SQLite file, each beside the same behind a thousand; and how many queries a page asks that is open. It
happens in the database of --url postgres://... (or ROWLOCK_URL), in schemas rowlock_bench_... of its
own that are dropped at the end, also after Ctrl-C, and in a temporary folder. Nobody else should use
that database meanwhile. It takes some fifteen minutes and 3 GB. With --check a goal that was missed is
named and the exit code is 6: p95 at most twice as long (what is quicker than 1 ms counts as 1 ms), no
large table read as a whole, and at most 2 queries a second for a page that is open.

Examples:
  rowlock bench pages --url postgres://localhost/app --check
  rowlock bench pages --url postgres://localhost/app --check --out docs/bench
  rowlock bench pages --url postgres://localhost/app --quick --json")]
    Pages(BenchSqlite),
    /// Draining to Redis and workers that take from it, in a temporary folder and with --url on a server
    #[command(after_help = "\
It starts a redis-server of its own from PATH and ends it, or uses the one of --to, below a prefix
rowlock_bench_... whose keys are removed at the end; a Redis that is given is not killed, so that step is
left out. Rows are in a temporary SQLite file; with --url postgres://... (or ROWLOCK_URL) also in
that database, in a schema rowlock_bench_... of its own, and for an old snapshot in two databases
of its own; all are dropped at the end, also after Ctrl-C. It takes some minutes, with a server
some fifteen. With --check a goal that was missed is named and the exit code is 6.

Examples:
  rowlock bench redis --check
  rowlock bench redis --url postgres://localhost/app --check --out docs/bench
  rowlock bench redis --to redis://127.0.0.1:6379/0
  rowlock bench redis --quick --json")]
    Redis(BenchRedis),
    /// Mixed jobs at an even rate for half an hour while an old snapshot stays open, on the server of --url
    #[command(after_help = "\
2,000 jobs a second of several kinds, queues and priorities, some with a key, some later, some that
fail first, in databases of its own that are dropped at the end, also after Ctrl-C. A worker in a
process of its own runs them. Thirty times it says how long claims took, and how large the worker,
the tables and the catalogue are. With --check a goal that was missed is named and the exit code
is 6: the last claims take as long as the first, and the worker doesn't grow.

Examples:
  rowlock bench soak --url postgres://localhost/app --check
  rowlock bench soak --url postgres://localhost/app --minutes 5")]
    Soak(BenchSoak),
    /// Long reports beside 500 jobs a second, with a budget and without, on the server of --url
    #[command(after_help = "\
Every job changes a row of a table of the application's. Three reports overlap, so that one is always
open; then the same with a budget of one; then a prepared transaction and an abandoned replication
slot, each before and after its remedy. Told are the age of the horizon, the dead rows that can't be
removed, what waits, and how long claims take; the guard must name each with its process, class and
age. It happens in two databases of its own that are dropped at the end, also after Ctrl-C, and needs
max_prepared_transactions and wal_level = logical. It takes some twelve minutes. What a run that was
killed has left, the next run or --clean removes.

Examples:
  rowlock bench horizon --url postgres://localhost/app --check --out docs/bench
  rowlock bench horizon --url postgres://localhost/app --quick --json")]
    Horizon(BenchSqlite),
    /// The worker of a soak
    #[command(hide = true)]
    SoakWorker {
        /// The schema that has the tables
        tables: String,
    },
    /// One of the processes of a measurement
    #[command(hide = true)]
    Part {
        /// The store
        path: PathBuf,
        /// Enqueue so many jobs instead of working
        #[arg(long, value_name = "N")]
        produce: Option<usize>,
        /// Five a second instead of a hundred
        #[arg(long)]
        rarely: bool,
    },
}

#[derive(Debug, Args)]
pub struct BenchSqlite {
    /// End with exit code 6 when a goal is missed, and say which
    #[arg(long, conflicts_with = "quick")]
    pub check: bool,
    /// Tiny sizes: whether everything runs and is counted right, not how fast
    #[arg(long)]
    pub quick: bool,
    /// Measure nothing: remove what runs that were killed have left on the server of --url (or the
    /// Redis of --to), which the next run does too
    #[arg(long, conflicts_with_all = ["check", "quick", "out"])]
    pub clean: bool,
    /// Also write the figures into this folder, as JSON and some as a chart
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Measure on this folder's disk [default: the current folder]
    #[arg(
        long,
        value_name = "DIR",
        default_value = ".",
        hide_default_value = true
    )]
    pub dir: PathBuf,
}

/// A part of `bench postgres`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BenchPart {
    Enqueue,
    Drain,
    Start,
    Idle,
    History,
}

/// What is watched under a transaction that stays open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum BenchPinned {
    Snapshot,
    Writer,
    Keys,
    Aside,
}

/// How to measure PostgreSQL.
#[derive(Debug, Args)]
pub struct BenchPostgres {
    /// Only this part of it; more than one may be named
    #[arg(long, value_enum, value_name = "PART", conflicts_with_all = ["pinned", "out"])]
    pub only: Vec<BenchPart>,
    /// Under transactions that stay open: whether speed and space stay as they are
    #[arg(long)]
    pub pinned: bool,
    /// Of --pinned only this; more than one may be named
    #[arg(
        long,
        value_enum,
        value_name = "STEP",
        requires = "pinned",
        conflicts_with = "out"
    )]
    pub step: Vec<BenchPinned>,
    #[command(flatten)]
    pub how: BenchSqlite,
}

#[derive(Debug, Args)]
pub struct BenchSoak {
    /// How long
    #[arg(long, value_name = "N", default_value_t = 30, conflicts_with = "quick",
          value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub minutes: u64,
    #[command(flatten)]
    pub how: BenchSqlite,
}

#[derive(Debug, Args)]
pub struct BenchRedis {
    /// Use this Redis [default: a redis-server of its own]
    #[arg(long, value_name = "URL")]
    pub to: Option<String>,
    #[command(flatten)]
    pub how: BenchSqlite,
}
