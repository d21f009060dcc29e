//! Conversations as bytes: to a file or to memory, and back, also in the middle of a reply.
//!
//! # Layout, version 2
//!
//! Little-endian:
//!
//! ```text
//! header, 48 bytes
//!     0  magic "qwen35cv"            8  u32 version, u32 size of the header
//!    16  u64 size of everything     24  u64 bytes of the conversation
//!    32  u64 XXH64 of those         40  u64 XXH64 of the 40 bytes before
//! conversation: options, messages, the reply in progress (see `fields`)
//! session: as `Session::save` writes it
//! ```
//!
//! What is checked, when, and how a file is replaced is as with sessions.

mod fields;
mod pieces;

use std::io::{Read, Write};
use std::path::Path;

pub(super) use fields::{Field, Input, fields, numbered, odd};

use super::Conversation;
use crate::checkpoint::packed::checksum;
use crate::session::{SaveOptions, Session, replace_file};
use crate::{Error, Result};

/// How a saved conversation begins.
pub(crate) const MAGIC: [u8; 8] = *b"qwen35cv";
const VERSION: u32 = 2;
const HEADER: usize = 48;

impl Conversation {
    /// Bytes that [`Conversation::save`] writes.
    ///
    /// # Errors
    /// As [`Session::saved_bytes`].
    pub fn saved_bytes(&self, session: &Session, options: SaveOptions) -> Result<usize> {
        let own = HEADER + self.to_bytes().len();
        let all = session.saved_bytes(options)?.checked_add(own);
        all.ok_or_else(|| Error::out_of_memory("a saved conversation", usize::MAX))
    }

    /// Writes all that makes the conversation and its session go on as they would have: what
    /// [`Session::save`] writes, the conversation's options and messages, and of a reply in
    /// progress or one that can be resumed where it stands: an open think block, half a tool
    /// call, what stop strings hold back, bytes of an unfinished character, pieces that nobody
    /// has asked for.
    ///
    /// # Errors
    /// As [`Session::save`].
    pub fn save(
        &self,
        session: &Session,
        options: SaveOptions,
        sink: &mut dyn Write,
    ) -> Result<()> {
        let own = self.to_bytes();
        let total = self.saved_bytes(session, options)? as u64;
        let mut header = Vec::with_capacity(HEADER);
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend((HEADER as u32).to_le_bytes());
        for number in [total, own.len() as u64, checksum(&own)] {
            header.extend(number.to_le_bytes());
        }
        header.extend(checksum(&header).to_le_bytes());
        for part in [header, own] {
            sink.write_all(&part).map_err(|e| {
                Error::new(
                    crate::ErrorKind::Io,
                    format!("cannot write the saved conversation: {e}"),
                )
            })?;
        }
        session.save(options, sink)
    }

    /// Puts the conversation and `session` where [`Conversation::save`] left others, of this or
    /// of another process. The next piece of a reply in progress is the one that would have
    /// come. `total` is the number of bytes that `source` has.
    ///
    /// # Errors
    /// As [`Session::restore`]. Both are then as before.
    pub fn restore(
        &mut self,
        session: &mut Session,
        source: &mut dyn Read,
        total: u64,
    ) -> Result<()> {
        let (size, sum) = read_header(source, total)?;
        let cut = || Error::format("the saved conversation is cut off");
        let mut own = Vec::new();
        own.try_reserve_exact(size)
            .map_err(|_| Error::out_of_memory("the saved conversation", size))?;
        own.resize(size, 0);
        source.read_exact(&mut own).map_err(|_| cut())?;
        if checksum(&own) != sum {
            return Err(odd("its checksum is wrong"));
        }
        let restored = self.read_bytes(&own)?;
        session.restore(source, total - (HEADER + size) as u64)?;
        *self = restored;
        Ok(())
    }

    /// [`Conversation::save`] to memory.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn save_to_memory(&self, session: &Session, options: SaveOptions) -> Result<Vec<u8>> {
        let size = self.saved_bytes(session, options)?;
        let mut out = Vec::new();
        out.try_reserve_exact(size)
            .map_err(|_| Error::out_of_memory("a saved conversation", size))?;
        self.save(session, options, &mut out)?;
        Ok(out)
    }

    /// [`Conversation::restore`] from memory.
    ///
    /// # Errors
    /// As [`Conversation::restore`].
    pub fn restore_from_memory(&mut self, session: &mut Session, mut bytes: &[u8]) -> Result<()> {
        let total = bytes.len() as u64;
        self.restore(session, &mut bytes, total)
    }

    /// [`Conversation::save`] to a file, which is replaced as by [`Session::save_to_file`].
    ///
    /// # Errors
    /// As [`Session::save_to_file`].
    pub fn save_to_file(&self, session: &Session, options: SaveOptions, path: &Path) -> Result<()> {
        replace_file(path, |sink| self.save(session, options, sink))
    }

    /// [`Conversation::restore`] from a file.
    ///
    /// # Errors
    /// As [`Conversation::restore`], naming the file.
    pub fn restore_from_file(&mut self, session: &mut Session, path: &Path) -> Result<()> {
        let (mut source, total) = crate::files::open_regular(path)?;
        let result = self.restore(session, &mut source, total);
        result.map_err(|error| error.within(crate::error::shown(path)))
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let Self { model: _, thinking, encoding, limits, stop, tools_json, tools, messages, turn } =
            self;
        thinking.store(&mut out);
        encoding.store(&mut out);
        limits.store(&mut out);
        stop.store(&mut out);
        tools_json.store(&mut out);
        tools.store(&mut out);
        messages.store(&mut out);
        turn.store(&mut out);
        out
    }

    fn read_bytes(&self, bytes: &[u8]) -> Result<Self> {
        let mut input = Input::new(bytes);
        let read = Self {
            model: self.model.clone(),
            thinking: Field::load(&mut input)?,
            encoding: Field::load(&mut input)?,
            limits: Field::load(&mut input)?,
            stop: Field::load(&mut input)?,
            tools_json: Field::load(&mut input)?,
            tools: Field::load(&mut input)?,
            messages: Field::load(&mut input)?,
            turn: Field::load(&mut input)?,
        };
        input.end()?;
        Ok(read)
    }
}

/// The size of the conversation and its checksum.
fn read_header(source: &mut dyn Read, total: u64) -> Result<(usize, u64)> {
    let mut raw = [0; HEADER];
    if total < HEADER as u64 || source.read_exact(&mut raw).is_err() {
        return Err(Error::format(format!(
            "not a saved conversation, or cut off: {total} bytes, the header alone has {HEADER}"
        )));
    }
    let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| raw[at + i]));
    let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| raw[at + i]));
    if raw[..8] != MAGIC {
        let hint = match raw[..8] == crate::session::SAVED_MAGIC {
            true => ": it is a saved session",
            false => "",
        };
        return Err(Error::format(format!(
            "not a saved conversation, it does not begin with \"qwen35cv\"{hint}"
        )));
    }
    if u64_at(40) != checksum(&raw[..40]) {
        return Err(odd("the header's checksum is wrong"));
    }
    if u32_at(8) != VERSION || u32_at(12) as usize != HEADER {
        return Err(Error::unsupported(format!(
            "the saved conversation has format version {}, this library reads {VERSION}",
            u32_at(8)
        )));
    }
    if u64_at(16) != total {
        return Err(Error::format(format!(
            "the saved conversation is cut off or has something behind it: {total} bytes, its \
             header says {}",
            u64_at(16)
        )));
    }
    let size = u64_at(24);
    if size > total - HEADER as u64 {
        return Err(odd("its sizes do not add up"));
    }
    let size = usize::try_from(size).map_err(|_| odd("its sizes do not add up"))?;
    Ok((size, u64_at(32)))
}
