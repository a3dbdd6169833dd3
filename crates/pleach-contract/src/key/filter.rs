use pleach_engine::KeyFilter;

use super::problem::{Code, Problem};
use super::{Grammar, Kind, Value};

impl Grammar {
    /// The filters of the keys with these values, one for each segment that has a name; None stands for any.
    ///
    /// It is one filter, or two if the rest is open: one for keys without a rest, one for those with.
    ///
    /// # Errors
    /// Which value does not fit its segment.
    pub fn filters(&self, values: &[Option<Value<'_>>]) -> Result<Vec<KeyFilter>, Problem> {
        let expected = self.named().count();
        if values.len() != expected {
            let message = format!("there are {} values for {expected} segments", values.len());
            return Err(Problem::new(Code::ValueCount, 0, message, "give one or none for each segment"));
        }
        let (mut text, mut left, mut is_open) = (String::new(), values.iter(), false);
        for segment in self.segments() {
            let length = text.len();
            if length > 0 {
                text.push('.');
            }
            let is_rest = matches!(segment.kind(), Kind::Rest { .. });
            match segment.kind() {
                Kind::Literal(literal) => text.push_str(literal),
                _ => match left.next().and_then(Option::as_ref) {
                    Some(value) => segment.write(value, &mut text)?,
                    None if is_rest => is_open = true,
                    None => text.push('*'),
                },
            }
            if is_rest && text.len() == length + 1 {
                text.truncate(length);
            }
        }
        let below = is_open.then(|| format!("{text}.>"));
        [text].into_iter().chain(below).map(filter).collect()
    }

    /// Checks that a filter stays within the keys of this grammar: wildcards stand for segments that have a value,
    /// not for literals, which tell keyspaces apart.
    ///
    /// # Errors
    /// Which token does not fit, where, and what was expected there.
    pub fn check_filter(&self, filter: &KeyFilter) -> Result<(), Problem> {
        let (mut at, mut segments) = (0, self.segments().iter());
        for token in filter.as_str().split('.') {
            let Some(segment) = segments.next() else {
                let message = "the filter goes on after the last segment";
                return Err(Problem::new(
                    Code::KeyGoesOn,
                    at,
                    message,
                    format!("keys here have the form {self}"),
                ));
            };
            let is_literal = matches!(segment.kind(), Kind::Literal(_));
            let wild = match token {
                ">" => is_literal
                    .then_some(segment)
                    .or(segments.clone().find(|segment| !segment.kind().has_value())),
                "*" => is_literal.then_some(segment),
                _ if matches!(segment.kind(), Kind::Rest { .. }) => return Ok(()),
                _ if segment.kind().read(token).is_some() => None,
                _ => return Err(self.refused(at, token, segment)),
            };
            if let Some(literal) = wild {
                let message = format!("the wildcard `{token}` would stand for the literal {literal}");
                let help = format!("write {literal} itself: keys here have the form {self}");
                return Err(Problem::new(Code::FilterWildcard, at, message, help).of_segment(literal));
            }
            if token == ">" || matches!(segment.kind(), Kind::Rest { .. }) {
                return Ok(());
            }
            at += token.len() + 1;
        }
        match segments.next() {
            Some(segment) if !matches!(segment.kind(), Kind::Rest { .. }) => {
                let message = format!("the filter ends where {segment} must stand");
                let help = format!("end it with `>` for everything below; keys here have the form {self}");
                Err(Problem::new(Code::KeyEnds, filter.as_str().len(), message, help).of_segment(segment))
            }
            _ => Ok(()),
        }
    }
}

fn filter(text: String) -> Result<KeyFilter, Problem> {
    KeyFilter::parse(&text).map_err(|error| Problem::new(Code::KeyToken, 0, error.to_string(), error.help()))
}
