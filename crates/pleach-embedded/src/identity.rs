use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use pleach_engine::EngineError;

use crate::disk::{Disk, io_error};
use crate::log::StoreId;
use crate::random;

/// The file that makes a directory a store.
pub(crate) const FILE_NAME: &str = "STORE";
const FORMAT_NAME: &str = "pleach.store";
const FORMAT: u64 = 1;

/// Checks, without touching anything, that `directory` is a store or may become one.
///
/// # Errors
/// `NotAStore`, or `Corrupt` if it has lost what makes it one.
pub(crate) fn check_directory(directory: &Path, create: bool) -> Result<(), EngineError> {
    let not_a_store = || EngineError::NotAStore { path: directory.into() };
    let names = match fs::read_dir(directory) {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<Result<Vec<_>, _>>()
            .map_err(io_error("list", directory))?,
        Err(error) if error.kind() == ErrorKind::NotFound && create => return Ok(()),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Err(not_a_store());
        }
        Err(error) => return Err(io_error("list", directory)(error)),
    };
    let is_store = names.iter().any(|name| name == FILE_NAME);
    if !is_store && fs::read_dir(directory.join("log")).is_ok_and(|mut log| log.next().is_some()) {
        let what = "it is missing, though there is a log beside it".into();
        return Err(EngineError::Corrupt { path: directory.join(FILE_NAME), offset: 0, what });
    }
    // A creation that was interrupted leaves these behind, and nothing in the log.
    let is_new = names.iter().all(|name| name == "LOCK" || name == "log" || name == "STORE.tmp");
    if is_store || (create && is_new) { Ok(()) } else { Err(not_a_store()) }
}

/// Reads who the store is, or makes it someone.
pub(crate) fn load_or_create(disk: &dyn Disk, directory: &Path) -> Result<StoreId, EngineError> {
    let path = directory.join(FILE_NAME);
    match disk.open(&path) {
        Ok(file) => {
            const IDENTITY_BYTES_MAX: usize = 4096;
            let mut bytes = vec![0; IDENTITY_BYTES_MAX];
            let len = file.read_at(&mut bytes, 0).map_err(io_error("read", &path))?;
            let id = parse(&bytes[..len], &path)?;
            // An interrupted creation may have left a name that a power cut would take away again.
            disk.sync_directory(directory).map_err(io_error("sync", directory))?;
            Ok(id)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => create(disk, directory, &path),
        Err(error) => Err(io_error("open", &path)(error)),
    }
}

fn create(disk: &dyn Disk, directory: &Path, path: &Path) -> Result<StoreId, EngineError> {
    let id = StoreId(random::bytes()?);
    let text = format!("{{\"format\":\"{FORMAT_NAME}\",\"version\":{FORMAT},\"id\":\"{id}\"}}\n");
    let temporary = directory.join("STORE.tmp");
    let write = || {
        match disk.remove(&temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = disk.create(&temporary)?;
        file.write_at(text.as_bytes(), 0)?;
        file.sync()?;
        disk.rename(&temporary, path)?;
        disk.sync_directory(directory)
    };
    write().map_err(io_error("create", path))?;
    Ok(id)
}

fn parse(bytes: &[u8], path: &Path) -> Result<StoreId, EngineError> {
    let damaged = || EngineError::Corrupt {
        path: path.into(),
        offset: 0,
        what: "it does not say what store this is".into(),
    };
    let json: serde_json::Value = serde_json::from_slice(bytes).map_err(|_| damaged())?;
    if json["format"] != FORMAT_NAME {
        return Err(damaged());
    }
    let version = json["version"].as_u64().ok_or_else(damaged)?;
    if version != FORMAT {
        let found = u32::try_from(version).unwrap_or(u32::MAX);
        return Err(EngineError::UnknownFormat { path: path.into(), found, supported: 1 });
    }
    let hex = json["id"].as_str().filter(|hex| hex.len() == 32 && hex.is_ascii()).ok_or_else(damaged)?;
    let mut id = [0; 16];
    for (byte, digits) in id.iter_mut().zip(hex.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(digits).map_err(|_| damaged())?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| damaged())?;
    }
    Ok(StoreId(id))
}
