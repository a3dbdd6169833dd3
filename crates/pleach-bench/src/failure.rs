use std::process::ExitCode;

/// Why the program ends without a result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It was asked for something it cannot do.
    Usage(String),
    /// Something went wrong on the way.
    Broken(anyhow::Error),
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::Broken(error)
    }
}

impl Failure {
    /// What it prints, and how it exits.
    pub(crate) fn text_and_code(&self) -> (String, ExitCode) {
        match self {
            Self::Usage(text) => (format!("error: {text}"), ExitCode::from(2)),
            Self::Broken(error) => (format!("error: {error:#}"), ExitCode::FAILURE),
        }
    }
}
