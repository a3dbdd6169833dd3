//! Random grammars and values, from small parts, so that shrinking finds the part at fault.

use proptest::prelude::*;

use crate::key::{Date, Grammar, Kind, Time, Value};

pub(super) fn grammar(text: &str) -> Grammar {
    Grammar::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A grammar with three lists of values for it.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) grammar: Grammar,
    pub(super) values: Vec<Value<'static>>,
    pub(super) others: Vec<Value<'static>>,
    pub(super) more: Vec<Value<'static>>,
}

/// Types whose keys sort as their values do in every place.
const ORDERED: [&str; 17] = [
    "slug",
    "slug(3)",
    "ulid",
    "uuid",
    "uint",
    "uint(2)",
    "int",
    "int(1)",
    "int(2)",
    "time",
    "time(3)",
    "time(0)",
    "date",
    "hash(2)",
    "bytes(4)",
    "open|closed|in-progress",
    "a|a/b|a=|b|ab",
];

fn types() -> impl Strategy<Value = String> {
    prop::sample::select(ORDERED.to_vec()).prop_map(str::to_owned)
}

/// A random grammar: an optional literal before each segment, perhaps a literal, a token or a rest at the end.
pub(super) fn grammars() -> impl Strategy<Value = Grammar> {
    let literal = prop::option::of("[a-z][-/_=a-z0-9]{0,3}");
    let segments = prop::collection::vec((literal, types()), 1..5);
    let end = prop::sample::select(vec![
        "",
        ".end",
        ".{rest...}",
        ".{rest...(9)}",
        ".{tail:token(4)}",
        ".end.{rest...}",
    ]);
    (segments, end).prop_map(|(segments, end)| {
        let tokens: Vec<String> = segments
            .into_iter()
            .enumerate()
            .flat_map(|(index, (literal, kind))| literal.into_iter().chain([format!("{{s{index}:{kind}}}")]))
            .collect();
        grammar(&format!("{}{end}", tokens.join(".")))
    })
}

/// A random grammar with random lists of values, which often begin alike.
pub(super) fn grammars_with_values() -> impl Strategy<Value = Given> {
    grammars().prop_flat_map(|grammar| {
        let lists = || grammar.named().map(|segment| values_of(segment.kind())).collect::<Vec<_>>();
        let lists = (lists(), lists(), lists());
        let alike = 0..=grammar.named().count();
        (Just(grammar), lists, alike).prop_map(|(grammar, (values, mut others, mut more), alike)| {
            others[..alike].clone_from_slice(&values[..alike]);
            more[..alike].clone_from_slice(&values[..alike]);
            Given { grammar, values, others, more }
        })
    })
}

/// Random values of a type, with those at the ends of its range among them.
pub(super) fn values_of(kind: &Kind) -> BoxedStrategy<Value<'static>> {
    match kind {
        Kind::Slug { bytes_max } => text(format!("[0-9A-Z_a-z]{{1,{}}}", bytes_max.min(&6))),
        Kind::Token { bytes_max } => text(format!("[-/_=0a]{{1,{}}}", bytes_max.min(&4))),
        Kind::Rest { .. } => text("([-/_=0a]{1,2}(\\.[-/_=0a]{1,2}){0,2})?".into()),
        Kind::Ulid => number().prop_map(Value::Ulid).boxed(),
        Kind::Uuid => number().prop_map(Value::Uuid).boxed(),
        Kind::Uint { digits: 20 } => {
            prop_oneof![any::<u64>(), 0..5_u64, u64::MAX - 2..=u64::MAX].prop_map(Value::Uint).boxed()
        }
        Kind::Uint { digits } => (0..10_u64.pow(u32::from(*digits))).prop_map(Value::Uint).boxed(),
        Kind::Int { digits: 19 } => {
            let ends =
                prop_oneof![any::<i64>(), -5..5_i64, Just(i64::MIN), Just(i64::MIN + 1), Just(i64::MAX)];
            ends.prop_map(Value::Int).boxed()
        }
        Kind::Int { digits } => {
            let most = 10_i64.pow(u32::from(*digits)) - 1;
            (-most..=most).prop_map(Value::Int).boxed()
        }
        Kind::Time { fraction_digits } => times(*fraction_digits),
        Kind::Date => dates().prop_map(Value::Date).boxed(),
        Kind::Hash { bytes } => bytes_of(*bytes..=*bytes),
        Kind::Bytes { bytes_max } => bytes_of(1..=*bytes_max),
        Kind::Enum(variants) => prop::sample::select(variants.to_vec())
            .prop_map(|variant| Value::Text(variant.into_string().into()))
            .boxed(),
        Kind::Literal(_) => unreachable!("a literal has no value"),
    }
}

pub(super) fn dates() -> impl Strategy<Value = Date> {
    (0..=9999_u16, 1..=12_u8, 1..=31_u8).prop_filter_map("no such day", |(y, m, d)| Date::new(y, m, d))
}

fn times(fraction_digits: u8) -> BoxedStrategy<Value<'static>> {
    let first = Date::MIN.first_second().unwrap().seconds();
    let last = Date::MAX.first_second().unwrap().seconds() + 86_399;
    let unit = 10_u32.pow(9 - u32::from(fraction_digits));
    let seconds = prop_oneof![first..=last, -2..2_i64, Just(first), Just(last)];
    let fractions = 0..10_u32.pow(u32::from(fraction_digits));
    (seconds, fractions)
        .prop_map(move |(seconds, n)| Value::Time(Time::new(seconds, n * unit).unwrap()))
        .boxed()
}

fn number() -> impl Strategy<Value = u128> {
    prop_oneof![any::<u128>(), 0..3_u128, Just(u128::MAX)]
}

fn text(pattern: String) -> BoxedStrategy<Value<'static>> {
    let texts = prop::string::string_regex(&pattern).unwrap();
    // `_kv` begins only the stores' own keys.
    texts.prop_filter("reserved", |text| !text.starts_with("_kv")).prop_map(Value::from).boxed()
}

fn bytes_of(length: std::ops::RangeInclusive<usize>) -> BoxedStrategy<Value<'static>> {
    let byte = prop_oneof![any::<u8>(), Just(0), Just(255)];
    prop::collection::vec(byte, length).prop_map(|bytes| Value::Bytes(bytes.into())).boxed()
}
