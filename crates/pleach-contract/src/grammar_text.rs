//! The seam to the key grammar: a document keeps the grammar of a key as its text, and asks only which segments it has.

/// A segment with a name, and the type that is written after it, if one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment<'a> {
    pub(crate) name: &'a str,
    pub(crate) kind: Option<&'a str>,
}

/// The named segments of a key grammar, in order.
pub(crate) fn segments(grammar: &str) -> Result<Vec<Segment<'_>>, String> {
    let mut segments: Vec<Segment<'_>> = Vec::new();
    let mut rest = grammar;
    while let Some((before, after)) = rest.split_once('{') {
        if before.contains('}') {
            return Err("a `}` has no `{` before it".into());
        }
        let Some((inside, next)) = after.split_once('}') else {
            return Err(format!("the segment `{{{after}` has no `}}`"));
        };
        let (name, kind) = match inside.split_once(':') {
            Some((name, kind)) => (name, Some(kind)),
            None => (inside, None),
        };
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !is_name {
            return Err(format!("`{{{inside}}}` does not begin with the name of a segment"));
        }
        if segments.iter().any(|segment| segment.name == name) {
            return Err(format!("the segment `{name}` is there twice"));
        }
        segments.push(Segment { name, kind });
        rest = next;
    }
    if rest.contains('}') {
        return Err("a `}` has no `{` before it".into());
    }
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_in_order_with_their_types() {
        let found = segments("t.{tenant}.case.{case:ulid}").unwrap();
        assert_eq!(
            found,
            [Segment { name: "tenant", kind: None }, Segment { name: "case", kind: Some("ulid") }]
        );
        assert_eq!(segments("fixed.key").unwrap(), []);
    }

    #[test]
    fn what_is_not_a_grammar_is_told() {
        for (text, says) in [
            ("t.{tenant", "has no `}`"),
            ("t.tenant}", "no `{` before it"),
            ("t.{}", "does not begin with the name"),
            ("t.{a}.{a}", "twice"),
            ("t}.{a}", "no `{` before it"),
        ] {
            assert!(segments(text).unwrap_err().contains(says), "{text}");
        }
    }
}
