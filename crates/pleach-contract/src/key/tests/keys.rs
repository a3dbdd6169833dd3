use proptest::prelude::*;

use super::given::{dates, grammar, grammars, grammars_with_values};
use crate::key::{Code, Date, Time, Value};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_key_is_read_back_as_it_was_built(given in grammars_with_values()) {
        let key = given.grammar.build(&given.values).unwrap();
        prop_assert_eq!(given.grammar.read(key.as_str()).unwrap(), given.values);
        prop_assert!(key.as_str().len() <= given.grammar.key_bytes_max());
    }

    #[test]
    fn keys_sort_as_their_values_do(given in grammars_with_values()) {
        let key = given.grammar.build(&given.values).unwrap();
        let other = given.grammar.build(&given.others).unwrap();
        prop_assert_eq!(key.cmp(&other), given.values.cmp(&given.others), "{} {}", key, other);
    }

    #[test]
    fn an_explanation_has_all_of_the_key(given in grammars_with_values()) {
        let key = given.grammar.build(&given.values).unwrap();
        let explained = given.grammar.explain(key.as_str()).unwrap();
        let texts: Vec<&str> = explained.parts.iter().map(|part| part.text.as_str()).collect();
        prop_assert_eq!(texts.join("."), key.as_str());
        for part in &explained.parts {
            prop_assert!(key.as_str()[part.at..].starts_with(&part.text));
        }
    }

    /// Reading refuses every other form of a value: what it takes, building gives.
    #[test]
    fn what_is_read_is_built_again(grammar in grammars(), key in "[-/_=.a-c0-9TZ]{0,40}") {
        if let Ok(values) = grammar.read(&key) {
            let built = grammar.build(&values).unwrap();
            prop_assert_eq!(built.as_str(), key);
        }
    }

    /// The same for keys that differ from a good one in one byte.
    #[test]
    fn a_byte_changed_is_another_key_or_none(
        given in grammars_with_values(), place in any::<prop::sample::Index>(), byte in "[-/_=.0-9A-Za-z]"
    ) {
        let mut key = given.grammar.build(&given.values).unwrap().to_string();
        let at = place.index(key.len());
        key.replace_range(at..=at, &byte);
        if let Ok(values) = given.grammar.read(&key) {
            let built = given.grammar.build(&values).unwrap();
            prop_assert_eq!(built.as_str(), &key);
        }
    }

    #[test]
    fn reading_any_text_never_panics(grammar in grammars(), text in "\\PC{0,40}") {
        match (grammar.read(&text), grammar.explain(&text)) {
            (Ok(_), Ok(_)) => {}
            (Err(one), Err(two)) => {
                prop_assert_eq!(&one, &two);
                prop_assert!(text.is_char_boundary(one.at), "{}", one);
            }
            (read, explained) => panic!("{read:?} {explained:?}"),
        }
    }

    #[test]
    fn the_calendar_is_that_of_the_standard_library(date in dates(), second in 0..86_400_i64) {
        let time = Time::new(date.first_second().unwrap().seconds() + second, 7).unwrap();
        prop_assert_eq!(Time::try_from(time.to_system_time().unwrap()).unwrap(), time);
        prop_assert!(time.to_string().starts_with(&date.to_string()), "{} {}", time, date);
    }
}

#[test]
fn keys_look_as_documented() {
    let time = Time::new(1_783_246_530, 123_000_000).unwrap();
    assert_eq!(time.to_string(), "2026-07-05T10:15:30.123Z");
    for (kind, value, token) in [
        ("slug", Value::from("acme_2"), "acme_2"),
        ("token", "acme-corp".into(), "acme-corp"),
        ("ulid", Value::Ulid(u128::MAX), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"),
        ("uuid", Value::Uuid(1), "00000000-0000-0000-0000-000000000001"),
        ("uint", Value::Uint(42), "00000000000000000042"),
        ("uint(3)", Value::Uint(42), "042"),
        ("int(3)", Value::Int(42), "0042"),
        ("int(3)", Value::Int(-42), "-958"),
        ("int(3)", Value::Int(-999), "-001"),
        ("int", Value::Int(i64::MIN), "-0776627963145224192"),
        ("time", time.into(), "20260705T101530_123000000Z"),
        ("time(3)", time.into(), "20260705T101530_123Z"),
        ("date", Date::new(2026, 7, 5).unwrap().into(), "20260705"),
        ("hash(3)", Value::from(&b"\x00\xab\xff"[..]), "00abff"),
        ("bytes", Value::from(&b"\x00"[..]), "00"),
        ("bytes", Value::from(&b"\xff\xff\xff\xff"[..]), "zzzzzk"),
        ("open|closed", "open".into(), "open"),
    ] {
        let grammar = grammar(&format!("x.{{v:{kind}}}"));
        assert_eq!(grammar.build(&[value]).unwrap().as_str(), format!("x.{token}"), "{kind}");
    }
}

/// All short values of the types whose digits are our own choice.
#[test]
fn short_binary_values_and_numbers_sort_as_they_should() {
    let ascending = |kind: &str, values: Vec<Value<'static>>| {
        let grammar = grammar(&format!("x.{{v:{kind}}}.end"));
        let keys: Vec<_> = values.into_iter().map(|value| grammar.build(&[value]).unwrap()).collect();
        let wrong = keys.windows(2).find(|pair| pair[0] >= pair[1]);
        assert!(wrong.is_none(), "{kind}: {wrong:?}");
    };
    let ones = (0..=255_u8).map(|byte| vec![byte]);
    let twos = (0..=u16::MAX).map(|number| number.to_be_bytes().to_vec());
    let mut bytes: Vec<Vec<u8>> = ones.chain(twos).collect();
    bytes.sort();
    ascending("bytes(2)", bytes.into_iter().map(|bytes| Value::Bytes(bytes.into())).collect());
    ascending("hash(2)", (0..=u16::MAX).map(|n| Value::Bytes(n.to_be_bytes().to_vec().into())).collect());
    ascending("int(3)", (-999..=999).map(Value::Int).collect());
    ascending("uint(3)", (0..=999).map(Value::Uint).collect());
    ascending("ulid", (0..4096).map(Value::Ulid).collect());
    ascending("uuid", (0..4096).map(|n| Value::Uuid(n << 76)).collect());
}

/// The calendar repeats itself after 400 years of 146,097 days.
#[test]
fn every_day_of_the_calendar_follows_the_one_before() {
    let mut second = Date::MIN.first_second().unwrap().seconds();
    let mut last = String::new();
    let grammar = grammar("{day:date}");
    for _ in 0..146_097 {
        let shown = Time::new(second, 0).unwrap().to_string();
        let date = Date::new(
            shown[..4].parse().unwrap(),
            shown[5..7].parse().unwrap(),
            shown[8..10].parse().unwrap(),
        );
        let key = grammar.build(&[date.unwrap().into()]).unwrap().to_string();
        assert!(key > last, "{last} {key}");
        (last, second) = (key, second + 86_400);
    }
    assert_eq!(last, "03991231");
    assert_eq!(Time::new(second, 0).unwrap().to_string(), "0400-01-01T00:00:00Z");
    let end = Date::MAX.first_second().unwrap();
    assert_eq!(end.to_string(), "9999-12-31T00:00:00Z");
    assert!(Time::new(end.seconds() + 86_400, 0).is_none());
    assert!(
        Date::new(2026, 2, 29).is_none()
            && Date::new(1900, 2, 29).is_none()
            && Date::new(2000, 2, 29).is_some()
    );
}

#[test]
fn a_key_outside_the_grammar_is_refused_with_the_segment_at_fault() {
    let events = grammar("t.{tenant}.case.{case:ulid}.event.{at:time(0)}.{n:int(3)}");
    let case = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    for (key, code, at, segment) in [
        (String::new(), Code::KeyToken, 0, "t"),
        ("u.acme".into(), Code::KeyLiteral, 0, "t"),
        ("t..case".into(), Code::KeyToken, 2, "{tenant}"),
        ("t.ac-me.case".into(), Code::KeySegment, 2, "{tenant}"),
        ("t.acme".into(), Code::KeyEnds, 6, "case"),
        ("t.acme.".into(), Code::KeyToken, 7, "case"),
        ("t.acme.case.7".into(), Code::KeySegment, 12, "{case:ulid}"),
        (format!("t.acme.case.{}", case.to_lowercase()), Code::KeySegment, 12, "{case:ulid}"),
        (format!("t.acme.case.8{}", &case[1..]), Code::KeySegment, 12, "{case:ulid}"),
        (format!("t.acme.case.{case}.event.20260230T000000Z.0001"), Code::KeySegment, 45, "{at:time(0)}"),
        (format!("t.acme.case.{case}.event.20260228T240000Z.0001"), Code::KeySegment, 45, "{at:time(0)}"),
        (format!("t.acme.case.{case}.event.20260228T230000Z.1001"), Code::KeySegment, 62, "{n:int(3)}"),
        (format!("t.acme.case.{case}.event.20260228T230000Z.-000"), Code::KeySegment, 62, "{n:int(3)}"),
        (format!("t.acme.case.{case}.event.20260228T230000Z.0001.x"), Code::KeyGoesOn, 66, "{n:int(3)}"),
        ("_kv.x".into(), Code::KeyReserved, 0, "t"),
    ] {
        let problem = events.read(&key).unwrap_err();
        assert_eq!(
            (problem.code, problem.at, problem.segment.as_deref()),
            (code, at, Some(segment)),
            "{key}: {problem}"
        );
        assert!(!problem.help.is_empty());
    }
}

#[test]
fn a_value_that_its_segment_cannot_hold_is_refused() {
    let fine = Time::new(0, 1).unwrap();
    for (kind, value, code) in [
        ("uint(2)", Value::Uint(100), Code::ValueForm),
        ("int(2)", Value::Int(-100), Code::ValueForm),
        ("time(6)", fine.into(), Code::ValueForm),
        ("slug(3)", "abcd".into(), Code::ValueForm),
        ("slug", "".into(), Code::ValueForm),
        ("slug", "a-b".into(), Code::ValueForm),
        ("slug", "a.b".into(), Code::ValueForm),
        ("token", "a b".into(), Code::ValueForm),
        ("open|closed", "shut".into(), Code::ValueForm),
        ("hash(2)", Value::from(&b"abc"[..]), Code::ValueForm),
        ("bytes", Value::from(&b""[..]), Code::ValueForm),
        ("bytes(2)", Value::from(&b"abc"[..]), Code::ValueForm),
        ("ulid", Value::Uuid(1), Code::ValueType),
        ("int", Value::Uint(1), Code::ValueType),
    ] {
        let problem = grammar(&format!("ab.{{v:{kind}}}")).build(&[value]).unwrap_err();
        assert_eq!((problem.code, problem.at), (code, 3), "{kind}: {problem}");
    }
    let pair = grammar("{a}.{b}");
    assert_eq!(pair.build(&["a".into()]).unwrap_err().code, Code::ValueCount);
    assert_eq!(pair.build(&["a".into(), "b".into(), "c".into()]).unwrap_err().code, Code::ValueCount);
    assert_eq!(pair.build(&["_kv".into(), "b".into()]).unwrap_err().code, Code::KeyReserved);
}

#[test]
fn the_rest_may_be_nothing() {
    let docs = grammar("doc.{owner}.{path...}");
    let bare = docs.build(&["ann".into(), "".into()]).unwrap();
    let deep = docs.build(&["ann".into(), "a.b-c".into()]).unwrap();
    assert_eq!((bare.as_str(), deep.as_str()), ("doc.ann", "doc.ann.a.b-c"));
    assert_eq!(docs.read("doc.ann").unwrap(), ["ann".into(), "".into()]);
    assert_eq!(docs.read("doc.ann.").unwrap_err().code, Code::KeyToken);
    assert_eq!(docs.read("doc.ann.a..b").unwrap_err().code, Code::KeySegment);
}

#[test]
fn an_explanation_marks_the_tenant_and_tells_what_a_ulid_knows() {
    let cases = grammar("t.{tenant}.case.{case:ulid}.{n:int(3)}");
    let explained = cases.explain("t.acme.case.01ARZ3NDEKTSV4RRFFQ69G5FAV.-958").unwrap();
    assert_eq!(explained.tenant.as_deref(), Some("acme"));
    assert_eq!(
        explained.to_string(),
        "   0  t                           literal\n   \
            2  acme                        tenant: slug, the tenant\n   \
            7  case                        literal\n  \
           12  01ARZ3NDEKTSV4RRFFQ69G5FAV  case: ulid, made 2016-07-30T23:54:10.259Z\n  \
           39  -958                        n: int(3) = -42\n"
    );
    let json = serde_json::to_value(&explained).unwrap();
    assert_eq!(json["parts"][4]["value"], "-42");
    assert_eq!(json["parts"][1]["tenant"], true);
    assert_eq!(json["parts"][3]["type"], "ulid");
}
