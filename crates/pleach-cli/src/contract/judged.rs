use pleach_contract::Places;
use pleach_contract::evolution::{Effect, Verdict};
use serde_json::{Value, json};

use super::report::{Remark, Weight};
use crate::record::JSON_VERSION;

/// A change to a contract with its verdict, by the declarations alone or with what the stored data says to it.
#[derive(Debug)]
pub(super) struct Judged<'f> {
    pub(super) code: &'f str,
    pub(super) path: &'f str,
    pub(super) verdict: Verdict,
    pub(super) forward: Effect,
    pub(super) message: &'f str,
    pub(super) reason: &'f str,
    pub(super) fix: &'f str,
    /// What the stored data says to it: how many entries stand against it, and the first of them.
    pub(super) data: Vec<String>,
    /// All of it, for programs.
    pub(super) object: Value,
}

impl Judged<'_> {
    /// What there is to say about it, at its place in the new contract.
    pub(super) fn remark(self, file: &str, places: &Places) -> Remark {
        let (weight, word) = match self.verdict {
            Verdict::Safe => (Weight::Notice, "safe"),
            Verdict::Scan => (Weight::Warning, "scan"),
            Verdict::Dangerous => (Weight::Failure, "dangerous"),
        };
        let position = places.position(self.path);
        let mut object = json!({"v": JSON_VERSION, "event": "finding", "file": file});
        if let Some(object) = object.as_object_mut() {
            for part in [self.object, json!(position)] {
                object.extend(part.as_object().cloned().into_iter().flatten());
            }
        }
        let mut details = vec![("why", self.reason.to_owned())];
        details.extend(self.data.into_iter().map(|line| ("data", line)));
        details.extend(readers(self.forward).map(|text| ("old", text.to_owned())));
        if !self.fix.is_empty() {
            details.push(("fix", self.fix.to_owned()));
        }
        Remark {
            weight,
            word,
            code: self.code.to_owned(),
            position,
            path: self.path.to_owned(),
            message: self.message.to_owned(),
            details,
            object,
        }
    }
}

/// What programs of the old contract make of new values, if that is worth a word.
fn readers(forward: Effect) -> Option<&'static str> {
    match forward {
        Effect::Ok => None,
        Effect::Scan | Effect::Unknown => {
            Some("programs of the old contract may refuse what is written from now on: replace them soon")
        }
        Effect::Breaks => Some(
            "programs of the old contract refuse what is written from now on: replace those that read first",
        ),
    }
}
