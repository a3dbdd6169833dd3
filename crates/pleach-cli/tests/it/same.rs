//! The same commands give the same output and the same exit codes wherever the store is.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::given::{Given, given_nothing, given_store};
use crate::nats::store;

/// Commands on one bucket. `#N` stands for the N-th revision that was shown. Both stores are asked for what both can keep: on
/// NATS buckets are not synced by default, and take smaller values.
const SCRIPT: &str = "
kv bucket add b --history 5 --durability buffered --value-max 1KiB
kv bucket add b --history 5 --durability buffered --value-max 1KiB
kv bucket add b --history 3 --durability buffered --value-max 1KiB
kv bucket edit b --meta team=web
--json kv bucket edit b --compression lz4
kv bucket ls
kv bucket info b
--json kv bucket info b
kv get b missing
kv get nowhere k
kv get b a..b
--json kv get b missing
kv put b user.a one
kv get b user.a
kv get b user.a --raw
kv get b user.a --reads own
kv get b user.a --reads any
kv get b user.a --reads leader
kv get b user.a --reads #1
kv get b user.a --reads 99999999
--json kv get b user.a
kv create b user.a two
kv update b user.a two --revision #1
kv update b user.a three --revision #1
--json kv update b user.a three --revision #1
kv history b user.a
kv get b user.a --revision #1
kv get b user.a --revision 99999999
--json kv put b user.b x --header Trace=t
--json kv get b user.b
kv del b user.b
kv get b user.b
kv create b user.b again
kv del b user.b --revision #1
kv purge b user.c
kv revert b user.a #1
kv put b other.d last
kv ls b
kv ls b user.*
kv ls b --prefix other --values
kv ls b --reverse --limit 2
--json kv ls b --keys-only
kv watch b --from latest --idle 500ms
--json kv watch b user.a --from history --idle 500ms
kv watch b --from #1 --count 2
kv watch b --from 99999999
kv watch b --consumer mails --count 2
kv watch b --consumer mails --idle 500ms
kv watch b --consumer mails --idle 500ms
consumer reset b mails --to 99999999
consumer rm b mails
consumer info b mails
consumer ls b
kv compact b user.a --keep 1
kv history b user.a
--json kv history b user.b
kv export b -o backup.ndjson
kv import backup.ndjson
--json kv history b other.d
kv put b k v --ttl 200years
kv put b k v --ttl 0s
kv put b k --file large
kv bucket rm b
kv bucket rm b --yes
kv bucket ls
kv bucket info b
";

/// What stands before a revision in what is printed.
const BEFORE_REVISIONS: [&str; 5] =
    ["at revision ", "found revision ", "expected revision ", "of revision ", "\"revision\":"];

#[test]
fn the_same_commands_print_the_same_on_files_and_on_nats() {
    let (file, nats) = (transcript(&given_nothing()), transcript(&given_store(store())));
    let pairs = file.iter().zip(&nats).filter(|(in_file, on_nats)| in_file != on_nats);
    let differences: String =
        pairs.map(|(file, nats)| format!("--- on files:\n{file}\n--- on NATS:\n{nats}\n\n")).collect();
    assert!(differences.is_empty(), "{differences}");
    // Every kind of end has been there, or this would show little.
    for code in [0, 2, 3, 4] {
        assert!(file.iter().any(|step| step.ends_with(&format!("[exit code {code}]"))), "{code}");
    }
}

/// What each command of the script printed, with what must differ made equal.
fn transcript(given: &Given) -> Vec<String> {
    let mut revisions = Revisions::default();
    given.file("large", "x".repeat(2000));
    let lines = SCRIPT.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let command = revisions.filled_in(line);
            let run = given.run(&command.split(' ').collect::<Vec<_>>());
            let printed = format!("{}{}[exit code {}]", run.text(), run.stderr, run.code);
            revisions.learn(&printed);
            let mut shown = equal(&revisions.named(&without_times(&printed)));
            if line.contains("--from latest") {
                // No order is promised for the values that a watch begins with.
                let mut lines: Vec<&str> = shown.lines().collect();
                lines.sort_unstable();
                shown = lines.join("\n");
            }
            format!("$ pleach {line}\n{shown}")
        })
        .collect()
}

/// Takes out the rest of what must differ: in a file the creation of a bucket is a revision of the store, on NATS a bucket counts
/// for itself from its first record on. So its last revision and its floor differ, and the width of columns.
fn equal(printed: &str) -> String {
    let mut lines = Vec::new();
    for line in printed.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["last", "revision", ..] | ["watch", "from", ..] => {}
            // A row of the list of buckets ends with its last revision.
            ["b", row @ .., _] => lines.push(row.join(" ")),
            words => lines.push(words.join(" ")),
        }
    }
    // Servers keep TTLs in whole seconds.
    let text = lines.join("\n").replace("not between 1ms and", "not between 1s and");
    // In a file, what consumers acknowledge are revisions of the store too.
    ["\"last_revision\":", "\"feed_floor\":", "the newest is "]
        .iter()
        .fold(text, |text, field| without_number(&text, field))
}

/// The text without the number after `field`.
fn without_number(text: &str, field: &str) -> String {
    let Some((before, after)) = text.split_once(field) else { return text.to_owned() };
    format!("{before}{}", without_number(after.trim_start_matches(|c: char| c.is_ascii_digit()), field))
}

/// The revisions that were shown, in order: in a file they count for the whole store, on NATS for a bucket.
#[derive(Default)]
struct Revisions(BTreeSet<u64>);

impl Revisions {
    /// The command with revisions for their places.
    fn filled_in(&self, line: &str) -> String {
        let word = |word: &str| match word.strip_prefix('#').and_then(|place| place.parse::<usize>().ok()) {
            Some(place) => self.0.iter().nth(place - 1).unwrap().to_string(),
            None => word.to_owned(),
        };
        line.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }

    fn learn(&mut self, printed: &str) {
        for before in ["at revision ", "\"revision\":"] {
            for (at, _) in printed.match_indices(before) {
                let digits = printed[at + before.len()..].chars().take_while(char::is_ascii_digit);
                self.0.extend(digits.collect::<String>().parse::<u64>());
            }
        }
    }

    /// The text with places for revisions, wherever a number stands alone that is one.
    fn named(&self, text: &str) -> String {
        let mut named = String::new();
        let mut rest = text;
        while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
            let (before, number) = rest.split_at(start);
            let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
            let (number, after) = number.split_at(end);
            named.push_str(before);
            let known = |number: u64| self.0.iter().position(|known| *known == number);
            let place = number.parse().ok().and_then(known);
            // The first column of a table is set to the right.
            let line = named.rsplit('\n').next().unwrap_or_default();
            let is_first = !line.is_empty() && line.trim().is_empty();
            let is_revision = is_first || BEFORE_REVISIONS.iter().any(|words| named.ends_with(words));
            match place.filter(|_| is_revision) {
                Some(place) => write!(named, "#{}", place + 1).unwrap(),
                None => named.push_str(number),
            }
            rest = after;
        }
        named + rest
    }
}

/// The text without moments, such as 2026-01-02T03:04:05.678901Z: the two stores were not used at the same one.
fn without_times(text: &str) -> String {
    let is_part = |c: char| c.is_ascii_digit() || "-T:.Z".contains(c);
    let mut rest = text;
    let mut without = String::new();
    while let Some(start) = rest.find("20") {
        let end = start + rest[start..].find(|c| !is_part(c)).unwrap_or(rest.len() - start);
        let is_moment = rest[start..end].contains('T') && rest[start..end].ends_with('Z');
        without.push_str(&rest[..start]);
        without.push_str(if is_moment { "TIME" } else { &rest[start..end] });
        rest = &rest[end..];
    }
    without + rest
}
