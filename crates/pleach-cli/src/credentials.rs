use std::env::{self, VarError};
use std::path::{Path, PathBuf};

use pleach::nats::{Authentication, NatsOptions};

use crate::failure::Problem;

/// Names a file with credentials, as `nsc` makes it.
pub(crate) const FILE_VARIABLE: &str = "PLEACH_NATS_CREDS";
/// Holds the seed of an nkey.
pub(crate) const NKEY_VARIABLE: &str = "PLEACH_NATS_NKEY";
/// Holds a token.
pub(crate) const TOKEN_VARIABLE: &str = "PLEACH_NATS_TOKEN";
/// Holds the name of a user.
pub(crate) const USER_VARIABLE: &str = "PLEACH_NATS_USER";
/// Holds the password of that user.
pub(crate) const PASSWORD_VARIABLE: &str = "PLEACH_NATS_PASSWORD";

/// Who we are to servers: first what the command line says, then the URL, then the environment.
#[derive(Debug, Default)]
pub(crate) struct Credentials {
    /// The file of `--creds`.
    pub(crate) file: Option<PathBuf>,
}

impl Credentials {
    /// Adds them to what a URL says.
    pub(crate) fn add_to(&self, options: &mut NatsOptions) -> Result<(), Problem> {
        if let Some(file) = &self.file {
            options.authentication = Authentication::Credentials(file.clone());
        } else if matches!(options.authentication, Authentication::None) {
            options.authentication = from_environment(variable)?;
        }
        match &options.authentication {
            Authentication::Credentials(file) => check_file(file),
            _ => Ok(()),
        }
    }
}

fn from_environment(
    get: impl Fn(&'static str) -> Result<Option<String>, Problem>,
) -> Result<Authentication, Problem> {
    if let Some(file) = get(FILE_VARIABLE)? {
        return Ok(Authentication::Credentials(file.into()));
    }
    if let Some(seed) = get(NKEY_VARIABLE)? {
        return Ok(Authentication::Nkey(seed));
    }
    if let Some(token) = get(TOKEN_VARIABLE)? {
        return Ok(Authentication::Token(token));
    }
    match (get(USER_VARIABLE)?, get(PASSWORD_VARIABLE)?) {
        (None, None) => Ok(Authentication::None),
        (Some(user), Some(password)) => Ok(Authentication::User { user, password }),
        (Some(_), None) => Err(half(USER_VARIABLE, PASSWORD_VARIABLE)),
        (None, Some(_)) => Err(half(PASSWORD_VARIABLE, USER_VARIABLE)),
    }
}

fn half(given: &str, missing: &str) -> Problem {
    Problem::invalid(format!("{given} is set, but {missing} is not")).help("set both, or none")
}

/// A variable of the environment; an empty one is as good as none.
fn variable(name: &'static str) -> Result<Option<String>, Problem> {
    match env::var(name) {
        Ok(text) => Ok(Some(text).filter(|text| !text.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => {
            Err(Problem::invalid(format!("{name} is no text")).help("set it anew, or unset it"))
        }
    }
}

fn check_file(file: &Path) -> Result<(), Problem> {
    if file.is_file() {
        return Ok(());
    }
    let problem = Problem::not_found(format!("there is no file with credentials at {}", file.display()));
    Err(problem.help(format!("name the one that `nsc` made with --creds or {FILE_VARIABLE}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(set: &[(&str, &str)]) -> Result<Authentication, Problem> {
        from_environment(|name| {
            let found = set.iter().find(|(known, _)| *known == name);
            Ok(found.map(|(_, value)| (*value).to_owned()))
        })
    }

    #[test]
    fn the_environment_names_a_file_a_seed_a_token_or_a_user() {
        assert!(matches!(given(&[]), Ok(Authentication::None)));
        let found = given(&[(TOKEN_VARIABLE, "t"), (FILE_VARIABLE, "f")]);
        assert!(matches!(found, Ok(Authentication::Credentials(file)) if file == Path::new("f")));
        assert!(matches!(given(&[(NKEY_VARIABLE, "n")]), Ok(Authentication::Nkey(seed)) if seed == "n"));
        assert!(matches!(given(&[(TOKEN_VARIABLE, "t")]), Ok(Authentication::Token(token)) if token == "t"));
        let found = given(&[(USER_VARIABLE, "u"), (PASSWORD_VARIABLE, "p")]);
        assert!(
            matches!(found, Ok(Authentication::User { user, password }) if user == "u" && password == "p")
        );
    }

    #[test]
    fn half_of_a_user_is_refused_without_showing_it() {
        let error = given(&[(PASSWORD_VARIABLE, "hunter2")]).unwrap_err();
        assert!(error.to_string().contains(USER_VARIABLE) && !format!("{error:?}").contains("hunter2"));
        assert!(given(&[(USER_VARIABLE, "u")]).unwrap_err().to_string().contains(PASSWORD_VARIABLE));
    }
}
