//! What a form carries so that no page of another site can have written it: a random word of this
//! process, another one for each caller. It stands beside the checks of Origin and Sec-Fetch-Site, for
//! browsers that send neither.

use axum::http::StatusCode;
use maud::{Markup, html};

use crate::web::auth::{Caller, same};
use crate::web::problem::Problem;
use crate::web::taken_out;

/// The words, by the caller's number.
pub struct Seals(Vec<String>);

impl std::fmt::Debug for Seals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} seals", self.0.len())
    }
}

impl Seals {
    pub fn new(callers: usize) -> anyhow::Result<Self> {
        let one = |_| {
            let mut bytes = [0; 24];
            getrandom::fill(&mut bytes).map_err(|why| anyhow::anyhow!("no randomness: {why}"))?;
            Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
        };
        (0..callers)
            .map(one)
            .collect::<anyhow::Result<_>>()
            .map(Self)
    }

    /// The hidden field of a form.
    pub fn field(&self, caller: Caller) -> Markup {
        let word = self.0.get(caller.number).map_or("", String::as_str);
        html! { input type="hidden" name="seal" value=(word); }
    }

    /// Whether a form is one of ours.
    pub fn check(&self, caller: Caller, word: Option<&str>) -> Result<(), Problem> {
        let ours = self.0.get(caller.number).zip(word);
        match ours.is_some_and(|(ours, word)| same(word.as_bytes(), ours.as_bytes()))
            || taken_out("web.seal")
        {
            true => Ok(()),
            false => Err(Problem::new(
                StatusCode::FORBIDDEN,
                "seal",
                "this form isn't from a page of this process",
                "it may have been restarted since the page was loaded: load the page again and repeat it",
            )),
        }
    }
}
