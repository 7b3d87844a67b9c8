//! A folder of the run's own, gone at its end.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

/// Where every file of a run is.
#[derive(Debug)]
pub struct Place(TempDir);

impl Place {
    /// A new folder below `folder`, so that its disk is the one that is measured.
    ///
    /// # Errors
    /// When it can't be made.
    pub fn below(folder: &Path) -> Result<Self> {
        tempfile::Builder::new()
            .prefix("rowlock_bench_")
            .tempdir_in(folder)
            .map(Self)
            .with_context(|| {
                format!(
                    "can't make a folder in {}: choose another with --dir",
                    folder.display()
                )
            })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A fresh copy of a file that nobody has open, on the disk before anything is measured.
    pub(crate) fn copy(&self, of: &Path, name: &str) -> Result<PathBuf> {
        let copy = self.file(name);
        self.remove(&copy);
        let copied = std::fs::copy(of, &copy).and_then(|_| std::fs::File::open(&copy)?.sync_all());
        copied.with_context(|| format!("can't copy {}", of.display()))?;
        Ok(copy)
    }

    /// Removes a database and what belongs to it.
    pub(crate) fn remove(&self, file: &Path) {
        for ending in ["", "-wal", "-shm"] {
            let mut name = file.as_os_str().to_owned();
            name.push(ending);
            // What isn't there need not go.
            let _ = std::fs::remove_file(name);
        }
    }
}
