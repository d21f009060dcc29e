//! The header of a saved session: what it is bound to, and sizes that add up.

use std::io::Read;

use super::super::Session;
use super::bytes;
use super::sampling::SAMPLING_WORDS;
use super::{MARK_WORDS, MAX_ATTACHMENT, SaveOptions};
use crate::checkpoint::packed::checksum;
use crate::kernels::{KvElement, KvPages};
use crate::model::state::RecurrentShape;
use crate::{Error, Result};

/// How a saved session begins.
pub(crate) const MAGIC: [u8; 8] = *b"qwen35st";
const VERSION: u32 = 4;
const HEADER: usize = 128;
const NUMERICS: usize = 24;

/// The numbers of the header.
pub(super) struct Header {
    pub(super) total: u64,
    pub(super) fingerprint: u64,
    pub(super) numerics: [u8; NUMERICS],
    pub(super) element: u32,
    pub(super) tokens: u64,
    pub(super) computed: u64,
    pub(super) attachment: u64,
    pub(super) marks: u32,
    pub(super) bias: u32,
    pub(super) next_mark: u64,
    pub(super) queued: u64,
    /// Changes of recurrent states, of all marks.
    pub(super) mark_changes: u64,
}

impl Session {
    pub(super) fn header(&self, options: SaveOptions) -> Result<Header> {
        let bias = self.sampler.options().logit_bias.len();
        let marks = self.marks_to_save(options);
        let mut header = Header {
            total: 0,
            fingerprint: self.model.fingerprint()?,
            numerics: numerics(&self.model.numerics()?),
            element: element_code(self.kv),
            tokens: self.tokens.len() as u64,
            computed: self.state.position as u64,
            attachment: self.attachment.len() as u64,
            marks: marks.len() as u32,
            bias: u32::try_from(bias)
                .map_err(|_| Error::unsupported("more than 2^32 entries of logit bias"))?,
            next_mark: self.marks.next_id,
            queued: self.queued() as u64,
            mark_changes: marks.iter().map(|mark| mark.state.recurrent.changes() as u64).sum(),
        };
        header.total = self
            .expected_total(&header)
            .ok_or_else(|| Error::out_of_memory("a saved session", usize::MAX))?;
        Ok(header)
    }

    /// The size of everything that the numbers of `header` announce.
    pub(super) fn expected_total(&self, header: &Header) -> Option<u64> {
        let config = self.model.network().ok()?.config();
        let shape = RecurrentShape::new(config);
        let fixed = 4 * config.hidden_size as u64 + shape.bytes() as u64;
        let changes = RecurrentShape::changes_after(header.computed) as u64;
        let changes = changes.checked_add(header.mark_changes)?;
        let computed = usize::try_from(header.computed).ok()?;
        let pages = self.state.kv.iter().try_fold(0u64, |sum, kv| {
            sum.checked_add(KvPages::stored_bytes(kv.shape(), computed)? as u64)
        })?;
        let mark = fixed.checked_add(MARK_WORDS * 8)?;
        let parts = [
            header.tokens.checked_mul(4)?,
            (SAMPLING_WORDS * 4) as u64 + 4 * 8,
            u64::from(header.bias) * 8,
            5 * 8,
            header.attachment,
            fixed,
            changes.checked_mul(shape.change_bytes() as u64)?,
            pages,
            mark.checked_mul(header.marks.into())?,
            8,
        ];
        parts.into_iter().try_fold(HEADER as u64, u64::checked_add)
    }

    /// Reads and checks the header: after this the rest is as long as it says.
    pub(super) fn read_header(&self, source: &mut dyn Read, total: u64) -> Result<Header> {
        let mut raw = [0; HEADER];
        let short = || {
            Error::format(format!(
                "not a saved session, or cut off: {total} bytes, the header alone has {HEADER}"
            ))
        };
        if total < HEADER as u64 {
            return Err(short());
        }
        source.read_exact(&mut raw).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => short(),
            _ => bytes::refused("read", &e),
        })?;
        if raw[..8] != MAGIC {
            let hint = match raw[..8] == crate::conversation::SAVED_MAGIC {
                true => ", it is a saved conversation",
                false => "",
            };
            return Err(Error::format(format!(
                "not a saved session: it does not begin with \"qwen35st\"{hint}"
            )));
        }
        let header = Header::from_bytes(&raw)?;
        if header.total != total {
            return Err(Error::format(format!(
                "the saved session is cut off or has something behind it: {total} bytes, its \
                 header says {}",
                header.total
            )));
        }
        let own = self.header(SaveOptions::default())?;
        if header.fingerprint != own.fingerprint {
            return Err(Error::unsupported(format!(
                "the session was saved with another model: fingerprint {:016x}, this model has \
                 {:016x}",
                header.fingerprint, own.fingerprint
            )));
        }
        if header.numerics != own.numerics {
            return Err(Error::unsupported(format!(
                "the session was saved with the model opened as {:?}, here it is opened as {:?}",
                readable(&header.numerics),
                readable(&own.numerics)
            )));
        }
        if header.element != own.element {
            return Err(Error::unsupported(format!(
                "the session was saved with keys and values in {}, this session has them in {}: \
                 make it with that format",
                element_name(header.element),
                self.kv.name()
            )));
        }
        if header.tokens > self.context_limit as u64 {
            return Err(Error::context_overflow(format!(
                "the saved session has {} tokens, more than the {} positions of this one",
                header.tokens, self.context_limit
            )));
        }
        let damaged =
            |what: &str| Err(Error::format(format!("the saved session is damaged: {what}")));
        if !waiting(header.tokens, header.computed, header.queued) {
            return damaged("more is computed than there is, or less than there must be");
        }
        if header.attachment > MAX_ATTACHMENT as u64 {
            return damaged("its attachment is too large");
        }
        if self.expected_total(&header) != Some(total) {
            return damaged("its sizes do not add up");
        }
        Ok(header)
    }
}

impl Header {
    pub(super) fn to_bytes(&self) -> [u8; HEADER] {
        let mut raw = [0; HEADER];
        let mut put = |at: usize, bytes: &[u8]| raw[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &(HEADER as u32).to_le_bytes());
        put(16, &self.total.to_le_bytes());
        put(24, &self.fingerprint.to_le_bytes());
        put(32, &self.numerics);
        put(56, &self.element.to_le_bytes());
        put(64, &self.tokens.to_le_bytes());
        put(72, &self.computed.to_le_bytes());
        put(80, &self.attachment.to_le_bytes());
        put(88, &self.marks.to_le_bytes());
        put(92, &self.bias.to_le_bytes());
        put(96, &self.next_mark.to_le_bytes());
        put(104, &self.queued.to_le_bytes());
        put(112, &self.mark_changes.to_le_bytes());
        let sum = checksum(&raw[..120]);
        raw[120..].copy_from_slice(&sum.to_le_bytes());
        raw
    }

    fn from_bytes(raw: &[u8; HEADER]) -> Result<Self> {
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| raw[at + i]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| raw[at + i]));
        if u64_at(120) != checksum(&raw[..120]) {
            return Err(Error::format(
                "the saved session is damaged: the header's checksum is wrong",
            ));
        }
        let version = u32_at(8);
        if version != VERSION || u32_at(12) as usize != HEADER {
            return Err(Error::unsupported(format!(
                "the saved session has format version {version}, this library reads {VERSION}"
            )));
        }
        Ok(Self {
            total: u64_at(16),
            fingerprint: u64_at(24),
            numerics: std::array::from_fn(|i| raw[32 + i]),
            element: u32_at(56),
            tokens: u64_at(64),
            computed: u64_at(72),
            attachment: u64_at(80),
            marks: u32_at(88),
            bias: u32_at(92),
            next_mark: u64_at(96),
            queued: u64_at(104),
            mark_changes: u64_at(112),
        })
    }
}

/// Whether of so many tokens, so many computed, the rest is queued input and at most one
/// generated token in front of it.
pub(super) fn waiting(tokens: u64, computed: u64, queued: u64) -> bool {
    tokens.checked_sub(computed).and_then(|rest| rest.checked_sub(queued)).is_some_and(|n| n <= 1)
}

/// The name of a way of computing, in the room that the header has for it.
fn numerics(name: &str) -> [u8; NUMERICS] {
    let name = name.as_bytes();
    std::array::from_fn(|i| name.get(i).copied().unwrap_or(0))
}

fn readable(numerics: &[u8; NUMERICS]) -> String {
    String::from_utf8_lossy(numerics).trim_end_matches('\0').to_owned()
}

/// The format of keys and values in the header.
fn element_code(element: KvElement) -> u32 {
    match element {
        KvElement::F32 => 1,
        KvElement::F16 => 2,
        KvElement::I8 => 3,
    }
}

fn element_name(code: u32) -> &'static str {
    let known = [KvElement::F32, KvElement::F16, KvElement::I8];
    let found = known.into_iter().find(|element| element_code(*element) == code);
    found.map_or("a format that this library does not know", KvElement::name)
}
