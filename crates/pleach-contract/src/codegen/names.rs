use std::collections::BTreeSet;

const KEYWORDS: [&str; 53] = [
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
    "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield", "_",
];

/// Keywords that no `r#` makes a name.
const NEVER_NAMES: [&str; 5] = ["Self", "_", "crate", "self", "super"];

/// What the code uses without a path, so that no type may have the name.
pub(super) const PRELUDE: [&str; 10] =
    ["Box", "Default", "Err", "None", "Ok", "Option", "Result", "Some", "String", "Vec"];

/// The names that are taken in a scope.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    pub(super) fn with(taken: &[&str]) -> Self {
        Self { taken: taken.iter().map(|name| (*name).to_owned()).collect() }
    }

    /// A name as near to `wanted` as there is one left, that the language takes.
    pub(super) fn take(&mut self, wanted: String) -> String {
        let wanted = if NEVER_NAMES.contains(&wanted.as_str()) { format!("{wanted}_value") } else { wanted };
        let mut name = wanted.clone();
        let mut number = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{wanted}{number}");
            number += 1;
        }
        if KEYWORDS.contains(&name.as_str()) { format!("r#{name}") } else { name }
    }
}

/// `UnderReview`, for a type or a variant.
pub(super) fn pascal(text: &str) -> String {
    let words = words(text);
    let name: String = words.iter().map(|word| capitalised(word)).collect();
    match name.as_str() {
        "" => "Unnamed".into(),
        "Self" => "SelfValue".into(),
        _ if name.starts_with(|first: char| first.is_ascii_digit()) => format!("N{name}"),
        _ => name,
    }
}

/// `under_review`, for a field or a function.
pub(super) fn snake(text: &str) -> String {
    let name = words(text).join("_");
    match name.as_str() {
        "" => "unnamed".into(),
        _ if name.starts_with(|first: char| first.is_ascii_digit()) => format!("n{name}"),
        _ => name,
    }
}

/// The words of a name in any of the usual spellings, in lower case.
fn words(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut words = vec![String::new()];
    for (index, letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphanumeric() {
            words.push(String::new());
            continue;
        }
        let before = index.checked_sub(1).and_then(|before| letters.get(before));
        let after = letters.get(index + 1);
        let is_first = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                !before.is_ascii_uppercase() || after.is_some_and(|after| after.is_ascii_lowercase())
            });
        if is_first {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(letter.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
