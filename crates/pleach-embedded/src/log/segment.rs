use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use bytes::{BufMut, Bytes, BytesMut};
use pleach_engine::{EngineError, Revision};

use super::footer::Footer;
use super::frame::{FrameHeader, FromBody};
use super::writer::WriteError;
use super::{Binding, SegmentId, StoreId};
use crate::disk::{Disk, DiskFile, io_error};

/// The first bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// What the segment's bytes mean: [`SegmentHeader::FORMAT`], or an older one that can still be read.
    pub(crate) format: u16,
    pub(crate) store: StoreId,
    /// No record in the segment is older than `first`; also its name.
    pub(crate) id: SegmentId,
    /// A random number that ties every checksum to this segment.
    pub(crate) salt: u64,
    /// The segment before, and how long it was when this one was begun, so that a missing or shortened one is
    /// noticed. Cleaning gives the segment before another length; then its footer tells.
    pub(crate) previous: Option<(Revision, u64)>,
}

impl SegmentHeader {
    /// How many bytes a header takes at most.
    pub(crate) const BYTES_MAX: usize = 80;
    /// The format that is written.
    pub(crate) const FORMAT: u16 = 2;
    const MAGIC: [u8; 8] = *b"PLEACHLG";

    /// How many bytes this header takes; the first frame follows.
    pub(crate) fn len(&self) -> u64 {
        if self.format == 1 { 64 } else { 80 }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BYTES_MAX);
        bytes.put_slice(&Self::MAGIC);
        bytes.put_u16_le(self.format);
        bytes.put_u16_le(0);
        bytes.put_u32_le(0);
        bytes.put_slice(&self.store.0);
        bytes.put_u64_le(self.id.first.get());
        bytes.put_u64_le(self.salt);
        let (previous, len) = self.previous.unwrap_or_default();
        bytes.put_u64_le(previous.get());
        bytes.put_u64_le(len);
        if self.format > 1 {
            bytes.put_u32_le(self.id.generation);
            bytes.put_bytes(0, 12);
        }
        let checksum = Self::checksum(self.format, &bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn checksum(format: u16, bytes: &[u8]) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        if format > 1 {
            hasher.update(&bytes[8..12]);
        }
        hasher.update(&bytes[16..]);
        hasher.finalize()
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
        let len = match format {
            1 => 64,
            Self::FORMAT => Self::BYTES_MAX,
            _ => {
                let (found, supported) = (format.into(), Self::FORMAT.into());
                return Err(EngineError::UnknownFormat { path: path.into(), found, supported });
            }
        };
        let Some(bytes) = bytes.get(..len) else {
            return Err(damaged("the segment is shorter than its header"));
        };
        if bytes[12..16] != Self::checksum(format, bytes).to_le_bytes() {
            return Err(damaged("the checksum of the segment's header does not match"));
        }
        let mut store = [0; 16];
        store.copy_from_slice(&bytes[16..32]);
        let generation =
            if format == 1 { 0 } else { u32::from_le_bytes([bytes[64], bytes[65], bytes[66], bytes[67]]) };
        let previous = Revision::new(u64::from_le_bytes(array(48)));
        let previous_len = u64::from_le_bytes(array(56));
        Ok(Self {
            format,
            store: StoreId(store),
            id: SegmentId { first: Revision::new(u64::from_le_bytes(array(32))), generation },
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
    /// What it holds, once it is finished.
    footer: OnceLock<Footer>,
    /// Whether a sync has failed.
    sync_failed: Mutex<bool>,
    /// Whether a cleaned segment has taken its place.
    replaced: AtomicBool,
}

impl Segment {
    /// Makes a new segment that is there in full or not at all, whenever the machine stops.
    pub(crate) fn create(
        disk: &dyn Disk,
        directory: &Path,
        header: SegmentHeader,
    ) -> Result<Self, WriteError> {
        let segment = Self::prepare(disk, directory, header).map_err(WriteError::Refused)?;
        segment.publish(disk)?;
        Ok(segment)
    }

    /// Makes a new segment under a name that says it is not finished; [`Segment::publish`] gives it its own.
    pub(crate) fn prepare(
        disk: &dyn Disk,
        directory: &Path,
        header: SegmentHeader,
    ) -> Result<Self, EngineError> {
        let path = directory.join(header.id.file_name());
        let temporary = temporary(&path);
        match disk.remove(&temporary) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(io_error("remove", &temporary)(error));
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
            io_error("create", &path)(error)
        })?;
        Ok(Self::new(header, path, file, header.len()))
    }

    /// Gives a prepared segment its name.
    pub(crate) fn publish(&self, disk: &dyn Disk) -> Result<(), WriteError> {
        let temporary = temporary(&self.path);
        disk.rename(&temporary, &self.path).map_err(|error| {
            let error = io_error("create", &self.path)(error);
            // If the file has its old name, the segment is not there; else it may be, and the one before it
            // must not grow any more.
            if disk.remove(&temporary).is_ok() {
                WriteError::Refused(error)
            } else {
                WriteError::Poisoned(error)
            }
        })?;
        let directory = self.path.parent().unwrap_or(Path::new("."));
        let synced = disk.sync_directory(directory);
        synced.map_err(|error| WriteError::Poisoned(io_error("create", &self.path)(error)))
    }

    /// Gives up a prepared segment.
    pub(crate) fn abandon(&self, disk: &dyn Disk) {
        // What stays behind is removed when the store is opened.
        let _ = disk.remove(&temporary(&self.path));
    }

    /// Opens a segment and takes the file's length for its own.
    pub(crate) fn open(disk: &dyn Disk, path: PathBuf) -> Result<Self, EngineError> {
        let file = disk.open(&path).map_err(io_error("open", &path))?;
        let mut bytes = [0; SegmentHeader::BYTES_MAX];
        let count = file.read_at(&mut bytes, 0).map_err(io_error("read", &path))?;
        let header = SegmentHeader::decode(&bytes[..count], &path)?;
        let len = file.len().map_err(io_error("read", &path))?;
        let segment = Self::new(header, path, file, len);
        if let Some(footer) = Footer::read(&segment)? {
            segment.finish(footer);
        }
        Ok(segment)
    }

    fn new(header: SegmentHeader, path: PathBuf, file: Box<dyn DiskFile>, len: u64) -> Self {
        Self {
            header,
            path,
            file,
            len: AtomicU64::new(len),
            footer: OnceLock::new(),
            sync_failed: Mutex::new(false),
            replaced: AtomicBool::new(false),
        }
    }

    pub(crate) fn id(&self) -> SegmentId {
        self.header.id
    }

    pub(crate) fn first(&self) -> Revision {
        self.header.id.first
    }

    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Acquire)
    }

    /// Says that whole frames have been written up to `len`.
    pub(crate) fn set_len(&self, len: u64) {
        self.len.store(len, Ordering::Release);
    }

    /// What it holds, if it is finished.
    pub(crate) fn footer(&self) -> Option<&Footer> {
        self.footer.get()
    }

    /// Says that nothing more is written to it.
    pub(crate) fn finish(&self, footer: Footer) {
        // A second time it would be the same.
        let _ = self.footer.set(footer);
    }

    /// Whether a cleaned segment has taken its place.
    pub(crate) fn is_replaced(&self) -> bool {
        self.replaced.load(Ordering::Acquire)
    }

    pub(crate) fn set_replaced(&self) {
        self.replaced.store(true, Ordering::Release);
    }

    /// Where to begin reading for `revision`: the frame there may be older, the ones before it all are.
    pub(crate) fn offset_for(&self, revision: Revision) -> u64 {
        self.footer().and_then(|footer| footer.offset_for(revision)).unwrap_or_else(|| self.header.len())
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
        self.read_into(BytesMut::zeroed(len), offset)
    }

    /// Reads as many bytes at `offset` as `bytes` has room for.
    pub(crate) fn read_into(&self, mut bytes: BytesMut, offset: u64) -> Result<Bytes, EngineError> {
        let len = bytes.len();
        let count = self.file.read_at(&mut bytes, offset).map_err(io_error("read", &self.path))?;
        if count < len {
            return Err(self.damaged(offset + count as u64, "the segment ends too early"));
        }
        Ok(bytes.freeze())
    }

    /// Reads the frame at `offset` from `bytes`, which were read there. None if they hold no whole, sound frame.
    pub(crate) fn frame_in<T: FromBody>(&self, bytes: &Bytes, offset: u64) -> Option<T> {
        let header = FrameHeader::decode(bytes, self.binding().of(offset, Revision::ZERO))?;
        let end = FrameHeader::BYTES.checked_add(header.body_len as usize)?;
        if end > bytes.len() {
            return None;
        }
        T::from_body(header, &bytes.slice(FrameHeader::BYTES..end), self.binding(), offset)
    }

    pub(crate) fn damaged(&self, offset: u64, what: impl Into<String>) -> EngineError {
        EngineError::Corrupt { path: self.path.clone(), offset, what: what.into() }
    }
}

/// What a segment is called until it is published.
fn temporary(path: &Path) -> PathBuf {
    path.with_extension("tmp")
}
