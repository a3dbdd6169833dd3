use std::process::ExitCode;

use pleach::ErrorKind;

/// Every kind of error, in the order of their exit codes.
const KINDS: [ErrorKind; 10] = [
    ErrorKind::Bug,
    ErrorKind::Invalid,
    ErrorKind::NotFound,
    ErrorKind::Conflict,
    ErrorKind::Compacted,
    ErrorKind::Unsupported,
    ErrorKind::Unavailable,
    ErrorKind::Closed,
    ErrorKind::Corrupt,
    ErrorKind::Unknown,
];

/// What `pleach help exit-codes` says.
pub(crate) fn help() -> String {
    let mut text = String::from(
        "Every command ends with an exit code that says what to do next. In JSON mode,\n\
         the error on stderr names the same kind.\n\n  CODE  KIND         MEANING\n  0     ok           It was done.\n",
    );
    for kind in KINDS {
        let (code, meaning) = describe(kind);
        text.push_str(&format!("  {code:<5} {:<12} {meaning}\n", kind.as_str()));
    }
    text.push_str(
        "\nExamples:\n  pleach kv get carts user.42; [ $? -eq 3 ] && echo \"no such key\"\n  \
         pleach --json kv create locks job.7 \"$$\" 2>error.json\n",
    );
    text
}

/// The exit code of an error.
pub(crate) fn code(kind: ErrorKind) -> ExitCode {
    ExitCode::from(describe(kind).0)
}

/// The one place that gives each kind its code. Codes are API: they do not change.
const fn describe(kind: ErrorKind) -> (u8, &'static str) {
    match kind {
        ErrorKind::Bug => (1, "A bug, or something nobody foresaw. Please report it."),
        ErrorKind::Invalid => (2, "Correct the command or its input; repeating it cannot help."),
        ErrorKind::NotFound => (3, "The store, bucket, key, value or consumer is not there."),
        ErrorKind::Conflict => (4, "Something else is there than was expected. Look again and decide anew."),
        ErrorKind::Compacted => (5, "The revision asked for is no longer kept. Start over from now."),
        ErrorKind::Unsupported => (6, "This engine or build cannot do it."),
        ErrorKind::Unavailable => {
            (7, "It cannot be done now: the store is in use, its server away, or a disk full. Try later.")
        }
        ErrorKind::Closed => (8, "The store was closed or takes no more writes. Open it again."),
        ErrorKind::Corrupt => (9, "Stored bytes are damaged. Look at the report before doing anything else."),
        ErrorKind::Unknown => {
            (10, "It may have happened or not. Look at what is there before doing it again.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_count_from_one_in_the_order_of_the_help() {
        let codes: Vec<u8> = KINDS.into_iter().map(|kind| describe(kind).0).collect();
        assert_eq!(codes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    }

    #[test]
    fn the_help_names_every_kind() {
        for kind in KINDS {
            assert!(help().contains(kind.as_str()), "{kind:?}");
        }
    }
}
