/// Chunks grow from the first of these sizes to the second.
const CHUNK_BYTES_MIN: usize = 4 * 1024;
const CHUNK_BYTES_MAX: usize = 256 * 1024;

/// Bytes that are kept until all of them are given up together: nothing is allocated for most of them.
#[derive(Debug, Default)]
pub(super) struct Arena {
    chunks: Vec<Vec<u8>>,
}

/// Where in an arena something is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    chunk: u32,
    offset: u32,
    len: u32,
}

impl Arena {
    /// Keeps a copy of `bytes`.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Place {
        let fits = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() >= bytes.len();
        if !self.chunks.last().is_some_and(fits) {
            let grown = self.chunks.last().map_or(CHUNK_BYTES_MIN, |last| last.capacity() * 2);
            self.chunks.push(Vec::with_capacity(grown.min(CHUNK_BYTES_MAX).max(bytes.len())));
        }
        let number = self.chunks.len().saturating_sub(1);
        let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let Some(chunk) = self.chunks.last_mut() else { return Place { chunk: 0, offset: 0, len: 0 } };
        let place = Place { chunk: small(number), offset: small(chunk.len()), len: small(bytes.len()) };
        chunk.extend_from_slice(bytes);
        place
    }

    pub(super) fn get(&self, place: Place) -> &[u8] {
        let start = place.offset as usize;
        let chunk = self.chunks.get(place.chunk as usize);
        chunk.and_then(|chunk| chunk.get(start..start + place.len as usize)).unwrap_or_default()
    }
}
