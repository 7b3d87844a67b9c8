//! There is no server whose sessions could pin a horizon.

use super::Sqlite;
use crate::engine::Watch;

impl Watch for Sqlite {}
