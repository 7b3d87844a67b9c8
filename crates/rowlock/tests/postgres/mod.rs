//! What only PostgreSQL has: the ring, roles, sessions, a server that comes and goes.

pub mod home;
