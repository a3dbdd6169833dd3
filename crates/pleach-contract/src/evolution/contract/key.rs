use crate::key::{Grammar, Kind, Segment};

/// How the keys of one grammar differ from those of another.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct KeyChange {
    /// Why every entry needs another key.
    pub(super) changed: Option<String>,
    /// What takes less than before.
    pub(super) narrowed: Vec<String>,
    /// What takes more than before.
    pub(super) widened: Vec<String>,
    /// What only has another name.
    pub(super) named: Vec<String>,
    /// Whether segments changed places: the same text then means something else.
    pub(super) is_reordered: bool,
}

impl KeyChange {
    /// Compares two grammars, segment by segment: a key has one token for each, but for the rest.
    pub(super) fn of(old: &Grammar, new: &Grammar) -> Self {
        let ((before, old_rest), (after, new_rest)) = (cut(old), cut(new));
        if before.len() != after.len() {
            let what = if before.len() < after.len() { "added" } else { "removed" };
            return Self::rekeyed(format!("a segment was {what}: {old} became {new}"));
        }
        let mut change = Self::default();
        let (old_names, new_names) = (names(old), names(new));
        for (one, two) in before.iter().zip(after) {
            let moved = one.name() != two.name()
                && (two.name().is_some_and(|name| old_names.contains(&name))
                    || one.name().is_some_and(|name| new_names.contains(&name)));
            if moved {
                let why = format!("segments were reordered: {old} became {new}");
                return Self { is_reordered: true, ..Self::rekeyed(why) };
            }
            let Some(relation) = relate(one.kind(), two.kind()) else {
                return Self::rekeyed(format!("{one} became {two}, which is written another way"));
            };
            change.add(one, two, relation);
        }
        match (old_rest, new_rest) {
            (Some(rest), None) => change.narrowed.push(format!("{rest} was removed from the end")),
            (None, Some(rest)) => {
                change.widened.push(format!("{rest} was added at the end, and may be empty"))
            }
            (Some(one), Some(two)) => {
                let relation = relate(one.kind(), two.kind()).unwrap_or_default();
                change.add(one, two, relation);
            }
            (None, None) => {}
        }
        change
    }

    /// Whether every old key is a key of the new grammar.
    pub(super) fn takes_all(&self) -> bool {
        self.changed.is_none() && self.narrowed.is_empty()
    }

    fn rekeyed(why: String) -> Self {
        Self { changed: Some(why), ..Self::default() }
    }

    fn add(&mut self, one: &Segment, two: &Segment, relation: Relation) {
        if relation.is_narrower {
            self.narrowed.push(format!("{one} became {two}, which takes less"));
        }
        if relation.is_wider {
            self.widened.push(format!("{one} became {two}, which takes more"));
        }
        if one.name() != two.name() && relation == Relation::default() {
            self.named.push(format!("{one} is called {two}"));
        }
    }
}

/// What the new type of a segment takes, next to the old one. Both can be: then it takes other tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Relation {
    is_narrower: bool,
    is_wider: bool,
}

/// None if tokens mean something else, so that keys must be written anew.
fn relate(old: &Kind, new: &Kind) -> Option<Relation> {
    let by_length = |old: usize, new: usize| Relation { is_narrower: new < old, is_wider: new > old };
    Some(match (old, new) {
        (old, new) if old == new => Relation::default(),
        (Kind::Slug { bytes_max: old }, Kind::Slug { bytes_max: new })
        | (Kind::Token { bytes_max: old }, Kind::Token { bytes_max: new })
        | (Kind::Rest { bytes_max: old }, Kind::Rest { bytes_max: new })
        | (Kind::Bytes { bytes_max: old }, Kind::Bytes { bytes_max: new }) => by_length(*old, *new),
        // A slug is a token without some characters.
        (Kind::Slug { bytes_max: old }, Kind::Token { bytes_max: new }) => {
            Relation { is_narrower: new < old, is_wider: true }
        }
        (Kind::Token { bytes_max: old }, Kind::Slug { bytes_max: new }) => {
            Relation { is_narrower: true, is_wider: new > old }
        }
        // A literal is an enum of one value.
        (Kind::Literal(value), wider @ (Kind::Enum(_) | Kind::Slug { .. } | Kind::Token { .. })) => {
            wider.read(value)?;
            Relation { is_narrower: false, is_wider: true }
        }
        (wider @ (Kind::Enum(_) | Kind::Slug { .. } | Kind::Token { .. }), Kind::Literal(value)) => {
            wider.read(value)?;
            Relation { is_narrower: true, is_wider: false }
        }
        (Kind::Enum(values), Kind::Enum(others)) => Relation {
            is_narrower: values.iter().any(|value| !others.contains(value)),
            is_wider: others.iter().any(|value| !values.contains(value)),
        },
        (Kind::Enum(values), text @ (Kind::Slug { .. } | Kind::Token { .. })) => {
            Relation { is_narrower: values.iter().any(|value| text.read(value).is_none()), is_wider: true }
        }
        (text @ (Kind::Slug { .. } | Kind::Token { .. }), Kind::Enum(values)) => {
            Relation { is_narrower: true, is_wider: values.iter().any(|value| text.read(value).is_none()) }
        }
        _ => return None,
    })
}

/// The segments but the rest, and the rest.
fn cut(grammar: &Grammar) -> (&[Segment], Option<&Segment>) {
    match grammar.segments().split_last() {
        Some((last, before)) if matches!(last.kind(), Kind::Rest { .. }) => (before, Some(last)),
        _ => (grammar.segments(), None),
    }
}

fn names(grammar: &Grammar) -> Vec<&str> {
    grammar.named().filter_map(Segment::name).collect()
}
