//! Somebody between a program of ours and its server who counts what the one asks of the other. The server's own count is of
//! everybody, autovacuum and the bench included, and comes late.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result};
use rowlock::run::task::Tasks;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::server::Server;

pub(crate) struct Between {
    /// What the program takes for its server.
    pub(crate) url: String,
    asked: Arc<AtomicUsize>,
    _tasks: Tasks,
}

impl Between {
    pub(crate) async fn start(server: &Server) -> Result<Self> {
        let config: Config = server.url.parse()?;
        let host = config.get_hosts().first().context("the URL has no host")?;
        let (host, port) = (
            host.clone(),
            config.get_ports().first().copied().unwrap_or(5432),
        );
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = url(&config, listener.local_addr()?.port(), &server.schema);
        let asked = Arc::<AtomicUsize>::default();
        let counts = Arc::clone(&asked);
        let mut tasks = Tasks::default();
        tasks.start("bench-between", async move {
            let mut talks = Tasks::default();
            while let Ok((client, _)) = listener.accept().await {
                talks.tidy();
                let (host, counts) = (host.clone(), Arc::clone(&counts));
                talks.start("bench-between-talk", async move {
                    // Its end is that of the program's connection, which says what went wrong.
                    let _ = talk(client, &host, port, &counts).await;
                });
            }
        });
        Ok(Self {
            url,
            asked,
            _tasks: tasks,
        })
    }

    /// How many questions were answered so far. A question is a transaction of its own; a new connection counts as one.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

fn url(config: &Config, port: u16, application: &str) -> String {
    let encode = |bytes: &[u8]| -> String {
        let hex = |byte: &u8| match byte.is_ascii_alphanumeric() {
            true => char::from(*byte).to_string(),
            false => format!("%{byte:02X}"),
        };
        bytes.iter().map(hex).collect()
    };
    let user = config.get_user().map(|user| encode(user.as_bytes()));
    let password = config
        .get_password()
        .map(|word| format!(":{}", encode(word)));
    let who = match user {
        Some(user) => format!("{user}{}@", password.unwrap_or_default()),
        None => String::new(),
    };
    let database = config.get_dbname().map(|name| encode(name.as_bytes()));
    let database = database.unwrap_or_default();
    format!("postgres://{who}127.0.0.1:{port}/{database}?application_name={application}")
}

async fn talk(client: TcpStream, host: &Host, port: u16, counts: &AtomicUsize) -> Result<()> {
    client.set_nodelay(true)?;
    match host {
        Host::Tcp(name) => {
            let server = TcpStream::connect((name.as_str(), port)).await?;
            server.set_nodelay(true)?;
            both_ways(client, server, counts).await
        }
        Host::Unix(folder) => {
            let server = UnixStream::connect(folder.join(format!(".s.PGSQL.{port}"))).await?;
            both_ways(client, server, counts).await
        }
    }
}

async fn both_ways(
    client: TcpStream,
    server: impl AsyncRead + AsyncWrite + Send,
    counts: &AtomicUsize,
) -> Result<()> {
    let (mut asks, mut hears) = client.into_split();
    let (mut answers, mut told) = tokio::io::split(server);
    let there = async {
        tokio::io::copy(&mut asks, &mut told).await?;
        told.shutdown().await?;
        anyhow::Ok(())
    };
    let back = async {
        let (mut bytes, mut answer) = (vec![0; 64 * 1024], Answers::default());
        loop {
            let n = answers.read(&mut bytes).await?;
            if n == 0 {
                hears.shutdown().await?;
                return anyhow::Ok(());
            }
            counts.fetch_add(answer.ends(&bytes[..n]), Ordering::Relaxed);
            hears.write_all(&bytes[..n]).await?;
        }
    };
    tokio::try_join!(there, back)?;
    Ok(())
}

/// What a server says: a letter, four bytes for the length of what follows with themselves, and that. `Z` with an `I` says
/// that it is ready for the next question, outside of a transaction.
#[derive(Default)]
struct Answers {
    head: Vec<u8>,
    left: usize,
    ready: bool,
}

impl Answers {
    /// How many questions these bytes end.
    fn ends(&mut self, mut bytes: &[u8]) -> usize {
        let mut ends = 0;
        while let Some((first, rest)) = bytes.split_first() {
            if self.left > 0 {
                ends += usize::from(self.ready && *first == b'I');
                let n = self.left.min(bytes.len());
                self.left -= n;
                bytes = &bytes[n..];
                continue;
            }
            bytes = rest;
            self.head.push(*first);
            if let [kind, a, b, c, d] = self.head[..] {
                let length = u32::from_be_bytes([a, b, c, d]);
                self.left = usize::try_from(length).unwrap_or(4).saturating_sub(4);
                self.ready = kind == b'Z';
                self.head.clear();
            }
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_ends_outside_of_a_transaction_wherever_its_bytes_are_cut() {
        let said =
            b"Z\0\0\0\x05TC\0\0\0\x0bCOMMIT\0Z\0\0\0\x05IN\0\0\0\x04Z\0\0\0\x05EZ\0\0\0\x05I";
        for cut in 0..said.len() {
            let mut answers = Answers::default();
            let (first, rest) = said.split_at(cut);
            assert_eq!(answers.ends(first) + answers.ends(rest), 2, "{cut}");
        }
    }

    #[test]
    fn a_password_may_have_any_sign() {
        let config: Config = "postgres://ada:p%40ss%2F1@db:5433/app".parse().unwrap();
        assert_eq!(
            url(&config, 7, "bench"),
            "postgres://ada:p%40ss%2F1@127.0.0.1:7/app?application_name=bench"
        );
    }
}
