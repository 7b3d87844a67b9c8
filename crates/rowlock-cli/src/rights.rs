//! Who else on this machine may read a file.

use std::fs::OpenOptions;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Whether everybody on this machine may read or write the file. What a group may do was somebody's decision.
pub fn open_to_everybody(path: &Path) -> bool {
    let mode = std::fs::metadata(path).map(|about| about.permissions().mode());
    mode.is_ok_and(|mode| mode & 0o006 != 0)
}

/// How a new file is made that only its owner may read.
pub fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    options
}
