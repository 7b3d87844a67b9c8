//! What keeps the server from forgetting: the guard finds whatever pins the MVCC horizon, names it, and
//! by policy ends it; budgets keep a workload class from pinning more than its share.
//!
//! In: what the server says of its sessions, prepared transactions, replication slots and standbys, and
//! the classes of the table `budget`. Out: a list with a judgement each, and what was done about it.
//! Nothing is stored, so a guard may crash anywhere, and any number may run side by side: an action names
//! the very transaction it is meant for, and one that has ended meanwhile is left alone.
//!
//! [`Class`] says who belongs together, [`judge`] decides, [`Guard`] looks and acts, `Budget` lets a
//! program ask for its place before it begins.

#[cfg(feature = "postgres")]
mod budget;
mod class;
mod cost;
mod judge;
mod look;
mod maintenance;
mod pin;

#[cfg(feature = "postgres")]
pub use budget::{Budget, Enter, Entered, On, Transact};
pub use class::{Class, Rule};
pub use cost::{Cost, Growth};
pub use judge::{Action, Due, Judged, Policy, Spared, judge};
pub use look::{Did, End, Guard, Seen};
pub use pin::{Pin, What};
