//! Reads lines one at a time, none longer than memory should hold.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use anyhow::Result;

use crate::exit;

/// The longest line: room for the largest payload, however generously it is written.
pub const LONGEST: usize = 8 * 1024 * 1024;

pub struct Lines {
    from: Box<dyn BufRead>,
    buffer: Vec<u8>,
    number: u64,
    bytes: u64,
    total: Option<u64>,
}

/// What reading on brought.
pub enum Read<'a> {
    /// A line without its end, and its number from 1 on.
    Line(u64, &'a [u8]),
    /// A line that is too long to be read.
    TooLong(u64),
    /// No more; this was the last line's number.
    End(u64),
}

impl Lines {
    /// Opens a file, or stdin for `-`.
    pub fn open(path: &Path) -> Result<Self> {
        let (from, total): (Box<dyn BufRead>, _) = if path.as_os_str() == "-" {
            (Box::new(BufReader::new(io::stdin())), None)
        } else {
            let (file, total) = open(path).map_err(|why| {
                exit::with(exit::USAGE, format!("can't read {}: {why}", path.display()))
            })?;
            (Box::new(BufReader::new(file)), total)
        };
        Ok(Self {
            from,
            buffer: Vec::new(),
            number: 0,
            bytes: 0,
            total,
        })
    }

    /// The next line.
    pub fn next(&mut self) -> io::Result<Read<'_>> {
        self.buffer.clear();
        let most = LONGEST as u64 + 1;
        let read = io::Read::take(&mut self.from, most).read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(Read::End(self.number));
        }
        self.number += 1;
        self.bytes += read as u64;
        let mut line = self.buffer.as_slice();
        line = line.strip_suffix(b"\n").unwrap_or(line);
        line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > LONGEST {
            return Ok(Read::TooLong(self.number));
        }
        if self.number == 1 {
            // What some editors put at the beginning of a file.
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        Ok(Read::Line(self.number, line))
    }

    /// How much has been read.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How much there is, if that is known.
    pub fn total(&self) -> Option<u64> {
        self.total
    }
}

fn open(path: &Path) -> io::Result<(File, Option<u64>)> {
    let file = File::open(path)?;
    let about = file.metadata()?;
    if about.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::IsADirectory,
            "it is a folder",
        ));
    }
    let total = about.is_file().then_some(about.len());
    Ok((file, total))
}
