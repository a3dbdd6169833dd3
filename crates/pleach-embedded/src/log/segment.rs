use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::{BufMut, Bytes, BytesMut};
use pleach_engine::{EngineError, Revision};

use super::frame::{Frame, FrameHeader};
use super::writer::WriteError;
use super::{Binding, StoreId};
use crate::disk::{Disk, DiskFile, io_error};

/// The first bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) store: StoreId,
    /// No record in the segment is older; also its name.
    pub(crate) first: Revision,
    /// A random number that ties every checksum to this segment.
    pub(crate) salt: u64,
    /// The segment before, and how long it is, so that a missing or shortened one is noticed.
    pub(crate) previous: Option<(Revision, u64)>,
}

impl SegmentHeader {
    /// How many bytes a header takes; the first frame follows.
    pub(crate) const BYTES: u64 = 64;
    const MAGIC: [u8; 8] = *b"PLEACHLG";
    const FORMAT: u16 = 1;

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64);
        bytes.put_slice(&Self::MAGIC);
        bytes.put_u16_le(Self::FORMAT);
        bytes.put_u16_le(0);
        bytes.put_u32_le(0);
        bytes.put_slice(&self.store.0);
        bytes.put_u64_le(self.first.get());
        bytes.put_u64_le(self.salt);
        let (previous, len) = self.previous.unwrap_or_default();
        bytes.put_u64_le(previous.get());
        bytes.put_u64_le(len);
        let checksum = crc32fast::hash(&bytes[16..]);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads a header, which may be anything.
    pub(crate) fn decode(bytes: &[u8], path: &Path) -> Result<Self, EngineError> {
        let damaged = |what: &str| EngineError::Corrupt { path: path.into(), offset: 0, what: what.into() };
        let array = |at: usize| -> [u8; 8] {
            let mut array = [0; 8];
            array.copy_from_slice(&bytes[at..at + 8]);
            array
        };
        if bytes.len() < 64 {
            return Err(damaged("the segment is shorter than its header"));
        }
        if bytes[..8] != Self::MAGIC {
            return Err(damaged("the segment does not begin as one"));
        }
        let format = u16::from_le_bytes([bytes[8], bytes[9]]);
        if format != Self::FORMAT {
            let (found, supported) = (format.into(), Self::FORMAT.into());
            return Err(EngineError::UnknownFormat { path: path.into(), found, supported });
        }
        if bytes[12..16] != crc32fast::hash(&bytes[16..64]).to_le_bytes() {
            return Err(damaged("the checksum of the segment's header does not match"));
        }
        let mut store = [0; 16];
        store.copy_from_slice(&bytes[16..32]);
        let previous = Revision::new(u64::from_le_bytes(array(48)));
        let previous_len = u64::from_le_bytes(array(56));
        Ok(Self {
            store: StoreId(store),
            first: Revision::new(u64::from_le_bytes(array(32))),
            salt: u64::from_le_bytes(array(40)),
            previous: (previous != Revision::ZERO).then_some((previous, previous_len)),
        })
    }
}

/// One file of the log.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) header: SegmentHeader,
    pub(crate) path: PathBuf,
    pub(crate) file: Box<dyn DiskFile>,
    /// How far it has been written with whole frames.
    len: AtomicU64,
    /// Whether a sync has failed.
    sync_failed: Mutex<bool>,
}

impl Segment {
    /// The name of the segment that begins at `first`; names sort as revisions do.
    pub(crate) fn file_name(first: Revision) -> String {
        format!("{:020}.log", first.get())
    }

    /// What a file name says about the segment in it, if it is the name of one.
    pub(crate) fn first_of(file_name: &str) -> Option<Revision> {
        let digits = file_name.strip_suffix(".log").filter(|digits| digits.len() == 20)?;
        digits.parse().ok().map(Revision::new)
    }

    /// Makes a new segment that is there in full or not at all, whenever the machine stops.
    pub(crate) fn create(
        disk: &dyn Disk,
        directory: &Path,
        header: SegmentHeader,
    ) -> Result<Self, WriteError> {
        let path = directory.join(Self::file_name(header.first));
        let temporary = path.with_extension("tmp");
        match disk.remove(&temporary) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(WriteError::Refused(io_error("remove", &temporary)(error)));
            }
            _ => {}
        }
        let write = || {
            let file = disk.create(&temporary)?;
            file.write_at(&header.encode(), 0)?;
            file.sync()?;
            Ok(file)
        };
        let file = write().map_err(|error| {
            // It may be the last bit of space; whether it goes does not matter.
            let _ = disk.remove(&temporary);
            WriteError::Refused(io_error("create", &path)(error))
        })?;
        disk.rename(&temporary, &path).map_err(|error| {
            let error = io_error("create", &path)(error);
            // If the file has its old name, the segment is not there; else it may be, and the one before it
            // must not grow any more.
            if disk.remove(&temporary).is_ok() {
                WriteError::Refused(error)
            } else {
                WriteError::Poisoned(error)
            }
        })?;
        let synced = disk.sync_directory(directory);
        synced.map_err(|error| WriteError::Poisoned(io_error("create", &path)(error)))?;
        Ok(Self::new(header, path, file, SegmentHeader::BYTES))
    }

    /// Opens a segment and takes the file's length for its own.
    pub(crate) fn open(disk: &dyn Disk, path: PathBuf) -> Result<Self, EngineError> {
        let file = disk.open(&path).map_err(io_error("open", &path))?;
        let mut bytes = [0; 64];
        let count = file.read_at(&mut bytes, 0).map_err(io_error("read", &path))?;
        let header = SegmentHeader::decode(&bytes[..count], &path)?;
        let len = file.len().map_err(io_error("read", &path))?;
        Ok(Self::new(header, path, file, len))
    }

    fn new(header: SegmentHeader, path: PathBuf, file: Box<dyn DiskFile>, len: u64) -> Self {
        Self { header, path, file, len: AtomicU64::new(len), sync_failed: Mutex::new(false) }
    }

    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Says that whole frames have been written up to `len`.
    pub(crate) fn set_len(&self, len: u64) {
        self.len.store(len, Ordering::Release);
    }

    /// Syncs what was written. Once that has failed it fails always: the operating system reports an error
    /// once, to whoever comes first, and may have dropped what it could not write.
    pub(crate) fn sync(&self) -> Result<(), EngineError> {
        let mut failed = self.sync_failed.lock().unwrap_or_else(PoisonError::into_inner);
        if *failed {
            return Err(EngineError::ReadOnly { reason: "its log could not be synced".into() });
        }
        let synced = self.file.sync().map_err(io_error("sync", &self.path));
        *failed = synced.is_err();
        synced
    }

    pub(crate) fn binding(&self) -> Binding {
        Binding::new(self.header.salt)
    }

    /// Reads `len` bytes; fewer are damage, because what is pointed to was written.
    pub(crate) fn read(&self, offset: u64, len: usize) -> Result<Bytes, EngineError> {
        let mut bytes = BytesMut::zeroed(len);
        let count = self.file.read_at(&mut bytes, offset).map_err(io_error("read", &self.path))?;
        if count < len {
            return Err(self.damaged(offset + count as u64, "the segment ends too early"));
        }
        Ok(bytes.freeze())
    }

    /// Reads the frame at `offset` from `bytes`, which were read there. None if they hold no whole, sound frame.
    pub(crate) fn frame_in(&self, bytes: &Bytes, offset: u64) -> Option<Frame> {
        let header = FrameHeader::decode(bytes, self.binding().of(offset, Revision::ZERO))?;
        let end = FrameHeader::BYTES.checked_add(header.body_len as usize)?;
        if end > bytes.len() {
            return None;
        }
        Frame::decode(header, bytes.slice(FrameHeader::BYTES..end), self.binding(), offset)
    }

    pub(crate) fn damaged(&self, offset: u64, what: impl Into<String>) -> EngineError {
        EngineError::Corrupt { path: self.path.clone(), offset, what: what.into() }
    }
}
