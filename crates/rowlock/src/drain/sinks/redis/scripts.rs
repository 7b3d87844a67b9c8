//! The scripts: whatever happens in Redis happens in one of these, as a whole.

use std::borrow::Cow;
use std::sync::OnceLock;

use redis::{Cmd, FromRedisValue};

use super::connect::Link;
use crate::error::Result;

/// What all of them begin with.
const BACK: &str = include_str!("scripts/back.lua");

/// A script of the folder.
pub(super) struct Script {
    name: &'static str,
    text: &'static str,
    loaded: OnceLock<(String, redis::Script)>,
}

pub(super) static PUSH: Script = Script::new("push", include_str!("scripts/push.lua"));
pub(super) static TAKE: Script = Script::new("take", include_str!("scripts/take.lua"));
pub(super) static SETTLE: Script = Script::new("settle", include_str!("scripts/settle.lua"));
pub(super) static ASK: Script = Script::new("ask", include_str!("scripts/ask.lua"));

impl Script {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            loaded: OnceLock::new(),
        }
    }

    fn loaded(&self) -> &(String, redis::Script) {
        self.loaded.get_or_init(|| {
            let whole = format!("{}{}", edited("back", BACK), edited(self.name, self.text));
            let script = redis::Script::new(&whole);
            (whole, script)
        })
    }

    /// Runs it below a prefix of keys.
    pub(super) async fn run<T: FromRedisValue>(
        &self,
        link: &Link,
        arguments: impl Fn(&mut Cmd),
    ) -> Result<T> {
        let keys = link.address().keys();
        let (text, script) = self.loaded();
        let command = |command: &mut Cmd| {
            command.arg(1).arg(&keys);
            arguments(command);
        };
        link.run(script, text, command, self.name).await
    }
}

#[cfg(feature = "test-hooks")]
pub(in crate::drain::sinks) fn edited(name: &str, text: &'static str) -> Cow<'static, str> {
    crate::hooks::statement("redis", name, text).map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(not(feature = "test-hooks"))]
pub(in crate::drain::sinks) fn edited(_: &str, text: &'static str) -> Cow<'static, str> {
    Cow::Borrowed(text)
}
