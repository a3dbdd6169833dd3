use std::ops::Bound;

use pleach_engine::{Key, KeyFilter};
use proptest::prelude::*;

use super::given::{Given, grammar, grammars_with_values};
use crate::key::{AccessPath, Between, Code, Segment, Value};

/// The path that gives the first segments, and a range of the next if there is one.
fn path(given: &Given, equal: usize, range: bool) -> AccessPath {
    let names: Vec<&str> = given.grammar.named().filter_map(Segment::name).collect();
    let mut parts: Vec<String> = names[..equal].iter().map(|name| (*name).to_owned()).collect();
    parts.extend(names.get(equal).filter(|_| range).map(|name| format!("{name}..")));
    AccessPath::parse(if parts.is_empty() { "*".to_owned() } else { parts.join(",") }).unwrap()
}

fn bound(kind: u8, value: &Value<'static>) -> Bound<Value<'static>> {
    match kind {
        0 => Bound::Unbounded,
        1 => Bound::Included(value.clone()),
        _ => Bound::Excluded(value.clone()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn a_range_has_exactly_the_keys_that_were_asked_for(
        given in grammars_with_values(), place in any::<prop::sample::Index>(), start in 0..3_u8, end in 0..3_u8
    ) {
        let count = given.grammar.named().count();
        let equal = place.index(count);
        let access = given.grammar.access(&path(&given, equal, true)).unwrap();
        let (low, high) = (&given.values[equal], &given.others[equal]);
        let bounds = (bound(start, low), bound(end, high));
        let between = Between::Bounds(bounds.0.clone(), bounds.1.clone());
        let range = access.range(&given.values[..equal], &between).unwrap();
        for values in [&given.values, &given.others, &given.more] {
            let key = given.grammar.build(values).unwrap();
            let asked = values[..equal] == given.values[..equal] && std::ops::RangeBounds::contains(&bounds, &values[equal]);
            prop_assert_eq!(range.contains(key.as_bytes()), asked, "{} {:?}", key, range);
        }
    }

    #[test]
    fn equal_values_give_exactly_their_keys(given in grammars_with_values(), place in any::<prop::sample::Index>()) {
        let equal = place.index(given.grammar.named().count() + 1);
        let access = given.grammar.access(&path(&given, equal, false)).unwrap();
        let range = access.keys(&given.values[..equal]).unwrap();
        for values in [&given.values, &given.others] {
            let key = given.grammar.build(values).unwrap();
            prop_assert_eq!(range.contains(key.as_bytes()), values[..equal] == given.values[..equal], "{}", key);
        }
    }

    #[test]
    fn filters_pass_exactly_the_keys_with_their_values(given in grammars_with_values(), given_ones in any::<u8>()) {
        let wanted: Vec<Option<Value<'static>>> = given.values.iter().enumerate()
            .map(|(index, value)| (given_ones & (1 << index) != 0).then(|| value.clone())).collect();
        let filters = given.grammar.filters(&wanted).unwrap();
        for filter in &filters {
            given.grammar.check_filter(filter).unwrap();
        }
        for values in [&given.values, &given.others] {
            let key = given.grammar.build(values).unwrap();
            let asked = wanted.iter().zip(values).all(|(wanted, value)| wanted.as_ref().is_none_or(|w| w == value));
            prop_assert_eq!(filters.iter().any(|filter| filter.matches(&key)), asked, "{:?} {}", filters, key);
        }
    }

    #[test]
    fn reading_any_text_as_an_access_path_never_panics(text in "[a-z,.*_é ]{0,20}") {
        if let Ok(path) = AccessPath::parse(&text) {
            prop_assert_eq!(path.to_string(), text);
        }
    }
}

/// All keys of small values, so that neighbours are close: every range against a plain look at the values.
#[test]
fn small_ranges_have_exactly_their_keys() {
    let words = ["a", "a0", "aa", "ab", "b", "_", "A", "a_"];
    for text in
        ["x.{w:slug(2)}.{n:int(1)}", "x.{n:int(1)}.{w:slug(2)}", "x.{w:slug(2)}.{r...}", "x.{w:slug(2)}.end"]
    {
        let grammar = grammar(text);
        let has = |name: &str| grammar.named().any(|segment| segment.name() == Some(name));
        let path = AccessPath::parse(if text.contains("{n:int(1)}.{w") { "n,w.." } else { "w.." }).unwrap();
        let access = grammar.access(&path).unwrap();
        let equal: Vec<Value<'_>> = path.equal().map(|_| Value::Int(-1)).collect();
        for (low, high) in words.iter().flat_map(|low| words.iter().map(move |high| (*low, *high))) {
            for between in [
                (Bound::Included(low), Bound::Included(high)),
                (Bound::Excluded(low), Bound::Excluded(high)),
                (Bound::Included(low), Bound::Excluded(high)),
                (Bound::Excluded(low), Bound::Included(high)),
            ] {
                let bounds = Between::Bounds(between.0.map(Value::from), between.1.map(Value::from));
                let range = access.range(&equal, &bounds).unwrap();
                for word in words {
                    let values: Vec<Value<'_>> = grammar
                        .named()
                        .map(|segment| match segment.name() {
                            Some("w") => word.into(),
                            Some("n") => Value::Int(-1),
                            _ => "-/".into(),
                        })
                        .collect();
                    let key = grammar.build(&values).unwrap();
                    let asked = std::ops::RangeBounds::<&str>::contains(&between, &word);
                    assert_eq!(
                        range.contains(key.as_bytes()),
                        asked,
                        "{text} {key} {between:?} {}",
                        has("n")
                    );
                }
            }
        }
    }
}

#[test]
fn a_path_may_name_its_segments_in_any_order() {
    let grammar = grammar("t.{tenant}.case.{case:uint(2)}.{at:date}");
    let access = grammar.access(&AccessPath::parse("case,tenant").unwrap()).unwrap();
    let range = access.keys(&[Value::Uint(7), "acme".into()]).unwrap();
    assert!(range.contains(b"t.acme.case.07.20260705"));
    assert!(!range.contains(b"t.acme.case.08.20260705"));
}

#[test]
fn values_that_start_alike_are_a_range() {
    let grammar = grammar("t.{tenant}.{path...}");
    let tenants = grammar.access(&AccessPath::parse("tenant..").unwrap()).unwrap();
    let range = tenants.range(&[], &Between::StartsWith("ac")).unwrap();
    assert!(range.contains(b"t.acme") && range.contains(b"t.ac.x") && !range.contains(b"t.ad"));
    assert_eq!(tenants.range(&[], &Between::StartsWith("ac.")).unwrap_err().code, Code::ValueForm);
    let paths = grammar.access(&AccessPath::parse("tenant,path..").unwrap()).unwrap();
    let range = paths.range(&["acme".into()], &Between::StartsWith("a.")).unwrap();
    assert!(range.contains(b"t.acme.a.b") && !range.contains(b"t.acme.a-b") && !range.contains(b"t.acme"));
}

#[test]
fn a_path_that_the_order_cannot_serve_is_refused_with_one_that_can() {
    let grammar = grammar("t.{tenant}.case.{case:ulid}.event.{at:time}.{id:ulid}");
    let refused = |path: &str| grammar.access(&AccessPath::parse(path).unwrap()).unwrap_err();
    let problem = refused("tenant,at..");
    assert_eq!(
        (problem.code, problem.at, problem.segment.as_deref()),
        (Code::PathOrder, 7, Some("{case:ulid}"))
    );
    assert_eq!(problem.message, "keys are ordered by case first, which tenant,at.. does not give");
    assert_eq!(
        problem.help,
        "declare an index on tenant, at; or order the segments so: \
         t.{tenant}.event.{at:time}.case.{case:ulid}.{id:ulid}"
    );
    let problem = refused("tenant,at,case..");
    assert_eq!(problem.code, Code::PathOrder);
    assert!(problem.message.starts_with("a range of case stands before at"), "{problem}");
    assert_eq!(refused("id").code, Code::PathOrder);
    assert_eq!(refused("tenant,customer").code, Code::PathUnknown);
    assert_eq!(refused("tenant,customer").at, 7);
}

#[test]
fn a_path_on_the_rest_alone_is_served_by_an_index_only() {
    let problem = grammar("doc.{owner}.{path...}").access(&AccessPath::parse("path").unwrap()).unwrap_err();
    assert_eq!((problem.code, problem.help.as_str()), (Code::PathOrder, "declare an index on path"));
}

#[test]
fn a_range_of_tokens_is_served_only_at_the_end() {
    let path = AccessPath::parse("word..").unwrap();
    assert_eq!(grammar("x.{word:token}.end").access(&path).unwrap_err().code, Code::PathRange);
    let last = grammar("x.{word:token}");
    let range = last.access(&path).unwrap().range(&[], &Between::since("a-")).unwrap();
    assert!(range.contains(b"x.a-b") && !range.contains(b"x.a"));
    let ends = (Bound::Unbounded, Bound::Included(Value::from("a")));
    let range = last.access(&path).unwrap().range(&[], &Between::range(ends)).unwrap();
    assert!(range.contains(b"x.a") && range.contains(b"x.-") && !range.contains(b"x.a-b"));
    let ends = (Bound::Excluded(Value::from("a")), Bound::Unbounded);
    let range = last.access(&path).unwrap().range(&[], &Between::range(ends)).unwrap();
    assert!(range.contains(b"x.a-b") && range.contains(b"x.a/") && !range.contains(b"x.a"));
}

#[test]
fn a_token_in_the_middle_is_found_by_its_value_alone() {
    let grammar = grammar("x.{word:token}.{n:uint(1)}");
    let access = grammar.access(&AccessPath::parse("word,n..").unwrap()).unwrap();
    let range = access.range(&["a".into()], &Between::since(2_u64)).unwrap();
    for (key, asked) in
        [("x.a.1", false), ("x.a.2", true), ("x.a.9", true), ("x.a-b.5", false), ("x.a/b.5", false)]
    {
        assert!(grammar.has(key));
        assert_eq!(range.contains(key.as_bytes()), asked, "{key}");
    }
}

#[test]
fn a_path_without_a_range_takes_no_bounds() {
    let grammar = grammar("x.{n:uint}.{m:uint}");
    let access = grammar.access(&AccessPath::parse("n").unwrap()).unwrap();
    assert_eq!(access.range(&[Value::Uint(1)], &Between::since(1_u64)).unwrap_err().code, Code::PathRange);
    assert_eq!(access.keys(&[]).unwrap_err().code, Code::ValueCount);
    assert_eq!(access.keys(&["x".into()]).unwrap_err().code, Code::ValueType);
}

#[test]
fn malformed_paths_are_refused_where_they_are() {
    for (text, code, at) in [
        ("", Code::PathForm, 0),
        ("a,", Code::PathForm, 2),
        ("a,b c", Code::PathForm, 2),
        ("a..,b", Code::PathForm, 4),
        ("a,b,a", Code::PathTwice, 4),
        ("a,a..", Code::PathTwice, 2),
    ] {
        let problem = AccessPath::parse(text).unwrap_err();
        assert_eq!((problem.code, problem.at), (code, at), "{text}");
    }
}

#[test]
fn wildcards_stand_only_for_segments_with_a_value() {
    let grammar = grammar("t.{tenant}.case.{n:uint(2)}.{day:date}");
    let docs = super::given::grammar("doc.{owner}.{path...}");
    for good in ["t.*.case.*.*", "t.acme.case.07.*", "t.acme.case.>", "t.acme.case.07.>"] {
        grammar.check_filter(&KeyFilter::parse(good).unwrap()).unwrap();
    }
    for good in ["doc.ann", "doc.*", "doc.*.>", "doc.ann.a.*.b", "doc.>"] {
        docs.check_filter(&KeyFilter::parse(good).unwrap()).unwrap();
    }
    for (bad, code, at) in [
        (">", Code::FilterWildcard, 0),
        ("t.>", Code::FilterWildcard, 2),
        ("t.acme.*.07.*", Code::FilterWildcard, 7),
        ("t.acme.case.7.*", Code::KeySegment, 12),
        ("t.acme.task.*.*", Code::KeyLiteral, 7),
        ("t.acme.case.07", Code::KeyEnds, 14),
        ("t.acme.case.07.*.*", Code::KeyGoesOn, 17),
    ] {
        let problem = grammar.check_filter(&KeyFilter::parse(bad).unwrap()).unwrap_err();
        assert_eq!((problem.code, problem.at), (code, at), "{bad}: {problem}");
    }
    let open = docs.filters(&[Some("ann".into()), None]).unwrap();
    let key = |text: &str| Key::parse(text).unwrap();
    assert_eq!(open.len(), 2);
    assert!(open.iter().any(|filter| filter.matches(&key("doc.ann"))));
    assert!(open.iter().any(|filter| filter.matches(&key("doc.ann.a.b"))));
}
