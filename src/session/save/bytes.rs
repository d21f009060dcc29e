//! Numbers to bytes and back, with a checksum over all of them.

use std::io::{ErrorKind, Read, Write};

use crate::checkpoint::packed::Checksum;
use crate::kernels::{Plain, as_bytes, as_bytes_mut};
use crate::{Error, Result};

/// Numbers handed on at a time: few calls, and a checksum over bytes that are in the cache.
const BLOCK: usize = 1 << 16;

/// The system refused to read or write.
pub(super) fn refused(action: &str, error: &std::io::Error) -> Error {
    Error::new(crate::ErrorKind::Io, format!("cannot {action} the saved session: {error}"))
}

/// Writes, and remembers the checksum.
pub(super) struct Writer<'a> {
    sink: &'a mut dyn Write,
    sum: Checksum,
}

impl<'a> Writer<'a> {
    pub(super) fn new(sink: &'a mut dyn Write) -> Self {
        Self { sink, sum: Checksum::new() }
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<()> {
        for block in bytes.chunks(BLOCK) {
            self.sum.update(block);
            self.sink.write_all(block).map_err(|e| refused("write", &e))?;
        }
        Ok(())
    }

    pub(super) fn numbers<T: Plain>(&mut self, values: &[T]) -> Result<()> {
        self.raw(as_bytes(values))
    }

    pub(super) fn u64(&mut self, value: u64) -> Result<()> {
        self.raw(&value.to_le_bytes())
    }

    /// Writes the checksum of all before.
    pub(super) fn finish(self) -> Result<()> {
        let sum = self.sum.finish();
        self.sink.write_all(&sum.to_le_bytes()).map_err(|e| refused("write", &e))
    }
}

/// Reads what a [`Writer`] wrote.
pub(super) struct Reader<'a> {
    source: &'a mut dyn Read,
    sum: Checksum,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a mut dyn Read) -> Self {
        Self { source, sum: Checksum::new() }
    }

    fn take(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.source.read_exact(bytes).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => Error::format("the saved session is cut off"),
            _ => refused("read", &e),
        })
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        for block in bytes.chunks_mut(BLOCK) {
            self.take(block)?;
            self.sum.update(block);
        }
        Ok(())
    }

    pub(super) fn read_numbers<T: Plain>(&mut self, values: &mut [T]) -> Result<()> {
        self.fill(as_bytes_mut(values))
    }

    /// `count` numbers; the caller has compared the count with the size of the whole.
    pub(super) fn numbers(&mut self, count: usize, what: &str) -> Result<Vec<u32>> {
        let mut values = Vec::new();
        let refused = |_| Error::out_of_memory(what, count.saturating_mul(4));
        values.try_reserve_exact(count).map_err(refused)?;
        values.resize(count, 0);
        self.read_numbers(&mut values)?;
        Ok(values)
    }

    /// `count` bytes; as [`Reader::numbers`].
    pub(super) fn bytes(&mut self, count: usize, what: &str) -> Result<Vec<u8>> {
        let mut values = Vec::new();
        values.try_reserve_exact(count).map_err(|_| Error::out_of_memory(what, count))?;
        values.resize(count, 0);
        self.fill(&mut values)?;
        Ok(values)
    }

    pub(super) fn u64(&mut self) -> Result<u64> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Compares the checksum that stands here with that of all before.
    pub(super) fn finish(mut self) -> Result<()> {
        let sum = self.sum.finish();
        let mut stored = [0; 8];
        self.take(&mut stored)?;
        if u64::from_le_bytes(stored) == sum {
            return Ok(());
        }
        Err(Error::format("the saved session is damaged: its checksum is wrong"))
    }
}
