//! Logs of one JSON object a line: each written at once, so that processes can share a file.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{Error, Result};

/// A log that is being written. What was written is with the system before the writer goes on.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    path: PathBuf,
    given_up: bool,
}

impl Log {
    /// Opens it, or makes it.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let failed = |why| Error::invalid(format!("can't open the log {}: {why}", path.display()));
        let mut file = OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            // It has keys of jobs in it, which may be people's names.
            .mode(0o600)
            .open(path)
            .map_err(failed)?;
        if file.metadata().map_err(failed)?.len() > 0 {
            let mut last = [0];
            file.seek(SeekFrom::End(-1)).map_err(failed)?;
            file.read_exact(&mut last).map_err(failed)?;
            // The next line would be glued to it, and both be lost.
            if last != *b"\n" {
                return Err(Error::invalid(format!(
                    "the log {} ends in the middle of a line: go on with a new file",
                    path.display()
                )));
            }
        }
        Ok(Self {
            file,
            path: path.to_owned(),
            given_up: false,
        })
    }

    /// Whether a write has failed, so that nothing more will be written.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// Appends the lines in one write. After one that failed nothing is written any more: it may have
    /// ended in the middle of a line, and the next one would be glued to it.
    pub(super) fn append(&mut self, lines: &[impl Serialize]) -> Result<()> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line).map_err(|why| Error::Bug(why.to_string()))?;
            text.push(b'\n');
        }
        let path = self.path.display();
        if self.given_up {
            return Err(Error::Log(format!(
                "the log {path} was given up after a write that failed"
            )));
        }
        self.file.write_all(&text).map_err(|why| {
            self.given_up = true;
            Error::Log(format!("can't write to the log {path}: {why}"))
        })
    }
}

/// Reads every line. The last one may be torn, if whoever wrote it was ended in the middle of it.
pub(super) fn read<T: DeserializeOwned>(path: &Path, mut each: impl FnMut(T)) -> Result<()> {
    let failed = |why| Error::invalid(format!("can't read the log {}: {why}", path.display()));
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        if file.read_until(b'\n', &mut line).map_err(failed)? == 0 {
            break;
        }
        match serde_json::from_slice(&line) {
            Ok(value) => each(value),
            Err(_) if line.last() != Some(&b'\n') => break,
            Err(why) => {
                return Err(Error::invalid(format!(
                    "{} line {number} is not a line of this log: {why}",
                    path.display()
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_line_may_be_torn_and_nothing_is_glued_to_it() {
        let path = std::env::temp_dir().join(format!("rowlock-lines-{}", std::process::id()));
        let numbers = |text: &str| {
            std::fs::write(&path, text).unwrap();
            let mut read_so_far = Vec::new();
            read(&path, |number: i32| read_so_far.push(number)).map(|()| read_so_far)
        };
        assert_eq!(numbers("1\n2\n").unwrap(), [1, 2]);
        assert_eq!(numbers("1\n2").unwrap(), [1, 2]);
        assert_eq!(numbers("1\n{\"i").unwrap(), [1]);
        let torn = Log::open(&path).unwrap_err().to_string();
        assert!(torn.contains("in the middle of a line"), "{torn}");
        let bad = numbers("1\nx\n3\n").unwrap_err().to_string();
        assert!(bad.contains("line 2 is not a line"), "{bad}");
        Log::open(&path).unwrap().append(&[4, 5]).unwrap();
        assert!(
            std::fs::read_to_string(&path)
                .unwrap()
                .ends_with("3\n4\n5\n")
        );
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn nothing_is_written_after_a_write_that_failed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, "1\n{\"i").unwrap();
        let mut log = Log {
            // Like a disk that is full.
            file: File::open(&path).unwrap(),
            path: path.clone(),
            given_up: false,
        };
        let failed = log.append(&[2]).unwrap_err();
        assert!(matches!(failed, Error::Log(_)), "{failed:?}");
        assert!(log.is_given_up());
        // And has room again.
        log.file = OpenOptions::new().append(true).open(&path).unwrap();
        let failed = log.append(&[3]).unwrap_err().to_string();
        assert!(failed.contains("given up"), "{failed}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n{\"i");
    }
}
