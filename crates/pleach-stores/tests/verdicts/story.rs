//! What happens to a store in one case: contracts, and what is written between them. It is data, so that it can be printed,
//! made smaller and played again.

use std::fmt;

use serde_json::Value;

use crate::document::{STORES, declared_versions, place_of};
use crate::document_edit::{evolved, first};
use crate::judge::Judge;
use crate::keys::{self, KEYS};
use crate::random::Random;
use crate::value;

/// How often a value is drawn again that the judge does not find valid.
const TRIES: usize = 4;

/// Contracts and acts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Story {
    pub(crate) documents: Vec<Value>,
    pub(crate) acts: Vec<Act>,
}

/// Something that someone does. A document is named by its place in the story.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Act {
    /// Plans a contract, and applies it if it is safe, or anyway if someone insists.
    Evolve { document: usize, insists: bool, meanwhile: Vec<Act> },
    /// Writes a value.
    Put { alias: String, key: String, version: Option<String>, value: Value, past_guard: bool },
    /// Deletes a value; its history stays.
    Delete { alias: String, key: String },
    /// Writes state as a user or a device, with a program of this document.
    State { document: usize, who: usize, store: String, key: Option<String>, value: Value },
    /// Lets time pass.
    Wait { ms: u64 },
    /// Changes the configuration of a bucket past the guard.
    Configure { alias: String, history: u8, ttl_ms: u64 },
}

impl Story {
    /// The case of a seed.
    pub(crate) fn of(seed: u64, judge: &Judge) -> Self {
        let random = &mut Random::new(seed);
        let mut story = Self::default();
        let mut last = first(random);
        story.documents.push(last.clone());
        if random.percent(15) {
            story.some_state(judge, random);
            last = evolved(&last, random);
            story.documents.push(last.clone());
        }
        let contracts = *random.pick(&[2, 3, 3, 4, 5]);
        for number in 0..contracts {
            if number > 0 {
                let from = if random.percent(15) { random.pick(&story.documents).clone() } else { last };
                last = if random.percent(8) { from } else { evolved(&from, random) };
                story.documents.push(last.clone());
            }
            let document = story.documents.len() - 1;
            let meanwhile = if number > 0 && random.percent(10) {
                story.drawn_put(document - 1, judge, random).into_iter().collect()
            } else {
                Vec::new()
            };
            story.acts.push(Act::Evolve { document, insists: random.percent(60), meanwhile });
            if number + 1 < contracts {
                story.some_acts(judge, random);
            }
        }
        story
    }

    fn some_acts(&mut self, judge: &Judge, random: &mut Random) {
        let document = self.documents.len() - 1;
        for _ in 0..random.below(7) {
            let act = match random.below(24) {
                0 => Some(Act::Wait { ms: *random.pick(&[10, 2000, 100_000]) }),
                1 => Some(Act::Configure {
                    alias: (*random.pick(&crate::document::ALIASES[..2])).to_owned(),
                    history: *random.pick(&[1, 3, 6]),
                    ttl_ms: *random.pick(&[0, 0, 60_000]),
                }),
                2 => self.drawn_put(document, judge, random).and_then(|put| match put {
                    Act::Put { alias, key, .. } => Some(Act::Delete { alias, key }),
                    _ => None,
                }),
                3..=7 => {
                    self.some_state(judge, random);
                    None
                }
                _ => self.drawn_put(document, judge, random),
            };
            self.acts.extend(act);
        }
    }

    /// A write to a resource of a document: usually of a valid value to a key that it knows.
    fn drawn_put(&self, document: usize, judge: &Judge, random: &mut Random) -> Option<Act> {
        let document = &self.documents[document];
        let resources = document["resources"]["kv"].as_object()?;
        let aliases: Vec<&String> = resources.keys().collect();
        let alias = (*random.any(&aliases)?).clone();
        let resource = &resources[&alias];
        let keyspaces: Vec<&Value> =
            resource["keyspaces"].as_object().into_iter().flatten().map(|(_, one)| one).collect();
        let key = match random.any(&keyspaces) {
            Some(keyspace) if random.percent(60) => {
                keys::sample(keyspace["key"].as_str().unwrap_or_default(), random)
            }
            _ => (*random.pick(&KEYS)).to_owned(),
        };
        let place = place_of(resource, &key);
        let versions = place.as_ref().map(|place| declared_versions(place, "version")).unwrap_or_default();
        let (version, value) = self.value(document, &versions, judge, random);
        let past_guard = random.percent(4);
        Some(Act::Put { alias, key, version, value, past_guard })
    }

    fn some_state(&mut self, judge: &Judge, random: &mut Random) {
        let mut index = self.documents.len() - 1;
        if random.percent(15) {
            index = random.below(self.documents.len());
        }
        let document = &self.documents[index];
        let stores = document["state"].as_object().cloned().unwrap_or_default();
        let store = (*random.pick(&STORES)).to_owned();
        let Some(declared) = stores.get(&store) else { return };
        let key = (declared["kind"] == "map").then(|| (*random.pick(&["a", "b/c"])).to_owned());
        let versions = declared_versions(declared, "stateVersion");
        let (_, value) = self.value(document, &versions[..1], judge, random);
        self.acts.push(Act::State { document: index, who: random.below(3), store, key, value });
    }

    fn value(
        &self,
        document: &Value,
        versions: &[(String, String)],
        judge: &Judge,
        random: &mut Random,
    ) -> (Option<String>, Value) {
        let Some((version, schema)) = random.any(versions) else {
            return (None, crate::schema::loose(random));
        };
        let schema = &document["schemas"][schema];
        let is_current = versions.first().is_some_and(|(current, _)| current == version);
        let version = if is_current && random.percent(80) { None } else { Some(version.clone()) };
        let mut drawn = value::aimed(schema, random);
        for _ in 0..TRIES {
            if judge.allows(schema, &drawn) != Some(false) {
                break;
            }
            drawn = value::aimed(schema, random);
        }
        if random.percent(25) {
            drawn = value::near(&drawn, random);
        }
        (version, drawn)
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for act in &self.acts {
            match act {
                Act::Evolve { document, insists, meanwhile } => {
                    let how = if *insists {
                        "plan, and apply whatever the plan says"
                    } else {
                        "plan, and apply if safe"
                    };
                    let shown = serde_json::to_string_pretty(&self.documents[*document]).unwrap_or_default();
                    writeln!(f, "- contract {document}: {how}\n\n```json\n{shown}\n```\n")?;
                    meanwhile.iter().try_for_each(|act| writeln!(f, "- between plan and apply: {act}"))?;
                }
                Act::State { document, .. } => {
                    writeln!(f, "- {act}, with a program of contract {document}")?;
                    let is_planned = |other: &Act| matches!(other, Act::Evolve { document: planned, .. } if planned == document);
                    if !self.acts.iter().any(is_planned) {
                        let shown =
                            serde_json::to_string_pretty(&self.documents[*document]).unwrap_or_default();
                        writeln!(f, "  which is\n\n```json\n{shown}\n```\n")?;
                    }
                }
                other => writeln!(f, "- {other}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evolve { document, .. } => write!(f, "contract {document}"),
            Self::Put { alias, key, version, value, past_guard } => {
                let version =
                    version.as_ref().map(|version| format!(" as version {version}")).unwrap_or_default();
                let past = if *past_guard { " past the guard" } else { "" };
                write!(f, "put {alias} {key} `{value}`{version}{past}")
            }
            Self::Delete { alias, key } => write!(f, "delete {alias} {key}"),
            Self::State { who, store, key, value, .. } => {
                let key = key.as_ref().map(|key| format!(" {key}")).unwrap_or_default();
                write!(f, "principal {who} puts state {store}{key} `{value}`")
            }
            Self::Wait { ms } => write!(f, "wait {ms} ms"),
            Self::Configure { alias, history, ttl_ms } => {
                write!(f, "past the guard, give the bucket of {alias} history {history} and TTL {ttl_ms} ms")
            }
        }
    }
}
