//! The generator draws everything that it says it draws.

use std::collections::BTreeSet;

use crate::judge::Judge;
use crate::story::{Act, Story};

/// How many cases are looked at.
const CASES: u64 = 400;

#[test]
fn every_keyword_and_every_act_is_drawn() {
    let keywords = "$ref $defs $schema type enum const properties required additionalProperties patternProperties \
         propertyNames dependentRequired dependentSchemas unevaluatedProperties minProperties maxProperties items \
         prefixItems contains minContains maxContains uniqueItems minItems maxItems unevaluatedItems anyOf oneOf allOf \
         not if then else pattern format minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf \
         keyspaces acceptedVersions stateVersion version history ttlMs maxValueBytes state";
    let mut missing: BTreeSet<String> = keywords.split_whitespace().map(str::to_owned).collect();
    missing.extend(
        ["put", "past guard", "delete", "state", "early state", "wait", "configure", "meanwhile"]
            .map(str::to_owned),
    );
    for seed in 0..CASES {
        let story = Story::of(seed, &Judge::default());
        for document in &story.documents {
            let text = document.to_string();
            missing.retain(|word| !text.contains(&format!("\"{word}\":")));
        }
        for (index, act) in story.acts.iter().enumerate() {
            let word = match act {
                Act::Evolve { meanwhile, .. } if !meanwhile.is_empty() => "meanwhile",
                Act::Evolve { .. } => continue,
                Act::Put { past_guard: true, .. } => "past guard",
                Act::Put { .. } => "put",
                Act::Delete { .. } => "delete",
                Act::State { .. } if index == 0 => "early state",
                Act::State { .. } => "state",
                Act::Wait { .. } => "wait",
                Act::Configure { .. } => "configure",
            };
            missing.remove(word);
        }
    }
    assert!(missing.is_empty(), "never drawn: {missing:?}");
}

#[test]
fn a_seed_gives_the_same_case_every_time() {
    let judge = Judge::default();
    assert_eq!(Story::of(7, &judge), Story::of(7, &Judge::default()));
    assert_ne!(Story::of(7, &judge), Story::of(8, &judge));
}
