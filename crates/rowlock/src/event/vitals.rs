//! Numbers about the store as a whole, set for a scrape: they are the same from every process.

use metrics::{counter, gauge};

use super::{
    DEAD, DEAD_ALL, HORIZON, HORIZON_BEHIND, Pairs, ROTATIONS, SEGMENT, SQLITE_WAL, SWITCH_ON,
    SWITCH_REJECTED, WAL,
};
use crate::engine::Vitals;
use crate::job::Name;
use crate::switch::Switch;

/// Which switch, and what it does.
pub(super) type On = (&'static str, Name, &'static str);

impl Pairs {
    /// The switches that are on, and what they have refused.
    pub fn switches(&mut self, switches: &[Switch]) {
        let mut on = std::collections::BTreeSet::new();
        for each in switches {
            let (target, name) = (each.target.as_str(), each.name.to_string());
            counter!(SWITCH_REJECTED, "target" => target, "name" => name).absolute(each.rejected);
            on.insert((target, each.name.clone(), each.mode.as_str()));
        }
        self.on.extend(on.iter().cloned());
        for each in &self.on {
            // One that was cleared is off, not gone: an alert must end.
            let value = f64::from(u8::from(on.contains(each)));
            let (target, name, mode) = each;
            gauge!(SWITCH_ON, "target" => *target, "name" => name.to_string(), "mode" => *mode)
                .set(value);
        }
    }
}

/// What the engine tells without reading jobs.
#[expect(clippy::cast_precision_loss, reason = "gauges are floats")]
pub fn vitals(vitals: &Vitals) {
    if let Some(bytes) = vitals.log_bytes {
        gauge!(SQLITE_WAL).set(bytes as f64);
    }
    let Some(server) = &vitals.server else {
        return;
    };
    gauge!(HORIZON).set(server.horizon_age.as_secs_f64());
    gauge!(HORIZON_BEHIND).set(server.horizon_transactions as f64);
    gauge!(DEAD_ALL).set(server.database_dead_rows as f64);
    counter!(ROTATIONS).absolute(server.rotations);
    counter!(WAL).absolute(server.wal_bytes);
    for (table, rows) in &server.dead_rows {
        gauge!(DEAD, "table" => table.clone()).set(*rows as f64);
    }
    for (segment, bytes) in server.segments.iter().enumerate() {
        gauge!(SEGMENT, "segment" => segment.to_string()).set(*bytes as f64);
    }
}
