//! What goes through Redis.

mod sidekiq;

use libtest_mimic::Trial;

pub fn trials() -> Vec<Trial> {
    sidekiq::trials()
}
