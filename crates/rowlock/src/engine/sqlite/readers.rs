//! Who reads an old state of the file, as the system tells it: SQLite's readers lock a byte of the file `-shm`.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The bytes that mark how much of the log a reader needs.
const MARKS: std::ops::RangeInclusive<u64> = 123..=127;

/// Other processes that hold such a mark, and their programs. Nothing where the system doesn't tell.
pub(super) fn readers(database: &Path) -> Vec<(u32, String)> {
    let shared = beside(database, "-shm");
    let Ok(file) = std::fs::metadata(&shared) else {
        return Vec::new();
    };
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    let own = std::process::id();
    let mut found: Vec<u32> = locks
        .lines()
        .filter_map(|line| holder(line, file.ino()))
        .filter(|pid| *pid != own)
        .collect();
    found.sort_unstable();
    found.dedup();
    let program = |pid: u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        (pid, name.unwrap_or_default().trim().to_owned())
    };
    found.into_iter().map(program).collect()
}

/// A file that SQLite keeps beside the database.
pub(super) fn beside(database: &Path, ending: &str) -> std::path::PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

/// `7: POSIX  ADVISORY  READ 4711 fd:01:5678 124 124`
fn holder(line: &str, inode: u64) -> Option<u32> {
    let words: Vec<&str> = line.split_whitespace().collect();
    // Whoever waits for a lock has an arrow before the word.
    let ["POSIX", _, "READ", pid, file, first, last] = words.get(1..)? else {
        return None;
    };
    let is_it = file.rsplit(':').next()?.parse() == Ok(inode);
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let marks = first <= *MARKS.end() && last >= *MARKS.start();
    (is_it && marks).then(|| pid.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::holder;

    #[test]
    fn only_marks_of_this_file_count() {
        let line = |rest: &str| holder(&format!("7: POSIX  ADVISORY  {rest}"), 5678);
        assert_eq!(line("READ 4711 fd:01:5678 124 124"), Some(4711));
        assert_eq!(line("READ 4711 fd:01:5678 122 122"), None);
        assert_eq!(line("READ 4711 fd:01:5678 128 128"), None);
        assert_eq!(line("READ 4711 fd:01:9 124 124"), None);
        assert_eq!(line("WRITE 4711 fd:01:5678 124 124"), None);
        assert_eq!(holder("", 5678), None);
    }
}
