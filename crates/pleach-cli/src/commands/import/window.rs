use std::collections::HashMap;
use std::io::BufRead;

use pleach::{BATCH_OPERATIONS_MAX, BucketConfig, BucketName, Key, Operation, Timestamp};

use super::line::{ImportedRecord, Line};
use super::lines::Lines;

/// The most records of a window. They are one batch, in which a store on NATS needs one place for itself.
const RECORDS_MAX: usize = BATCH_OPERATIONS_MAX - 1;

/// How many bytes of records are committed together, unless one alone has more.
const WINDOW_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Consecutive lines of the input that are committed together.
#[derive(Debug)]
pub(super) struct Window {
    /// How many lines it has, those included that ask for nothing.
    pub(super) lines: u64,
    /// Whether the end of an export is among them.
    pub(super) has_end: bool,
    pub(super) work: Work,
}

/// What a window asks for.
#[derive(Debug)]
pub(super) enum Work {
    Nothing,
    Bucket { bucket: BucketName, config: BucketConfig },
    Records { bucket: BucketName, records: Vec<ImportedRecord> },
}

impl Window {
    /// Takes lines as long as they go together, or exactly as many as `lines` says. None at the end of
    /// the input. At a bad line the window ends, and only a window that begins with it fails.
    pub(super) fn take<R: BufRead>(input: &mut Lines<R>, lines: Option<u64>) -> anyhow::Result<Option<Self>> {
        let mut window = Self { lines: 0, has_end: false, work: Work::Nothing };
        let mut bytes = 0;
        while lines != Some(window.lines) {
            let Some(text) = input.peek()? else { break };
            let line = match Line::parse(text) {
                Ok(line) => line,
                Err(error) if window.lines == 0 => return Err(error),
                Err(_) => break,
            };
            if !window.add(line, &mut bytes) {
                break;
            }
            window.lines += 1;
            input.take();
        }
        Ok((window.lines > 0).then_some(window))
    }

    /// Adds what a line asks for, if it fits.
    fn add(&mut self, line: Line, bytes: &mut usize) -> bool {
        match (&mut self.work, line) {
            (_, Line::Nothing) => true,
            (_, Line::End) => {
                self.has_end = true;
                true
            }
            (Work::Nothing, Line::Bucket { bucket, config }) => {
                self.work = Work::Bucket { bucket, config };
                true
            }
            (Work::Nothing, Line::Record { bucket, record }) => {
                *bytes += record.bytes();
                self.work = Work::Records { bucket, records: vec![record] };
                true
            }
            (Work::Records { bucket, records }, Line::Record { bucket: other, record })
                if *bucket == other
                    && records.len() < RECORDS_MAX
                    && *bytes + record.bytes() <= WINDOW_BYTES_MAX =>
            {
                *bytes += record.bytes();
                records.push(record);
                true
            }
            _ => false,
        }
    }
}

/// Splits records into batches of distinct keys: the first record of each key, then the second, and so on.
pub(super) fn rounds(records: Vec<ImportedRecord>, now: Timestamp) -> Vec<Vec<Operation>> {
    let mut seen: HashMap<Key, usize> = HashMap::new();
    let mut rounds: Vec<Vec<Operation>> = Vec::new();
    for record in records {
        let before = seen.entry(record.key.clone()).or_default();
        if *before == rounds.len() {
            rounds.push(Vec::new());
        }
        rounds[*before].push(record.operation(now));
        *before += 1;
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(0);

    fn windows(input: &str) -> Vec<(u64, Vec<Vec<String>>)> {
        let mut lines = Lines::new(input.as_bytes());
        let mut seen = Vec::new();
        while let Some(window) = Window::take(&mut lines, None).unwrap() {
            let keys =
                |round: Vec<Operation>| round.iter().map(|operation| operation.key.to_string()).collect();
            let rounds = match window.work {
                Work::Records { records, .. } => rounds(records, NOW).into_iter().map(keys).collect(),
                Work::Nothing | Work::Bucket { .. } => Vec::new(),
            };
            seen.push((window.lines, rounds));
        }
        seen
    }

    fn put(bucket: &str, key: &str) -> String {
        format!("{{\"v\":1,\"bucket\":\"{bucket}\",\"key\":\"{key}\",\"value\":\"x\"}}\n")
    }

    #[test]
    fn records_of_a_key_stay_in_order_and_no_batch_has_a_key_twice() {
        let input = ["a", "a", "b", "a", "b", "c"].map(|key| put("one", key)).concat();
        let rounds = [vec!["a", "b", "c"], vec!["a", "b"], vec!["a"]];
        assert_eq!(
            windows(&input),
            [(6, rounds.map(|round| round.into_iter().map(str::to_owned).collect()).into())]
        );
    }

    #[test]
    fn a_window_is_about_one_bucket() {
        let bucket = "{\"v\":1,\"bucket\":\"two\",\"config\":{}}\n";
        let input = [put("one", "a"), "\n".into(), bucket.into(), put("two", "a"), put("one", "b")].concat();
        let lines: Vec<u64> = windows(&input).into_iter().map(|(lines, _)| lines).collect();
        assert_eq!(lines, [2, 1, 1, 1]);
    }

    #[test]
    fn a_window_has_at_most_as_many_records_as_a_batch() {
        let input: String = (0..RECORDS_MAX + 1).map(|number| put("one", &number.to_string())).collect();
        let lines: Vec<u64> = windows(&input).into_iter().map(|(lines, _)| lines).collect();
        assert_eq!(lines, [999, 1]);
    }

    #[test]
    fn a_bad_line_ends_the_window_before_it() {
        let input = put("one", "a") + "nonsense\n" + &put("one", "b");
        let mut lines = Lines::new(input.as_bytes());
        assert_eq!(Window::take(&mut lines, None).unwrap().unwrap().lines, 1);
        let error = Window::take(&mut lines, None).unwrap_err();
        assert_eq!((lines.number(), error.to_string().as_str()), (2, "this is no JSON object"));
    }
}
