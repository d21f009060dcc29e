//! Sessions as bytes: to a file or to memory, and back.
//!
//! # Layout, version 2
//!
//! Little-endian. The parts follow each other without gaps, so that every number before a
//! part says where it is:
//!
//! ```text
//! header, 128 bytes
//!     0  magic "qwen35st"            8  u32 version, u32 size of the header
//!    16  u64 size of everything     24  u64 fingerprint of the model
//!    32  [u8; 24] numerics: format of the weights and way of computing, zeros behind
//!    56  u32 format of keys and values: 1 FP32, 2 FP16, 3 INT8; u32 0
//!    64  u64 tokens                 72  u64 tokens computed
//!    80  u64 bytes of attachment    88  u32 marks, u32 entries of logit bias
//!    96  u64 name of the next mark  104 u64 tokens queued, not computed
//!   112  u64 0                      120 u64 XXH64 of the 120 bytes before
//! tokens, u32 each
//! sampling: see `sampling_words`; random stream, 4 u64; bias, (u32 id, f32) each
//! u64 where the model's output begins
//! attachment
//! state: hidden [H] f32; delta, conv f32; for each attention layer its pages, each with its
//!     elements and, in INT8, its scales (see `kernels::kv`)
//! for each mark: u64 name, position, automatic, output start, tokens computed and queued;
//!     random stream; hidden, delta, conv (its keys and values are a beginning of the session's)
//! u64 XXH64 of everything behind the header
//! ```
//!
//! A reader trusts nothing: the header has its own checksum, every size in it is compared
//! with the model and with the size of the whole before memory is asked for, and the session
//! changes only after the last checksum was right.

mod bytes;
mod file;

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use super::Session;
use super::marks::{Mark, MarkInfo};
use crate::checkpoint::packed::checksum;
use crate::kernels::{KvElement, KvPages};
use crate::model::State;
use crate::model::state::RecurrentShape;
use crate::sampling::{Rng, Sampler, SamplingOptions};
use crate::{Error, Result};
use bytes::{Reader, Writer};

const MAGIC: [u8; 8] = *b"qwen35st";
const VERSION: u32 = 2;
const HEADER: usize = 128;
const NUMERICS: usize = 24;
/// The largest attachment.
pub const MAX_ATTACHMENT: usize = 64 << 20;

/// What to save.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaveOptions {
    /// Leaves the marks out: a smaller file (19 MB less for each, at 0.8B), from which the
    /// next turn of a conversation has to compute the whole history again.
    pub without_marks: bool,
}

/// The numbers of the header.
struct Header {
    total: u64,
    fingerprint: u64,
    numerics: [u8; NUMERICS],
    element: u32,
    tokens: u64,
    computed: u64,
    attachment: u64,
    marks: u32,
    bias: u32,
    next_mark: u64,
    queued: u64,
}

impl Session {
    /// Keeps bytes of the caller with the session: the messages of a conversation, say. They
    /// are saved and forked with it; nothing else looks at them.
    ///
    /// # Errors
    /// `InvalidArgument` for more than [`MAX_ATTACHMENT`] bytes, `OutOfMemory`.
    pub fn set_attachment(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.len() > MAX_ATTACHMENT {
            return Err(Error::invalid_argument(format!(
                "an attachment of {} bytes: {MAX_ATTACHMENT} at most",
                bytes.len()
            )));
        }
        self.attachment = super::fork::copy(bytes, "the attachment")?;
        Ok(())
    }

    /// The bytes of [`Session::set_attachment`].
    pub fn attachment(&self) -> &[u8] {
        &self.attachment
    }

    /// Bytes that [`Session::save`] writes.
    ///
    /// # Errors
    /// `OutOfMemory` if there are more than can be addressed.
    pub fn saved_bytes(&self, options: SaveOptions) -> Result<usize> {
        let header = self.header(options)?;
        usize::try_from(header.total)
            .map_err(|_| Error::out_of_memory("a saved session", usize::MAX))
    }

    /// Writes all that makes the session go on as it would have: sequence, network state,
    /// marks, sampling options, random stream, attachment. The same session gives the same
    /// bytes. A token that is not computed yet stays so.
    ///
    /// # Errors
    /// What `sink` returns, as `Io`; `OutOfMemory`.
    pub fn save(&self, options: SaveOptions, sink: &mut dyn Write) -> Result<()> {
        let header = self.header(options)?;
        sink.write_all(&header.to_bytes()).map_err(|e| bytes::refused("write", &e))?;
        let mut out = Writer::new(sink);
        out.numbers(&self.tokens)?;
        let sampling = self.sampler.options();
        out.numbers(&sampling_words(sampling))?;
        save_rng(&mut out, self.sampler.rng())?;
        for (id, bias) in &sampling.logit_bias {
            out.numbers(&[*id, bias.to_bits()])?;
        }
        out.u64(self.output_start as u64)?;
        out.raw(&self.attachment)?;
        save_fixed(&mut out, &self.state)?;
        for layer in &self.state.kv {
            layer.store(self.state.position, &mut |part| out.raw(part))?;
        }
        for mark in self.marks_to_save(options) {
            let MarkInfo { id, position, automatic } = mark.info;
            let numbers = [position, mark.output_start, mark.state.position, mark.queued];
            let [position, output_start, computed, queued] = numbers.map(|number| number as u64);
            let words = [id, position, automatic.into(), output_start, computed, queued];
            words.into_iter().try_for_each(|word| out.u64(word))?;
            save_rng(&mut out, &mark.rng)?;
            save_fixed(&mut out, &mark.state)?;
        }
        out.finish()
    }

    /// Puts the session where [`Session::save`] left one: of this or of another process, on
    /// any model with the same fingerprint, weight format and way of computing. It then
    /// goes on bit for bit as that one would have. The context limit, the namespace and the
    /// choices of overflow stay this session's own.
    ///
    /// `total` is the number of bytes that `source` has.
    ///
    /// # Errors
    /// `Format` for what is damaged, cut off or no saved session; `Unsupported` for another
    /// model or version; `ContextOverflow` if the sequence is longer than this session's
    /// limit; `Io`; `OutOfMemory`. The session is then as before.
    pub fn restore(&mut self, source: &mut dyn Read, total: u64) -> Result<()> {
        let header = self.read_header(source, total)?;
        let rows = self.model.network()?.config().vocab_size;
        let mut input = Reader::new(source);

        let tokens = input.numbers(header.tokens as usize, "the sequence")?;
        let mut words = [0; SAMPLING_WORDS];
        input.read_numbers(&mut words)?;
        let mut sampling = sampling_from(&words)?;
        let rng = load_rng(&mut input)?;
        for pair in input.numbers(2 * header.bias as usize, "the logit bias")?.chunks_exact(2) {
            sampling.logit_bias.push((pair[0], f32::from_bits(pair[1])));
        }
        let output_start = input.u64()? as usize;
        let attachment = input.bytes(header.attachment as usize, "the attachment")?;

        let mut state = self.empty_state()?;
        load_fixed(&mut input, &mut state)?;
        state.position = header.computed as usize;
        for layer in &mut state.kv {
            let shape = layer.shape();
            *layer = KvPages::load(shape, state.position, &mut |part| input.fill(part))?;
        }
        let mut marks = Vec::new();
        for _ in 0..header.marks {
            marks.push(load_mark(&mut input, &state, self.empty_state()?)?);
        }
        input.finish()?;

        // The checksum is right, so what follows fails only for a file made with intent.
        let odd = |what: &str| Error::format(format!("the saved session is damaged: {what}"));
        if tokens.iter().any(|id| *id as usize >= rows) {
            return Err(odd("a token outside the vocabulary"));
        }
        if output_start > tokens.len() {
            return Err(odd("the output begins behind the end"));
        }
        let orderly = |pair: &[Mark]| pair[0].info.position <= pair[1].info.position;
        let fits = |mark: &Mark| {
            mark.info.position <= tokens.len()
                && mark.output_start <= mark.info.position
                && mark.info.id < header.next_mark
        };
        if !marks.windows(2).all(orderly) || !marks.iter().all(fits) {
            return Err(odd("its marks are out of order"));
        }
        let mut sampler = Sampler::new(sampling, self.model.tokenizer().token_count())
            .map_err(|error| odd(error.message()))?;
        sampler.set_rng(rng);

        while marks.len() > self.marks.limit {
            marks.remove(0);
        }
        self.sampler = sampler;
        self.tokens = tokens;
        self.state = state;
        self.output_start = output_start;
        self.attachment = attachment;
        self.marks.held = marks;
        self.marks.next_id = self.marks.next_id.max(header.next_mark);
        self.resume_queue(header.queued as usize);
        self.logits_position = None;
        self.last_fed = super::Fed::default();
        Ok(())
    }

    /// [`Session::save`] to memory.
    ///
    /// # Errors
    /// `OutOfMemory`.
    pub fn save_to_memory(&self, options: SaveOptions) -> Result<Vec<u8>> {
        let size = self.saved_bytes(options)?;
        let mut out = Vec::new();
        out.try_reserve_exact(size).map_err(|_| Error::out_of_memory("a saved session", size))?;
        self.save(options, &mut out)?;
        Ok(out)
    }

    /// [`Session::restore`] from memory.
    ///
    /// # Errors
    /// As [`Session::restore`].
    pub fn restore_from_memory(&mut self, mut bytes: &[u8]) -> Result<()> {
        let total = bytes.len() as u64;
        self.restore(&mut bytes, total)
    }

    /// [`Session::save`] to a file, which is replaced at once: whatever happens in between,
    /// the end of the process or of the machine's power included, there is afterwards the
    /// old file or the new one, whole. The file is readable by its owner only.
    ///
    /// # Errors
    /// `Io`; `Busy` if another session is being saved to the same file; the old file is then
    /// as before.
    pub fn save_to_file(&self, options: SaveOptions, path: &Path) -> Result<()> {
        file::replace(path, |sink| self.save(options, sink))
    }

    /// [`Session::restore`] from a file.
    ///
    /// # Errors
    /// As [`Session::restore`], naming the file.
    pub fn restore_from_file(&mut self, path: &Path) -> Result<()> {
        let (mut source, total) = crate::files::open_regular(path)?;
        let result = self.restore(&mut source, total);
        result.map_err(|error| error.within(crate::error::shown(path)))
    }

    fn marks_to_save(&self, options: SaveOptions) -> &[Mark] {
        if options.without_marks { &[] } else { &self.marks.held }
    }

    fn header(&self, options: SaveOptions) -> Result<Header> {
        let bias = self.sampler.options().logit_bias.len();
        let mut header = Header {
            total: 0,
            fingerprint: self.model.fingerprint()?,
            numerics: numerics(&self.model.numerics()?),
            element: element_code(self.kv),
            tokens: self.tokens.len() as u64,
            computed: self.state.position as u64,
            attachment: self.attachment.len() as u64,
            marks: self.marks_to_save(options).len() as u32,
            bias: u32::try_from(bias)
                .map_err(|_| Error::unsupported("more than 2^32 entries of logit bias"))?,
            next_mark: self.marks.next_id,
            queued: self.queued() as u64,
        };
        header.total = self
            .expected_total(&header)
            .ok_or_else(|| Error::out_of_memory("a saved session", usize::MAX))?;
        Ok(header)
    }

    /// The size of everything that the numbers of `header` announce.
    fn expected_total(&self, header: &Header) -> Option<u64> {
        let config = self.model.network().ok()?.config();
        let fixed = 4 * config.hidden_size as u64 + RecurrentShape::new(config).bytes() as u64;
        let computed = usize::try_from(header.computed).ok()?;
        let pages = self.state.kv.iter().try_fold(0u64, |sum, kv| {
            sum.checked_add(KvPages::stored_bytes(kv.shape(), computed)? as u64)
        })?;
        let mark = fixed.checked_add(MARK_WORDS * 8)?;
        let parts = [
            header.tokens.checked_mul(4)?,
            (SAMPLING_WORDS * 4) as u64 + 4 * 8,
            u64::from(header.bias) * 8,
            8,
            header.attachment,
            fixed,
            pages,
            mark.checked_mul(header.marks.into())?,
            8,
        ];
        parts.into_iter().try_fold(HEADER as u64, u64::checked_add)
    }

    /// Reads and checks the header: after this the rest is as long as it says.
    fn read_header(&self, source: &mut dyn Read, total: u64) -> Result<Header> {
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
            return Err(Error::format("not a saved session: it does not begin with \"qwen35st\""));
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
    fn to_bytes(&self) -> [u8; HEADER] {
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
        })
    }
}

/// Whether of so many tokens, so many computed, the rest is queued input and at most one
/// generated token in front of it.
fn waiting(tokens: u64, computed: u64, queued: u64) -> bool {
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

/// Words of the sampling options.
const SAMPLING_WORDS: usize = 15;
/// 64-bit words in front of a mark's state.
const MARK_WORDS: u64 = 10;

/// The sampling options, without the bias.
fn sampling_words(options: &SamplingOptions) -> [u32; SAMPLING_WORDS] {
    let split = |value: u64| [value as u32, (value >> 32) as u32];
    let [k0, k1] = split(options.top_k as u64);
    let [w0, w1] = split(options.penalty_window.unwrap_or(0) as u64);
    let [s0, s1] = split(options.seed.unwrap_or(0));
    [
        options.temperature.to_bits(),
        k0,
        k1,
        options.top_p.to_bits(),
        options.min_p.to_bits(),
        options.repetition_penalty.to_bits(),
        options.presence_penalty.to_bits(),
        options.frequency_penalty.to_bits(),
        options.penalty_window.is_some().into(),
        w0,
        w1,
        options.seed.is_some().into(),
        s0,
        s1,
        0,
    ]
}

fn sampling_from(words: &[u32; SAMPLING_WORDS]) -> Result<SamplingOptions> {
    let join = |at: usize| u64::from(words[at]) | u64::from(words[at + 1]) << 32;
    let float = |at: usize| f32::from_bits(words[at]);
    let size = |at: usize| usize::try_from(join(at)).unwrap_or(usize::MAX);
    Ok(SamplingOptions {
        temperature: float(0),
        top_k: size(1),
        top_p: float(3),
        min_p: float(4),
        repetition_penalty: float(5),
        presence_penalty: float(6),
        frequency_penalty: float(7),
        penalty_window: (words[8] != 0).then(|| size(9)),
        seed: (words[11] != 0).then(|| join(12)),
        logit_bias: Vec::new(),
    })
}

fn save_rng(out: &mut Writer, rng: &Rng) -> Result<()> {
    rng.state().into_iter().try_for_each(|word| out.u64(word))
}

fn load_rng(input: &mut Reader) -> Result<Rng> {
    let words = [input.u64()?, input.u64()?, input.u64()?, input.u64()?];
    Rng::from_state(words)
        .ok_or_else(|| Error::format("the saved session is damaged: no random stream"))
}

/// The part of a state that does not grow.
fn save_fixed(out: &mut Writer, state: &State) -> Result<()> {
    out.numbers(&state.last_hidden)?;
    out.numbers(&state.recurrent.delta)?;
    out.numbers(&state.recurrent.conv)
}

fn load_fixed(input: &mut Reader, state: &mut State) -> Result<()> {
    let recurrent = Arc::get_mut(&mut state.recurrent)
        .ok_or_else(|| Error::internal("a new state is shared"))?;
    input.read_numbers(&mut state.last_hidden)?;
    input.read_numbers(&mut recurrent.delta)?;
    input.read_numbers(&mut recurrent.conv)
}

/// A mark, whose keys and values are a beginning of those of `state`, made from the empty
/// state `own`.
fn load_mark(input: &mut Reader, state: &State, mut own: State) -> Result<Mark> {
    let mut words = [0; 6];
    for word in &mut words {
        *word = input.u64()?;
    }
    let [id, position, automatic, output_start, computed, queued] = words;
    let rng = load_rng(input)?;
    load_fixed(input, &mut own)?;
    let damaged = || Error::format("the saved session is damaged: a mark behind its end");
    if !waiting(position, computed, queued) || computed > state.position as u64 {
        return Err(damaged());
    }
    let size = |number: u64| usize::try_from(number).map_err(|_| damaged());
    let (computed, position, queued) = (size(computed)?, size(position)?, size(queued)?);
    own.position = computed;
    for (to, from) in own.kv.iter_mut().zip(&state.kv) {
        *to = from.fork()?;
        to.truncate(computed);
    }
    let info = MarkInfo { id, position, automatic: automatic != 0 };
    let output_start = size(output_start)?;
    Ok(Mark { info, state: own, output_start, queued, rng })
}
