use std::fmt::Write as _;

/// What a new contract begins with.
#[derive(Debug)]
pub(super) struct Template {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) description: String,
    /// Name and kind of each store.
    pub(super) state: Vec<(String, String)>,
    pub(super) kv: Vec<String>,
}

impl Template {
    /// The text of the contract, with comments that say what to put where.
    pub(super) fn text(&self) -> String {
        let Self { id, kind, name, description, .. } = self;
        let (name, description) = (quoted(name), quoted(description));
        let mut text = format!(
            "# A contract of Pleach: what the keys and values of this program mean.\n\
             # Check it with `pleach contract check`; docs/contracts.md explains every field.\n\
             format: pleach.contract.v1\n\
             # Who it is. The number after @v changes only when the data shall start anew.\n\
             id: {id}\n\
             # One of: service, app, device, agent.\n\
             kind: {kind}\n\
             displayName: {name}\n\
             description: {description}\n\n\
             # JSON Schemas (draft 2020-12) by name; references stay inside: \"#/$defs/Name\".\n"
        );
        if self.state.is_empty() && self.kv.is_empty() {
            text.push_str("schemas: {}\n");
        } else {
            text.push_str("schemas:\n");
        }
        for thing in self
            .state
            .iter()
            .map(|(thing, _)| thing)
            .chain(&self.kv)
            .collect::<std::collections::BTreeSet<_>>()
        {
            let _ = write!(
                text,
                "  {}:\n    type: object\n    properties:\n      title: {{type: string}}\n    required: [title]\n",
                schema_name(thing)
            );
        }
        self.add_state(&mut text);
        self.add_resources(&mut text);
        text
    }

    fn add_state(&self, text: &mut String) {
        if self.state.is_empty() {
            return;
        }
        text.push_str(
            "\n# Values that belong to a user or a device: one (value), or many under keys (map).\nstate:\n",
        );
        for (store, kind) in &self.state {
            let schema = schema_name(store);
            let _ = write!(
                text,
                "  {store}:\n    kind: {kind}\n    schema: {{schema: {schema}}}\n    \
                 # A new version when old values no longer do; list the old one in acceptedVersions.\n    stateVersion: v1\n"
            );
        }
    }

    fn add_resources(&self, text: &mut String) {
        if self.kv.is_empty() {
            return;
        }
        text.push_str("\n# Buckets of this program.\nresources:\n  kv:\n");
        for alias in &self.kv {
            let (schema, word) = (schema_name(alias), segment_name(alias));
            let _ = write!(
                text,
                "    {alias}:\n      purpose: Entries of {alias}\n      schema: {{schema: {schema}}}\n      \
                 # How many records of a key are kept, 1 to 64.\n      history: 1\n      \
                 # How long values live, in milliseconds; 0 is for ever.\n      ttlMs: 0\n      \
                 # The forms of keys. Segments are typed, and sort as their values do.\n      keyspaces:\n        \
                 all:\n          key: \"t.{{tenant}}.{word}.{{id:ulid}}\"\n          \
                 # source: the truth. derived: can be rebuilt, from the keyspaces in `from`.\n          role: source\n"
            );
        }
    }
}

/// `upload-index` as `UploadIndex`.
fn schema_name(thing: &str) -> String {
    let words = thing.split(['_', '-']).filter(|word| !word.is_empty());
    words
        .map(|word| {
            let mut letters = word.chars();
            letters
                .next()
                .map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
        })
        .collect()
}

fn segment_name(thing: &str) -> String {
    thing.to_lowercase().replace('-', "_")
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
