//! Makes a story that fails smaller, as long as it fails in the same way.

use serde_json::Value;

use crate::failure::Failure;
use crate::judge::Judge;
use crate::play::{How, play};
use crate::story::{Act, Story};
use crate::tally::Tally;

/// How many smaller stories are played.
const PLAYS_MAX: usize = 4000;

/// The smallest story that was found, and how it fails.
pub(crate) fn shrunk(story: Story, failure: Failure, how: How) -> (Story, Failure) {
    let mut shrink = Shrink { story, failure, how, left: PLAYS_MAX };
    loop {
        let before = shrink.story.clone();
        shrink.acts();
        shrink.documents();
        shrink.values();
        if shrink.story == before || shrink.left == 0 {
            return (shrink.story, shrink.failure);
        }
    }
}

struct Shrink {
    story: Story,
    failure: Failure,
    how: How,
    left: usize,
}

impl Shrink {
    /// Takes a story if it fails in the same way.
    fn take(&mut self, story: Story) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        match play(&story, &Judge::default(), self.how, &mut Tally::default()) {
            Err(failure) if failure.kind == self.failure.kind => {
                (self.story, self.failure) = (story, failure);
                true
            }
            _ => false,
        }
    }

    /// Leaves out acts, the last ones first.
    fn acts(&mut self) {
        for index in (0..self.story.acts.len()).rev() {
            let mut story = self.story.clone();
            story.acts.remove(index);
            if self.take(story) {
                continue;
            }
            let mut story = self.story.clone();
            if let Act::Evolve { meanwhile, insists, .. } = &mut story.acts[index]
                && (*insists || !meanwhile.is_empty())
            {
                meanwhile.clear();
                *insists = false;
                self.take(story);
            }
        }
    }

    /// Leaves out parts of contracts: of all of them at once, else of one.
    fn documents(&mut self) {
        let mut index = 0;
        while index < self.story.documents.len() {
            let mut pointers = Vec::new();
            parts(&self.story.documents[index], String::new(), &mut pointers);
            for pointer in pointers {
                let mut story = self.story.clone();
                let removed = story
                    .documents
                    .iter_mut()
                    .map(|document| usize::from(remove(document, &pointer)))
                    .sum::<usize>();
                if removed == 0 || self.take(story) {
                    continue;
                }
                let mut story = self.story.clone();
                if remove(&mut story.documents[index], &pointer) {
                    self.take(story);
                }
            }
            index += 1;
        }
    }

    /// Leaves out parts of values.
    fn values(&mut self) {
        for index in 0..self.story.acts.len() {
            let (Act::Put { value, .. } | Act::State { value, .. }) = &self.story.acts[index] else {
                continue;
            };
            let mut pointers = Vec::new();
            parts(value, String::new(), &mut pointers);
            for pointer in pointers {
                let mut story = self.story.clone();
                if let Act::Put { value, .. } | Act::State { value, .. } = &mut story.acts[index]
                    && remove(value, &pointer)
                {
                    self.take(story);
                }
            }
        }
    }
}

/// All members and items, the outer ones first.
fn parts(value: &Value, at: String, all: &mut Vec<String>) {
    let below = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(map) => {
            for (name, child) in map {
                all.push(below(name));
                parts(child, below(name), all);
            }
        }
        Value::Array(items) => {
            for (index, child) in items.iter().enumerate().rev() {
                all.push(below(&index.to_string()));
                parts(child, below(&index.to_string()), all);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn remove(value: &mut Value, pointer: &str) -> bool {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return false };
    let name = name.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(map)) => map.remove(&name).is_some(),
        Some(Value::Array(items)) => match name.parse::<usize>() {
            Ok(index) if index < items.len() => {
                items.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    }
}
