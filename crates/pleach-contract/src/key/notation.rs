//! Reads the text of a grammar, and finds everything that is wrong with it.

use pleach_engine::{KEY_BYTES_MAX, RESERVED_PREFIX};

use super::coding::is_token_byte;
use super::grammar::{
    BYTES_DEFAULT, GRAMMAR_BYTES_MAX, Grammar, HASH_BYTES_DEFAULT, NAME_BYTES_MAX, REST_BYTES_DEFAULT,
    SEGMENTS_MAX, Segment, TEXT_BYTES_DEFAULT, VARIANTS_MAX,
};
use super::kind::{FRACTION_DIGITS_MAX, INT_DIGITS_MAX, Kind, UINT_DIGITS_MAX};
use super::problem::{Code, GrammarError, Problem, excerpt};

const TYPES: &str = "slug, token, ulid, uuid, uint, int, time, date, hash and bytes, \
                     enums such as {status:open|closed}, and the rest {path...}";

/// What people coming from elsewhere write, and what it is here.
const OTHER_WORDS: [(&str, &str); 14] = [
    ("string", "slug"),
    ("str", "slug"),
    ("text", "slug"),
    ("id", "slug"),
    ("integer", "int"),
    ("i64", "int"),
    ("u64", "uint"),
    ("number", "int"),
    ("timestamp", "time"),
    ("datetime", "time"),
    ("binary", "bytes"),
    ("hex", "hash"),
    ("sha256", "hash"),
    ("rest", "{name...}"),
];

pub(super) fn parse(text: &str) -> Result<Grammar, GrammarError> {
    let mut reader = Reader { problems: Vec::new(), segments: Vec::new() };
    if text.is_empty() {
        reader.find(Code::GrammarEmpty, 0, "a grammar needs a segment", "write one, such as order.{id:ulid}");
    } else if text.len() > GRAMMAR_BYTES_MAX {
        let message = format!("{} bytes are more than {GRAMMAR_BYTES_MAX}", text.len());
        reader.find(Code::GrammarLong, GRAMMAR_BYTES_MAX, message, "shorten names and enums");
    } else {
        reader.read(text);
    }
    reader.finish()
}

#[derive(Debug)]
struct Reader {
    problems: Vec<Problem>,
    /// With the place where each begins.
    segments: Vec<(usize, Segment)>,
}

impl Reader {
    fn find(&mut self, code: Code, at: usize, message: impl Into<String>, help: impl Into<String>) {
        self.problems.push(Problem::new(code, at, message, help));
    }

    fn read(&mut self, text: &str) {
        let pieces = pieces(text);
        if let Some((at, _)) = pieces.get(SEGMENTS_MAX) {
            let message = format!("{} segments are more than {SEGMENTS_MAX}", pieces.len());
            self.find(Code::GrammarSegments, *at, message, "join segments, or move some into the value");
        }
        for (at, piece) in pieces {
            if let Some(segment) = self.segment(at, piece) {
                self.segments.push((at, segment));
            }
        }
        self.check_names();
        self.check_rest();
        self.check_reserved();
    }

    fn finish(mut self) -> Result<Grammar, GrammarError> {
        // How long keys are can only be told of a grammar that is understood.
        let key_bytes_max = if self.problems.is_empty() { self.check_length() } else { 0 };
        if self.problems.is_empty() {
            let segments = self.segments.into_iter().map(|(_, segment)| segment).collect();
            return Ok(Grammar::of(segments, key_bytes_max));
        }
        self.problems.sort_by_key(|problem| problem.at);
        Err(GrammarError { problems: self.problems })
    }

    fn segment(&mut self, at: usize, piece: &str) -> Option<Segment> {
        if piece.is_empty() {
            let help = "put a literal or a segment such as {id:ulid} between the dots, and none at the ends";
            self.find(Code::GrammarToken, at, "nothing stands here", help);
            return None;
        }
        let opened = piece.matches('{').count();
        let closed = piece.matches('}').count();
        if opened == 0 && closed == 0 {
            return self.literal(at, piece);
        }
        let body = piece.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        match body {
            Some(body) if opened == 1 && closed == 1 => self.body(at + 1, body),
            _ if opened == closed && !has_nested(piece) => {
                let message = format!("{} is partly literal and partly in braces", excerpt(piece));
                self.find(Code::GrammarMixed, at, message, "put a dot between them");
                None
            }
            _ => {
                let place = at + piece.find(['{', '}']).unwrap_or(0);
                let message = format!("the braces of {} do not match", excerpt(piece));
                self.find(Code::GrammarBrace, place, message, "write each segment as {name} or {name:type}");
                None
            }
        }
    }

    fn literal(&mut self, at: usize, piece: &str) -> Option<Segment> {
        let wrong = piece.char_indices().find(|(_, c)| !u8::try_from(*c).is_ok_and(is_token_byte));
        let Some((place, character)) = wrong else { return Some(Segment::literal(piece)) };
        let help = match character {
            '*' | '>' => {
                "wildcards belong into filters; here write {name}, or {name...} for all that follows"
            }
            _ => "literals take letters, digits and -/_=",
        };
        let message = format!("{character:?} cannot stand in a key");
        self.find(Code::GrammarCharacter, at + place, message, help);
        None
    }

    fn body(&mut self, at: usize, body: &str) -> Option<Segment> {
        let (name, kind) = match (body.split_once(':'), body.split_once("...")) {
            (Some((name, spec)), _) if !name.contains("...") => (name, self.kind(at + name.len() + 1, spec)),
            (Some((name, _)), _) => {
                let help = "write {name...}, or {name...(512)} with the most bytes it may have";
                self.find(Code::GrammarRest, at + name.len(), "the rest has no type: it is any tokens", help);
                return None;
            }
            (None, Some((name, limit))) => (name, self.rest(at + name.len() + 3, limit)),
            (None, None) => (body, Some(Kind::Slug { bytes_max: TEXT_BYTES_DEFAULT })),
        };
        let named = self.name(at, name);
        Some(Segment::named(named?, kind?))
    }

    fn name<'t>(&mut self, at: usize, name: &'t str) -> Option<&'t str> {
        let help = "a name begins with a letter, and takes letters, digits and `_`";
        if name.is_empty() {
            self.find(Code::GrammarName, at, "the segment has no name", help);
            return None;
        }
        if name.len() > NAME_BYTES_MAX {
            let message = format!("a name of {} bytes is longer than {NAME_BYTES_MAX}", name.len());
            self.find(Code::GrammarName, at, message, "shorten it");
            return None;
        }
        let fits = |(index, c): (usize, char)| {
            c.is_ascii_alphabetic() || index > 0 && (c.is_ascii_digit() || c == '_')
        };
        let Some((place, character)) = name.char_indices().find(|place| !fits(*place)) else {
            return Some(name);
        };
        let help = match character {
            '(' => format!("write the type before its limit: {{{}:slug{}}}", &name[..place], &name[place..]),
            _ => help.into(),
        };
        self.find(Code::GrammarName, at + place, format!("{character:?} cannot stand in a name"), help);
        None
    }

    fn kind(&mut self, at: usize, spec: &str) -> Option<Kind> {
        if spec.contains('|') {
            return self.variants(at, spec);
        }
        let (word, limit) = match spec.find('(') {
            Some(open) => (&spec[..open], Some((at + open, &spec[open..]))),
            None => (spec, None),
        };
        let mut limited = |default: usize, least: usize, most: usize| match limit {
            None => Some(default),
            Some((at, limit)) => self.limit(at, limit, least, most),
        };
        let digits = |number: usize| u8::try_from(number).unwrap_or(u8::MAX);
        match word {
            "slug" => Some(Kind::Slug { bytes_max: limited(TEXT_BYTES_DEFAULT, 1, KEY_BYTES_MAX)? }),
            "token" => Some(Kind::Token { bytes_max: limited(TEXT_BYTES_DEFAULT, 1, KEY_BYTES_MAX)? }),
            "bytes" => Some(Kind::Bytes { bytes_max: limited(BYTES_DEFAULT, 1, KEY_BYTES_MAX * 3 / 4)? }),
            "hash" => Some(Kind::Hash { bytes: limited(HASH_BYTES_DEFAULT, 1, KEY_BYTES_MAX / 2)? }),
            "uint" => {
                let most = UINT_DIGITS_MAX.into();
                Some(Kind::Uint { digits: digits(limited(most, 1, most)?) })
            }
            "int" => {
                let most = INT_DIGITS_MAX.into();
                Some(Kind::Int { digits: digits(limited(most, 1, most)?) })
            }
            "time" => {
                let most = FRACTION_DIGITS_MAX.into();
                Some(Kind::Time { fraction_digits: digits(limited(most, 0, most)?) })
            }
            "ulid" | "uuid" | "date" => self.unlimited(word, limit),
            _ => {
                self.unknown_type(at, word);
                None
            }
        }
    }

    fn unlimited(&mut self, word: &str, limit: Option<(usize, &str)>) -> Option<Kind> {
        if let Some((at, _)) = limit {
            let message = format!("a {word} always has the same length");
            self.find(Code::GrammarLimit, at, message, format!("write {word} alone"));
            return None;
        }
        Some(match word {
            "ulid" => Kind::Ulid,
            "uuid" => Kind::Uuid,
            _ => Kind::Date,
        })
    }

    fn unknown_type(&mut self, at: usize, word: &str) {
        let lower = word.to_ascii_lowercase();
        let help = match OTHER_WORDS.iter().find(|(other, _)| *other == lower) {
            Some((_, ours)) => format!("here it is {ours}; there are {TYPES}"),
            None => format!("there are {TYPES}"),
        };
        self.find(Code::GrammarType, at, format!("there is no type {}", excerpt(word)), help);
    }

    fn rest(&mut self, at: usize, limit: &str) -> Option<Kind> {
        let bytes_max =
            if limit.is_empty() { Some(REST_BYTES_DEFAULT) } else { self.limit(at, limit, 1, KEY_BYTES_MAX) };
        Some(Kind::Rest { bytes_max: bytes_max? })
    }

    /// Reads `(12)`.
    fn limit(&mut self, at: usize, text: &str, least: usize, most: usize) -> Option<usize> {
        let digits = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
        let plain =
            digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.len() <= 4);
        // One number is written in one way.
        let plain = plain.filter(|digits| *digits == "0" || !digits.starts_with('0'));
        let number =
            plain.and_then(|digits| digits.parse().ok()).filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let message = format!("{} is no limit from ({least}) to ({most})", excerpt(text));
            self.find(
                Code::GrammarLimit,
                at,
                message,
                "write a number in that range in parentheses, or none",
            );
        }
        number
    }

    fn variants(&mut self, at: usize, spec: &str) -> Option<Kind> {
        let found_before = self.problems.len();
        let mut variants: Vec<&str> = Vec::new();
        let mut place = at;
        for variant in spec.split('|') {
            if variant.is_empty() || !variant.bytes().all(is_token_byte) {
                let message = format!("{} is no value of an enum", excerpt(variant));
                self.find(Code::GrammarEnum, place, message, "values take letters, digits and -/_=");
            } else if variants.contains(&variant) {
                let message = format!("the value {variant} is there twice");
                self.find(Code::GrammarEnum, place, message, "leave one of them out");
            } else if variants.len() == VARIANTS_MAX {
                let message = format!("an enum has at most {VARIANTS_MAX} values");
                self.find(
                    Code::GrammarEnum,
                    place,
                    message,
                    "use a slug, and check it in the value's schema",
                );
                break;
            } else {
                self.check_variant_order(place, variant, &variants);
                variants.push(variant);
            }
            place += variant.len() + 1;
        }
        let all_well = self.problems.len() == found_before;
        all_well.then(|| Kind::Enum(variants.into_iter().map(Into::into).collect()))
    }

    /// `open-late.…` sorts before `open.…`, but `open` before `open-late`: such values would have two orders.
    fn check_variant_order(&mut self, at: usize, variant: &str, others: &[&str]) {
        let goes_on =
            |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('-'));
        if let Some(other) = others.iter().find(|other| goes_on(variant, other) || goes_on(other, variant)) {
            let message = format!("of {variant} and {other} one goes on with `-` where the other ends");
            self.find(
                Code::GrammarEnumOrder,
                at,
                message,
                "keys would sort them in two ways: use `_` instead of `-`",
            );
        }
    }

    fn check_names(&mut self) {
        let mut seen: Vec<&str> = Vec::new();
        let mut twice = Vec::new();
        for (at, segment) in &self.segments {
            if let Some(name) = segment.name() {
                if seen.contains(&name) {
                    let message = format!("there is another segment {name}");
                    twice.push(Problem::new(
                        Code::GrammarNameTwice,
                        at + 1,
                        message,
                        "give each a name of its own",
                    ));
                }
                seen.push(name);
            }
        }
        self.problems.extend(twice);
    }

    fn check_rest(&mut self) {
        let last = self.segments.len().saturating_sub(1);
        let mut found = Vec::new();
        for (index, (at, segment)) in self.segments.iter().enumerate() {
            if !matches!(segment.kind(), Kind::Rest { .. }) {
                continue;
            }
            let before = index.checked_sub(1).map(|before| self.segments[before].1.kind());
            let (message, help) = match before {
                _ if index != last => ("the rest takes all that follows", "make it the last segment"),
                None if *at > 0 => continue,
                None => {
                    ("a rest alone would be every key", "put a literal before it, such as docs.{path...}")
                }
                Some(Kind::Token { .. }) => (
                    "a `token` before the rest cannot be told from one that goes on with `-` in a range of keys",
                    "make it a slug, or put a literal between them",
                ),
                Some(_) => continue,
            };
            found.push(Problem::new(Code::GrammarRest, *at, message, help));
        }
        self.problems.extend(found);
    }

    fn check_reserved(&mut self) {
        let Some((at, first)) = self.segments.first() else { return };
        let starts = match first.kind() {
            Kind::Literal(text) => text.starts_with(RESERVED_PREFIX),
            Kind::Enum(variants) => variants.iter().any(|variant| variant.starts_with(RESERVED_PREFIX)),
            _ => false,
        };
        if starts && *at == 0 {
            let message = format!("keys that start with `{RESERVED_PREFIX}` are the stores' own");
            self.find(Code::GrammarReserved, 0, message, "choose another beginning");
        }
    }

    fn check_length(&mut self) -> usize {
        let lengths: Vec<usize> =
            self.segments.iter().map(|(_, segment)| segment.kind().key_bytes_max()).collect();
        let dots = lengths.len().saturating_sub(1);
        let longest = lengths.iter().sum::<usize>() + dots;
        if longest > KEY_BYTES_MAX {
            let parts = self.segments.iter().zip(&lengths);
            let sum: Vec<String> =
                parts.map(|((_, segment), length)| format!("{length} for {segment}")).collect();
            let message = format!(
                "the longest key would have {longest} bytes, more than {KEY_BYTES_MAX}: {}, and {dots} for the dots",
                sum.join(" + ")
            );
            let widest = self.segments.iter().zip(&lengths).max_by_key(|(_, length)| **length);
            let at = widest.map_or(0, |((at, _), _)| *at);
            self.find(
                Code::GrammarKeyLong,
                at,
                message,
                "give the widest segment a smaller limit, such as {name:slug(32)}",
            );
        }
        longest
    }
}

/// Splits at the dots that are not in braces.
fn pieces(text: &str) -> Vec<(usize, &str)> {
    let mut pieces = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => inside = true,
            b'}' => inside = false,
            b'.' if !inside => {
                pieces.push((start, &text[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push((start, &text[start..]));
    pieces
}

/// Whether a brace opens inside another, or closes one that is not open.
fn has_nested(piece: &str) -> bool {
    let mut inside = false;
    piece.bytes().any(|byte| match byte {
        b'{' => std::mem::replace(&mut inside, true),
        b'}' => !std::mem::replace(&mut inside, false),
        _ => false,
    })
}
