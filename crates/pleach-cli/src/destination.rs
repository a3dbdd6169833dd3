//! Files that commands write: `-o FILE`. Everything that a command writes for its user to a path goes through here.

use std::fs::{self, File, FileType, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use pleach::ErrorKind;

use crate::failure::Problem;

/// How many names are tried for the temporary file. Others are taken only by accident or by somebody who plants files.
const NAMES_MAX: u32 = 100;

/// A path that is being written.
///
/// A regular file appears under its name only when it is complete: until then its bytes are in a new temporary file beside it,
/// which is created exclusively and so never through a link that somebody planted. The new file keeps the mode and the owner
/// of the one that it replaces. A link stays, and the file that it leads to is replaced. Pipes and character devices are
/// written in place; anything else is refused.
#[derive(Debug)]
pub(crate) struct Destination {
    /// As the user wrote it, for messages.
    path: PathBuf,
    writer: Option<BufWriter<File>>,
    /// None if the bytes go to their place directly.
    replacement: Option<Replacement>,
}

/// A temporary file, and the file that it is going to be.
#[derive(Debug)]
struct Replacement {
    temporary: PathBuf,
    target: PathBuf,
}

impl Destination {
    /// Prepares to write to `path`.
    ///
    /// # Errors
    /// `Invalid` if the path cannot be written by its nature, `Unavailable` if the system refuses.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let found = match fs::metadata(path) {
            Ok(metadata) => Some(metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(path, error)),
        };
        match &found {
            Some(metadata) if metadata.is_file() => {
                let target = fs::canonicalize(path).map_err(|error| failed(path, error))?;
                Self::beside(path, target, found.as_ref())
            }
            Some(metadata) if is_stream(metadata.file_type()) => Self::in_place(path),
            Some(metadata) => Err(refused(path, kind_name(metadata.file_type()))),
            None if fs::symlink_metadata(path).is_ok() => Err(refused(path, "a link that leads nowhere")),
            None if path.file_name().is_none() => Err(refused(path, "no name of a file")),
            None => Self::beside(path, path.to_owned(), None),
        }
    }

    fn beside(path: &Path, target: PathBuf, replaced: Option<&Metadata>) -> anyhow::Result<Self> {
        let (temporary, file) =
            create_beside(&target, replaced.is_some()).map_err(|error| failed(path, error))?;
        let destination = Self {
            path: path.to_owned(),
            writer: Some(BufWriter::new(file)),
            replacement: Some(Replacement { temporary, target }),
        };
        if let (Some(replaced), Some(writer)) = (replaced, &destination.writer) {
            keep_owner_and_mode(writer.get_ref(), replaced).map_err(|error| {
                let problem = Problem::new(
                    ErrorKind::Unavailable,
                    format!("cannot keep the owner and mode of {}", path.display()),
                );
                anyhow::Error::new(error)
                    .context(problem.help("write to another file, or as the owner of this one"))
            })?;
        }
        Ok(destination)
    }

    fn in_place(path: &Path) -> anyhow::Result<Self> {
        let opened = || {
            let file = File::options().write(true).open(path)?;
            let metadata = file.metadata()?;
            Ok((file, metadata))
        };
        let (file, metadata) = opened().map_err(|error| failed(path, error))?;
        // Another file may have taken its place since it was looked at.
        if !is_stream(metadata.file_type()) {
            return Err(refused(path, "not what it was a moment ago"));
        }
        Ok(Self { path: path.to_owned(), writer: Some(BufWriter::new(file)), replacement: None })
    }

    /// Writes what is left and puts the file in its place.
    pub(crate) fn finish(mut self) -> anyhow::Result<()> {
        self.complete().map_err(|error| failed(&self.path, error))
    }

    fn complete(&mut self) -> io::Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error)?;
        let Some(Replacement { temporary, target }) = &self.replacement else { return Ok(()) };
        file.sync_all()?;
        fs::rename(temporary, target)?;
        let target = target.clone();
        self.replacement = None;
        sync_directory(&target)
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.as_mut().map_or(Ok(0), |writer| writer.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if let Some(Replacement { temporary, .. }) = &self.replacement {
            // It is incomplete and of no use, and the error that led here is what counts.
            let _ = fs::remove_file(temporary);
        }
        if let Some(writer) = self.writer.take() {
            // Without another attempt to write what is left.
            let _ = writer.into_parts();
        }
    }
}

/// Writes a whole file.
///
/// # Errors
/// As [`Destination::create`] and [`Destination::finish`].
pub(crate) fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let mut destination = Destination::create(path)?;
    destination.write_all(bytes).map_err(|error| failed(path, error))?;
    destination.finish()
}

/// Creates a file of a new name in the directory of `target`. One that replaces another is private until it has its mode.
fn create_beside(target: &Path, is_private: bool) -> io::Result<(PathBuf, File)> {
    static CREATED: AtomicU32 = AtomicU32::new(0);
    let name = target.file_name().unwrap_or_default();
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if is_private {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    for _ in 0..NAMES_MAX {
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{}.part", std::process::id(), CREATED.fetch_add(1, Ordering::Relaxed)));
        let temporary = target.with_file_name(hidden);
        match options.open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (temporary, file)),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "every name for a temporary file beside it is taken"))
}

#[cfg(unix)]
fn keep_owner_and_mode(file: &File, replaced: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (replaced.uid(), replaced.gid()) {
        fchown(file, Some(replaced.uid()), Some(replaced.gid()))?;
    }
    // After the owner, since a new owner clears some bits.
    file.set_permissions(fs::Permissions::from_mode(replaced.mode() & 0o7777))
}

#[cfg(not(unix))]
fn keep_owner_and_mode(file: &File, replaced: &Metadata) -> io::Result<()> {
    file.set_permissions(replaced.permissions())
}

/// Makes a rename outlive a power cut, where directories can be opened.
fn sync_directory(target: &Path) -> io::Result<()> {
    let directory = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    if cfg!(unix) { File::open(directory.unwrap_or(Path::new(".")))?.sync_all() } else { Ok(()) }
}

/// Whether bytes go through it rather than into it.
#[cfg(unix)]
fn is_stream(kind: FileType) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    kind.is_fifo() || kind.is_char_device()
}

#[cfg(not(unix))]
fn is_stream(_: FileType) -> bool {
    false
}

#[cfg(unix)]
fn kind_name(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_block_device() => "a block device",
        () if kind.is_socket() => "a socket",
        () => "no regular file",
    }
}

#[cfg(not(unix))]
fn kind_name(kind: FileType) -> &'static str {
    if kind.is_dir() { "a directory" } else { "no regular file" }
}

fn refused(path: &Path, what: &str) -> anyhow::Error {
    let problem = Problem::invalid(format!("cannot write to {}: it is {what}", path.display()));
    problem.help("name a file, a pipe or a character device").into()
}

fn failed(path: &Path, error: io::Error) -> anyhow::Error {
    let is_misnamed = matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    let kind = if is_misnamed { ErrorKind::Invalid } else { ErrorKind::Unavailable };
    let problem = Problem::new(kind, format!("cannot write to {}", path.display()));
    anyhow::Error::new(error).context(problem.help("choose a place that can be written and has space left"))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn a_temporary_file_is_created_and_never_opened_through_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let (victim, target) = (directory.path().join("victim"), directory.path().join("x"));
        fs::write(&victim, "mine").unwrap();
        for number in 0..NAMES_MAX / 2 {
            let planted = directory.path().join(format!(".x.{}-{number}.part", std::process::id()));
            symlink(&victim, planted).unwrap();
        }
        let (temporary, mut file) = create_beside(&target, false).unwrap();
        file.write_all(b"bytes").unwrap();
        assert!(fs::symlink_metadata(temporary).unwrap().is_file());
        assert_eq!(fs::read_to_string(victim).unwrap(), "mine");
    }

    #[test]
    fn what_was_not_finished_leaves_the_old_file_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        fs::write(&path, "old").unwrap();
        let mut destination = Destination::create(&path).unwrap();
        destination.write_all(&[b'n'; 100_000]).unwrap();
        drop(destination);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(directory.path()), ["x"]);
        write(&path, b"new").unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(directory.path()).len()), ("new", 1));
    }
}
