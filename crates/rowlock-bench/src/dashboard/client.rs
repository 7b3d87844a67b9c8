//! A client that keeps its connection.

use anyhow::{Context, Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) struct Client {
    address: String,
    /// What every path begins with.
    root: &'static str,
    stream: Option<TcpStream>,
    read: Vec<u8>,
}

impl Client {
    pub(crate) fn new(address: &str, root: &'static str) -> Self {
        Self {
            address: address.to_owned(),
            root,
            stream: None,
            read: Vec::new(),
        }
    }

    /// The status and the body.
    pub(crate) async fn get(&mut self, path: &str) -> Result<(u16, Vec<u8>)> {
        self.get_with(path, "").await
    }

    /// The same, with lines of its own in the head.
    pub(crate) async fn get_with(&mut self, path: &str, lines: &str) -> Result<(u16, Vec<u8>)> {
        let answer = self.ask(path, lines).await;
        if answer.is_err() {
            self.stream = None;
        }
        answer
    }

    async fn ask(&mut self, path: &str, lines: &str) -> Result<(u16, Vec<u8>)> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            none => none.insert(TcpStream::connect(&self.address).await?),
        };
        stream.set_nodelay(true)?;
        let request = format!(
            "GET {}{path} HTTP/1.1\r\nHost: {}\r\n{lines}\r\n",
            self.root, self.address
        );
        stream.write_all(request.as_bytes()).await?;
        self.read.clear();
        let (end, length, status) = loop {
            let more = stream.read_buf(&mut self.read).await?;
            ensure!(more > 0, "the server has hung up");
            let end = self.read.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head = std::str::from_utf8(&self.read[..end])?.to_ascii_lowercase();
                let status = head.split(' ').nth(1).context("a status")?.parse()?;
                let length = head.split("content-length: ").nth(1).context("a length")?;
                let length: usize = length.split("\r\n").next().unwrap_or("").parse()?;
                break (end + 4, length, status);
            }
        };
        while self.read.len() < end + length {
            let more = stream.read_buf(&mut self.read).await?;
            ensure!(more > 0, "the server has hung up");
        }
        Ok((status, self.read[end..end + length].to_vec()))
    }
}
