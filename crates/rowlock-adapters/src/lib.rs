//! Private: Rowlock beside the drivers of the application. The tests and examples are the point.

/// The guide for Rust users: each of its blocks is compiled.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
pub struct RustGuide;

/// The guide to pairs: the same.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/pairs.md")]
pub struct PairGuide;
