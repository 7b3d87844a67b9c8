//! A route's heartbeat: while one is heard, somebody looks after what was sent.

use super::Line;
use crate::error::Result;

impl Line {
    /// Renews the route's lease, and recalls what should not run any more.
    ///
    /// # Errors
    /// Whatever the store or the sink answers.
    pub async fn beat(&self) -> Result<()> {
        let recalled = self.routes.keep_route(&self.holder, self.lease).await?;
        crash_point!("drain.beaten");
        if recalled.is_empty() {
            return Ok(());
        }
        self.sink
            .recall(&recalled)
            .await
            .map_err(|why| self.down(why))
    }
}
