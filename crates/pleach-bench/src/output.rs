//! All printing: results to standard output, progress to standard error.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people, at a terminal")]

pub(crate) fn show(text: &str) {
    print!("{text}");
}

pub(crate) fn progress(text: &str) {
    eprintln!("{text}");
}
