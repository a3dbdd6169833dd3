use std::process::ExitCode;

use pleach::ErrorKind;

/// Every kind of error, in the order of their exit codes.
const KINDS: [ErrorKind; 11] = [
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
    ErrorKind::NotAllowed,
];

/// The commands whose exit code says what a new contract changes.
const JUDGES: [&str; 3] = ["diff", "plan", "apply"];

/// What a command ends with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exit {
    /// If it was done.
    pub(crate) done: u8,
    /// If it failed, whatever the kind of error; none leaves it to the kind.
    pub(crate) failed: Option<u8>,
}

impl Exit {
    /// That of a command which judges contracts: every failure is 1, so that 2 and 3 are left for what it finds.
    pub(crate) const JUDGING: Self = Self { done: 0, failed: Some(1) };
}

/// The exit code of arguments that cannot be understood.
pub(crate) fn usage() -> ExitCode {
    // Arguments need not be UTF-8.
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    let judges =
        words.windows(2).any(|pair| pair[0] == "contract" && JUDGES.iter().any(|judge| pair[1] == *judge));
    if judges { ExitCode::from(1) } else { code(ErrorKind::Invalid) }
}

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
        "\n`pleach contract diff`, `plan` and `apply` say what a new contract changes instead:\n\n  \
         0     nothing    There is nothing to do, or it was done.\n  \
         1     error      It could not be found out or done; the error names its kind.\n  \
         2     changes    There are changes, and none is dangerous.\n  \
         3     dangerous  There are dangerous changes.\n",
    );
    text.push_str("\n`pleach contract verify` ends with 9 if a stored value breaks its contract.\n");
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
        ErrorKind::NotFound => (3, "The store, bucket, key, value, consumer or file is not there."),
        ErrorKind::Conflict => (4, "Something else is there than was expected. Look again and decide anew."),
        ErrorKind::Compacted => (5, "The revision asked for is no longer kept. Start over from now."),
        ErrorKind::Unsupported => (6, "This engine or build cannot do it."),
        ErrorKind::Unavailable => {
            (7, "It cannot be done now: the store is in use, its server away, or a disk full. Try later.")
        }
        ErrorKind::Closed => (8, "The store was closed or takes no more writes. Open it again."),
        ErrorKind::Corrupt => {
            (9, "What is stored is damaged or breaks its contract. Look at it before doing anything else.")
        }
        ErrorKind::Unknown => {
            (10, "It may have happened or not. Look at what is there before doing it again.")
        }
        ErrorKind::NotAllowed => (11, "The caller may not do this. Take the way that the help names."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_count_from_one_in_the_order_of_the_help() {
        let codes: Vec<u8> = KINDS.into_iter().map(|kind| describe(kind).0).collect();
        assert_eq!(codes, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn the_help_names_every_kind() {
        for kind in KINDS {
            assert!(help().contains(kind.as_str()), "{kind:?}");
        }
    }
}
