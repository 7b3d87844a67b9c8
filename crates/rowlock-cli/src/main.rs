//! The `rowlock` binary.

fn main() {}
