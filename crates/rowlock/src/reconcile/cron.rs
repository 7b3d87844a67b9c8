//! Crons.
use crate::engine::{Lead, Schedule};
use crate::error::Result;
use crate::job::Token;
use jiff::Timestamp;

pub(super) async fn fire_due(
    _schedule: &dyn Schedule,
    _lead: &dyn Lead,
    _token: Token,
) -> Result<Option<Timestamp>> {
    Ok(None)
}
