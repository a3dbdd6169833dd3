use std::collections::{BTreeMap, BTreeSet};

use super::read::suggest;
use super::{
    Access, Contract, ContractKind, Counter, Index, Keyspace, KvResource, NAME_CHARS_MAX, Relationship,
    Retention, SCHEMAS_MAX, SchemaReference, TtlTier, derived,
};
use crate::key::{AccessPath, Grammar, Kind, Segment, overlaps};
use crate::problem::{Code, Problem, Problems};
use crate::schema::{self, Validators};
use crate::text::child;

/// Finds what the fields alone do not show: names that lead nowhere, and things that contradict each other.
pub(super) fn contract(contract: &Contract, validators: &Validators, problems: &mut Problems) {
    check_schemas(contract, validators, problems);
    let mut check = Check { contract, problems };
    for (name, store) in &contract.state {
        let path = child("/state", name);
        check.name(name, &path);
        check.reference(&store.schema, &child(&path, "schema"), &format!("state '{name}'"));
        check.versions(
            (&store.state_version, &store.accepted_versions),
            (&path, "stateVersion"),
            &format!("state '{name}'"),
        );
    }
    check.kind();
    check.aliases(contract.resources.kv.keys(), "/resources/kv");
    for (alias, resource) in &contract.resources.kv {
        let path = child("/resources/kv", alias);
        check.name(alias, &path);
        check.reference(&resource.schema, &child(&path, "schema"), &format!("resources.kv '{alias}'"));
        check.versions(
            (&resource.version, &resource.accepted_versions),
            (&path, "version"),
            &format!("resources.kv '{alias}'"),
        );
        check.tier(resource.tier, resource.ttl_ms, &path);
        Parts { check: &mut check, resource, alias, path, grammars: Vec::new() }.all();
    }
    check_used(contract, problems);
}

/// Only where everything else is right: a name that is misspelt elsewhere would make its schema look unused.
fn check_used(contract: &Contract, problems: &mut Problems) {
    if problems.has_errors() {
        return;
    }
    let used = contract.used_schemas();
    for name in contract.schemas.keys().filter(|name| !used.contains(name.as_str())) {
        let message = format!("nothing refers to the schema `{name}`");
        problems.push(Problem::new(
            Code::SchemaUnused,
            child("/schemas", name),
            message,
            "use it or remove it",
        ));
    }
}

fn check_schemas(contract: &Contract, validators: &Validators, problems: &mut Problems) {
    if contract.schemas.len() > SCHEMAS_MAX {
        let message = format!("there are {} schemas, the most is {SCHEMAS_MAX}", contract.schemas.len());
        problems.push(Problem::new(Code::FieldRange, "/schemas", message, "cut the contract in two"));
        return;
    }
    for (name, value) in &contract.schemas {
        let path = child("/schemas", name);
        let fits = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-.".contains(letter));
        if !fits || name.len() > 2 * NAME_CHARS_MAX {
            let message = format!("`{name}` cannot be the name of a schema");
            let fix = "begin with a letter, go on with letters, digits, `_`, `-` and `.`, at most 128";
            problems.push(Problem::new(Code::NameForm, path.clone(), message, fix));
        }
        let found = match validators.get(value) {
            Ok(_) => schema::warnings(value),
            Err(found) => found.list().to_vec(),
        };
        for problem in found {
            problems.push(Problem { path: format!("{path}{}", problem.path), ..problem });
        }
    }
}

struct Check<'a> {
    contract: &'a Contract,
    problems: &'a mut Problems,
}

impl Check<'_> {
    fn problem(
        &mut self,
        code: Code,
        path: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.problems.push(Problem::new(code, path, message, fix));
    }

    fn name(&mut self, name: &str, path: &str) {
        let fits = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-');
        if !fits || name.len() > NAME_CHARS_MAX {
            let message = format!("`{name}` cannot be a name");
            let fix = format!(
                "begin with a letter, go on with letters, digits, `_` and `-`, at most {NAME_CHARS_MAX}"
            );
            self.problem(Code::NameForm, path, message, fix);
        }
    }

    /// What a device stores belongs to that device, so a device has state and no buckets of its own.
    fn kind(&mut self) {
        let aliases: Vec<&str> = self.contract.resources.kv.keys().map(String::as_str).collect();
        if self.contract.kind == ContractKind::Device && !aliases.is_empty() {
            let message = format!("a contract of kind `device` has the KV resources {}", aliases.join(", "));
            let fix = "declare them in the contract of the service that owns them, or use `state`; or change `kind`";
            self.problem(Code::KindResources, "/resources/kv", message, fix);
        }
    }

    fn versions(
        &mut self,
        (current, accepted): (&str, &BTreeMap<String, SchemaReference>),
        (path, field): (&str, &str),
        owner: &str,
    ) {
        self.version(current, &child(path, field));
        let older = child(path, "acceptedVersions");
        for (version, reference) in accepted {
            let place = child(&older, version);
            self.version(version, &place);
            self.reference(reference, &place, &format!("{owner} acceptedVersions '{version}'"));
        }
        if accepted.contains_key(current) {
            let message = format!("{owner}: the current version `{current}` is listed as an older one");
            let fix = format!("remove it there, or raise `{field}`");
            self.problem(Code::VersionCurrent, child(&older, current), message, fix);
        }
    }

    fn version(&mut self, version: &str, path: &str) {
        let fits = version.chars().all(|letter| letter.is_ascii_alphanumeric() || "._-".contains(letter));
        if version.is_empty() || !fits || version.len() > NAME_CHARS_MAX {
            let message = format!("`{version}` cannot be a version");
            let fix =
                format!("take letters, digits, `.`, `_` and `-`, at most {NAME_CHARS_MAX}, such as `v2`");
            self.problem(Code::NameForm, path, message, fix);
        }
    }

    /// Buckets are named by aliases in small letters with underscores, so aliases must differ in that form.
    fn aliases<'n>(&mut self, names: impl Iterator<Item = &'n String>, path: &str) {
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for name in names {
            if let Some(other) = seen.insert(name.to_lowercase().replace('-', "_"), name) {
                let message = format!("`{name}` and `{other}` would be one bucket");
                let fix = "rename one: letters of either size, `-` and `_` do not tell names apart";
                self.problem(Code::NameClash, child(path, name), message, fix);
            }
        }
    }

    fn reference(&mut self, SchemaReference { schema }: &SchemaReference, path: &str, place: &str) {
        // An empty name is a reference that could not be read, which is reported already.
        if schema.is_empty() || self.contract.schemas.contains_key(schema) {
            return;
        }
        let message = format!("{place}: unknown schema '{schema}'");
        let known = self.contract.schemas.keys().map(String::as_str);
        let fix = suggest(schema, known, &format!("add `{schema}` to `schemas`"));
        self.problem(Code::SchemaUnknown, child(path, "schema"), message, fix);
    }

    fn tier(&mut self, tier: Option<TtlTier>, ttl_ms: u64, path: &str) {
        let Some(tier) = tier else { return };
        let (min, max) = tier.range_ms();
        if !(min..=max).contains(&ttl_ms) {
            let message = format!("`ttlMs` is {ttl_ms}, and its tier stands for {min} to {max}");
            self.problem(
                Code::TtlTier,
                child(path, "ttlMs"),
                message,
                "leave out the tier or `ttlMs`, or change one",
            );
        }
    }
}

/// The check of one resource.
struct Parts<'c, 'a> {
    check: &'c mut Check<'a>,
    resource: &'c KvResource,
    alias: &'c str,
    path: String,
    /// The keys of every member, with its name and where they are declared.
    grammars: Vec<(&'c str, String, Grammar)>,
}

impl<'c> Parts<'c, '_> {
    fn all(&mut self) {
        self.names();
        let resource = self.resource;
        for (name, keyspace) in &resource.keyspaces {
            self.keyspace(name, keyspace);
        }
        derived::check(&resource.keyspaces, &child(&self.path, "keyspaces"), self.check.problems);
        for (name, index) in &resource.indexes {
            self.index(name, index, &self.place("indexes", name));
        }
        for (name, relationship) in &resource.relationships {
            self.relationship(name, relationship, &self.place("relationships", name));
        }
        for (name, counter) in &resource.counters {
            self.counter(name, counter, &self.place("counters", name));
        }
        self.overlaps();
        for (name, group) in &resource.atomic {
            let path = child(&self.place("atomic", name), "members");
            if group.members.len() < 2 {
                let fix = "list at least two, or remove the group: one write is always whole";
                self.check.problem(Code::FieldRange, path.clone(), "a group has at least two members", fix);
            }
            let known: BTreeSet<&str> = self.members().map(|(_, name)| name.as_str()).collect();
            let mut seen = BTreeSet::new();
            for (place, member) in group.members.iter().enumerate() {
                let path = child(&path, place);
                if !seen.insert(member) {
                    let message = format!("`{member}` is in the group twice");
                    self.check.problem(Code::MemberRepeated, path, message, "remove one of the two");
                } else if !known.contains(member.as_str()) {
                    let message = format!("resources.kv '{}' has no member `{member}`", self.alias);
                    let fix = suggest(member, known.iter().copied(), "declare it");
                    self.check.problem(Code::MemberUnknown, path, message, fix);
                }
            }
        }
    }

    /// Keyspaces, indexes, relationships and counters share their names, so that a group can tell them apart.
    fn names(&mut self) {
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        for (kind, name) in self.members().collect::<Vec<_>>() {
            let path = child(&child(&self.path, kind), name);
            self.check.name(name, &path);
            if let Some(other) = seen.insert(name, kind) {
                let message = format!("`{name}` is already one of the {other}");
                self.check.problem(Code::NameClash, path, message, "give each its own name");
            }
        }
        for name in self.resource.atomic.keys() {
            let path = self.place("atomic", name);
            self.check.name(name, &path);
        }
    }

    fn members(&self) -> impl Iterator<Item = (&'static str, &'c String)> + use<'c> {
        let resource = self.resource;
        let keyspaces = resource.keyspaces.keys().map(|name| ("keyspaces", name));
        let indexes = resource.indexes.keys().map(|name| ("indexes", name));
        let relationships = resource.relationships.keys().map(|name| ("relationships", name));
        let counters = resource.counters.keys().map(|name| ("counters", name));
        keyspaces.chain(indexes).chain(relationships).chain(counters)
    }

    fn place(&self, kind: &str, name: &str) -> String {
        child(&child(&self.path, kind), name)
    }

    fn keyspace(&mut self, name: &'c str, keyspace: &Keyspace) {
        let path = self.place("keyspaces", name);
        let place = format!("resources.kv '{}' keyspace '{name}'", self.alias);
        if keyspace.schema != self.resource.schema {
            self.check.reference(&keyspace.schema, &child(&path, "schema"), &place);
        }
        let inherited = (&self.resource.version, &self.resource.accepted_versions);
        if (&keyspace.version, &keyspace.accepted_versions) != inherited {
            let versions = (keyspace.version.as_str(), &keyspace.accepted_versions);
            self.check.versions(versions, (&path, "version"), &place);
        }
        self.check.tier(keyspace.tier, keyspace.ttl_ms, &path);
        let limit = self.resource.ttl_ms;
        if limit > 0 && (keyspace.ttl_ms == 0 || keyspace.ttl_ms > limit) {
            let lives =
                if keyspace.ttl_ms == 0 { "for ever".into() } else { format!("{} ms", keyspace.ttl_ms) };
            let message = format!(
                "{place} shall live {lives}, but its resource lets nothing live longer than {limit} ms"
            );
            let fix = "raise the resource's `ttlMs`, or lower this one";
            self.check.problem(Code::TtlBucket, child(&path, "ttlMs"), message, fix);
        }
        let Some(grammar) = self.grammar(name, &keyspace.key, &child(&path, "key")) else { return };
        if let Some(retention) = &keyspace.retention {
            self.retention(retention, &grammar, &child(&path, "retention"));
        }
        for (name, access) in &keyspace.access {
            let path = child(&child(&path, "access"), name);
            self.check.name(name, &path);
            self.access(access, &grammar, &path);
        }
    }

    fn access(&mut self, access: &Access, grammar: &Grammar, path: &str) {
        let mut is_known = true;
        for (index, segment) in access.given.iter().enumerate() {
            is_known &= self.segment(segment, grammar, &child(&child(path, "given"), index));
        }
        if let Some(range) = &access.range {
            is_known &= self.segment(range, grammar, &child(path, "range"));
        }
        if !is_known {
            return;
        }
        let range = access.range.iter().map(|range| format!("{range}.."));
        let parts: Vec<String> = access.given.iter().cloned().chain(range).collect();
        let served = match parts.is_empty() {
            true => Ok(AccessPath::all()),
            false => AccessPath::parse(parts.join(",")),
        };
        if let Err(problem) = served.and_then(|path| grammar.access(&path).map(drop)) {
            self.check.problem(Code::KeyAccess, path, problem.message, problem.help);
        }
    }

    fn retention(&mut self, retention: &Retention, grammar: &Grammar, path: &str) {
        let path = child(path, "segment");
        self.segment(&retention.segment, grammar, &path);
        let found = grammar.named().find(|segment| segment.name() == Some(&retention.segment));
        if let Some(kind) =
            found.map(Segment::kind).filter(|kind| !matches!(kind, Kind::Time { .. } | Kind::Date))
        {
            let name = &retention.segment;
            let message = format!("retention goes by a time or a date, and the segment `{name}` is a {kind}");
            self.check.problem(Code::KeySegment, path, message, "name a segment of type `time` or `date`");
        }
    }

    fn index(&mut self, name: &'c str, index: &Index, path: &str) {
        let source = self.source(&index.of, &child(path, "of"));
        let values = child(path, "values");
        for (segment, pointer) in &index.values {
            self.pointer(pointer, &child(&values, segment));
        }
        let key = child(path, "key");
        let Some(grammar) = self.grammar(name, &index.key, &key) else { return };
        for segment in index.values.keys() {
            self.segment(segment, &grammar, &child(&values, segment));
        }
        let Some(source) = source else { return };
        for name in names(&grammar) {
            if !index.values.contains_key(name) && !names(&source).contains(name) {
                let message = format!(
                    "nothing says what the segment `{name}` is: the key of `{}` does not have it",
                    index.of
                );
                let fix = format!("add it to `values` with a JSON Pointer, such as `{name}: /{name}`");
                self.check.problem(Code::KeySegment, key.clone(), message, fix);
            }
        }
    }

    fn relationship(&mut self, name: &'c str, relationship: &Relationship, path: &str) {
        self.source(&relationship.from, &child(path, "from"));
        self.source(&relationship.to, &child(path, "to"));
        let forward = self.grammar(name, &relationship.forward, &child(path, "forward"));
        let reverse = self.grammar(name, &relationship.reverse, &child(path, "reverse"));
        let (Some(forward), Some(reverse)) = (forward, reverse) else { return };
        if names(&forward) != names(&reverse) {
            let message =
                "the keys there and back must have the same segments, so that each can be made of the other";
            self.check.problem(
                Code::KeySegment,
                child(path, "reverse"),
                message,
                "give both the same segments",
            );
        }
    }

    fn counter(&mut self, name: &'c str, counter: &Counter, path: &str) {
        let source = self.source(&counter.of, &child(path, "of"));
        if let Some(condition) = &counter.when {
            self.pointer(&condition.pointer, &child(&child(path, "when"), "pointer"));
        }
        let key = child(path, "key");
        let (Some(grammar), Some(source)) = (self.grammar(name, &counter.key, &key), source) else { return };
        for name in names(&grammar).difference(&names(&source)) {
            let message = format!("the key of `{}` has no segment `{name}` to count by", counter.of);
            self.check.problem(
                Code::KeySegment,
                key.clone(),
                message,
                "count by segments of the keyspace's key",
            );
        }
    }

    /// The grammar of the keyspace of this name, if it has one.
    fn source(&mut self, name: &str, path: &str) -> Option<Grammar> {
        let resource = self.resource;
        let Some(keyspace) = resource.keyspaces.get(name) else {
            let message = format!("resources.kv '{}' has no keyspace `{name}`", self.alias);
            let known = resource.keyspaces.keys().map(String::as_str);
            self.check.problem(
                Code::MemberUnknown,
                path,
                message,
                suggest(name, known, "declare it under `keyspaces`"),
            );
            return None;
        };
        // What is wrong with it is told where it is declared.
        Grammar::parse(&keyspace.key).ok()
    }

    /// The grammar of a member's keys, which is kept to be compared with those of the others.
    fn grammar(&mut self, member: &'c str, key: &str, path: &str) -> Option<Grammar> {
        match Grammar::parse(key) {
            Ok(grammar) => {
                self.grammars.push((member, path.to_owned(), grammar.clone()));
                Some(grammar)
            }
            Err(error) => {
                for problem in error.problems {
                    let message = format!("{} at byte {}", problem.message, problem.at);
                    self.check.problem(Code::KeyGrammar, path, message, problem.help);
                }
                None
            }
        }
    }

    /// All members of a resource lie in one bucket, where a key must say whose it is.
    fn overlaps(&mut self) {
        let grammars = std::mem::take(&mut self.grammars);
        for overlap in overlaps(grammars.iter().map(|(_, path, grammar)| (path.as_str(), grammar))) {
            let member =
                |path: &str| grammars.iter().find(|(_, place, _)| place == path).map(|(name, ..)| *name);
            let (first, second) = (member(&overlap.first), member(&overlap.second));
            let message = format!(
                "`{}` and `{}` could both hold the key {}",
                first.unwrap_or_default(),
                second.unwrap_or_default(),
                overlap.key
            );
            self.check.problem(Code::KeyOverlap, overlap.second.clone(), message, overlap.problem().help);
        }
    }

    /// Whether the key has a segment of this name; if not, says so.
    fn segment(&mut self, name: &str, grammar: &Grammar, path: &str) -> bool {
        let known = names(grammar);
        if known.contains(name) {
            return true;
        }
        let message = format!("the key has no segment `{name}`");
        let fix = suggest(name, known.iter().copied(), "add it to the key");
        self.check.problem(Code::KeySegment, path, message, fix);
        false
    }

    fn pointer(&mut self, pointer: &str, path: &str) {
        let escapes = pointer.split('~').skip(1).all(|after| after.starts_with(['0', '1']));
        if !(pointer.is_empty() || pointer.starts_with('/')) || !escapes {
            let message = format!("`{pointer}` is not a JSON Pointer");
            let fix =
                "begin each step with `/`, and write `~1` for `/` and `~0` for `~`, as in `/address/city`";
            self.check.problem(Code::PointerForm, path, message, fix);
        }
    }
}

/// The names of the segments of a key.
fn names(grammar: &Grammar) -> BTreeSet<&str> {
    grammar.named().filter_map(Segment::name).collect()
}
