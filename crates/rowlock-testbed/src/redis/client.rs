//! One command to a Redis server, and its answer as text.

use std::io::{BufRead, BufReader, Error, ErrorKind, Result, Write};
use std::net::TcpStream;

use crate::deadline::DEADLINE;

/// What a server says: text, or its refusal.
pub(super) type Answer = std::result::Result<String, String>;

/// Sends a command over a connection of its own.
pub(super) fn ask(port: u16, words: &[&str]) -> Result<Answer> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(DEADLINE))?;
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(request.as_bytes())?;
    read(&mut BufReader::new(stream))
}

/// A list's items are lines; nothing at all is the empty text.
fn read(stream: &mut impl BufRead) -> Result<Answer> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let line = line.trim_end();
    let (sort, rest) = line
        .split_at_checked(1)
        .ok_or_else(|| Error::new(ErrorKind::UnexpectedEof, "no answer"))?;
    let length = || rest.parse::<i64>().map_err(Error::other);
    match sort {
        "+" | ":" => Ok(Ok(rest.to_owned())),
        "-" => Ok(Err(rest.to_owned())),
        "$" => {
            let Ok(length) = usize::try_from(length()?) else {
                return Ok(Ok(String::new()));
            };
            let mut text = vec![0; length + 2];
            stream.read_exact(&mut text)?;
            text.truncate(length);
            Ok(Ok(String::from_utf8_lossy(&text).into_owned()))
        }
        "*" => {
            let mut items = Vec::new();
            for _ in 0..length()? {
                // A refusal among them is one of the answers.
                items.push(read(stream)?.unwrap_or_else(|why| why));
            }
            Ok(Ok(items.join("\n")))
        }
        _ => Err(Error::other(format!("{line:?} isn't an answer of Redis"))),
    }
}
