//! Sessions as bytes: to a file or to memory, and back.
//!
//! # Layout, version 4
//!
//! Little-endian. The parts follow each other without gaps, so that every number before a
//! part says where it is:
//!
//! ```text
//! header, 128 bytes
//!     0  magic "qwen35st"            8  u32 version, u32 size of the header
//!    16  u64 size of everything     24  u64 fingerprint of the model
//!    32  [u8; 24] numerics: format of the weights and way of computing, each with its
//!        revision, zeros behind
//!    56  u32 format of keys and values: 1 FP32, 2 FP16, 3 INT8; u32 0
//!    64  u64 tokens                 72  u64 tokens computed
//!    80  u64 bytes of attachment    88  u32 marks, u32 entries of logit bias
//!    96  u64 name of the next mark  104 u64 tokens queued, not computed
//!   112  u64 changes of all marks    120 u64 XXH64 of the 120 bytes before
//! tokens, u32 each
//! sampling: see `sampling_words`; random stream, 4 u64; bias, (u32 id, f32) each
//! u64 where the model's output begins; u64 length of the sequence before the tokens queued, u64
//!     where its output began (both 2^64 - 1: not known); u64 turns left out last, u64 hash of
//!     their messages
//! attachment
//! state: hidden [H] f32; delta, changes of the block of tokens that has been begun (as many as
//!     the tokens computed are beyond a multiple of four; see `kernels::delta`), conv, all f32; for
//!     each attention layer its pages, each with its elements and, in INT8, its scales (see
//!     `kernels::kv`)
//! for each mark: u64 name, position, automatic, output start, tokens computed and queued, and the
//!     two numbers of the tokens queued; random stream; hidden, delta, changes, conv (its keys and
//!     values are a beginning of the session's)
//! u64 XXH64 of everything behind the header
//! ```
//!
//! A reader trusts nothing: the header has its own checksum, every size in it is compared
//! with the model and with the size of the whole before memory is asked for, and the session
//! changes only after the last checksum was right.

mod bytes;
mod file;
mod header;
mod sampling;

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use super::Session;
use super::marks::{LAST_NAME, Mark, MarkInfo};
use super::overflow::LeftOut;
use super::step::BeforeInput;
use crate::kernels::KvPages;
use crate::model::State;
use crate::model::state::RecurrentShape;
use crate::sampling::{Rng, Sampler};
use crate::{Error, Result};
use bytes::{Reader, Writer};
pub(crate) use file::replace as replace_file;
pub(crate) use header::MAGIC;
use header::waiting;
use sampling::{SAMPLING_WORDS, sampling_from, sampling_words};

/// The largest attachment.
pub const MAX_ATTACHMENT: usize = 64 << 20;

/// What to save.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaveOptions {
    /// Leaves the marks out: a smaller file (19 to 20 MB less for each, at 0.8B), from which the
    /// next turn of a conversation has to compute the whole history again.
    pub without_marks: bool,
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
        save_before(&mut out, self.before_input())?;
        out.u64(self.left_out.turns as u64)?;
        out.u64(self.left_out.fingerprint)?;
        out.raw(&self.attachment)?;
        self.save_fixed(&mut out, &self.state)?;
        for layer in &self.state.kv {
            layer.store(self.state.position, &mut |part| out.raw(part))?;
        }
        for mark in self.marks_to_save(options) {
            let MarkInfo { id, position, automatic } = mark.info;
            let numbers = [position, mark.output_start, mark.state.position, mark.queued];
            let [position, output_start, computed, queued] = numbers.map(|number| number as u64);
            let words = [id, position, automatic.into(), output_start, computed, queued];
            words.into_iter().try_for_each(|word| out.u64(word))?;
            save_before(&mut out, mark.before)?;
            save_rng(&mut out, &mark.rng)?;
            self.save_fixed(&mut out, &mark.state)?;
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
        let before = load_before(&mut input, tokens.len())?;
        let left_out = LeftOut { turns: input.u64()? as usize, fingerprint: input.u64()? };
        let attachment = input.bytes(header.attachment as usize, "the attachment")?;

        let mut state = self.empty_state()?;
        self.load_fixed(&mut input, &mut state, header.computed)?;
        state.position = header.computed as usize;
        for layer in &mut state.kv {
            let shape = layer.shape();
            *layer = KvPages::load(shape, state.position, &mut |part| input.fill(part))?;
        }
        let mut marks = Vec::new();
        for _ in 0..header.marks {
            marks.push(self.load_mark(&mut input, &state)?);
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
        if header.next_mark > LAST_NAME {
            return Err(odd("no names are left for its next marks"));
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
        self.tokens = tokens.into();
        self.state = state;
        self.output_start = output_start;
        self.left_out = left_out;
        self.attachment = attachment;
        self.marks.held = marks;
        self.marks.next_id = self.marks.next_id.max(header.next_mark);
        self.resume_queue(header.queued as usize, before);
        self.mark_queued_turns();
        self.logits_position = None;
        self.last_fed = super::Fed::default();
        self.count_bytes();
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
    /// old file or the new one, whole. The file is readable by its owner only. A link at `path`
    /// is replaced, not followed.
    ///
    /// # Errors
    /// `Io`, also where `path` is, or is a link to, something that is not a regular file; `Busy`
    /// if another session is being saved to the same file; the old file is then as before.
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

    /// The part of a state that does not grow.
    fn save_fixed(&self, out: &mut Writer, state: &State) -> Result<()> {
        out.numbers(&state.last_hidden)?;
        let shape = RecurrentShape::new(self.model.network()?.config());
        state.recurrent.store(shape, &mut |part| out.numbers(part))
    }

    /// The same of a state after `computed` tokens.
    fn load_fixed(&self, input: &mut Reader, state: &mut State, computed: u64) -> Result<()> {
        let recurrent = Arc::get_mut(&mut state.recurrent)
            .ok_or_else(|| Error::internal("a new state is shared"))?;
        input.read_numbers(&mut state.last_hidden)?;
        let shape = RecurrentShape::new(self.model.network()?.config());
        let changes = RecurrentShape::changes_after(computed);
        recurrent.load(shape, changes, &mut |part| input.read_numbers(part))
    }

    /// A mark, whose keys and values are a beginning of those of `state`.
    fn load_mark(&self, input: &mut Reader, state: &State) -> Result<Mark> {
        let mut own = self.empty_state()?;
        let mut words = [0; 6];
        for word in &mut words {
            *word = input.u64()?;
        }
        let [id, position, automatic, output_start, computed, queued] = words;
        let before = load_before(input, usize::try_from(position).unwrap_or(usize::MAX))?;
        let rng = load_rng(input)?;
        self.load_fixed(input, &mut own, computed)?;
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
        Ok(Mark { info, state: own, output_start, queued, before, rng })
    }
}

/// 64-bit words in front of a mark's state.
const MARK_WORDS: u64 = 12;

fn save_before(out: &mut Writer, before: Option<BeforeInput>) -> Result<()> {
    let words = |before: BeforeInput| [before.length as u64, before.output_start as u64];
    let words = before.map_or([u64::MAX; 2], words);
    words.into_iter().try_for_each(|word| out.u64(word))
}

/// What [`save_before`] wrote of a sequence that has `most` tokens now.
fn load_before(input: &mut Reader, most: usize) -> Result<Option<BeforeInput>> {
    let [length, output_start] = [input.u64()?, input.u64()?];
    if [length, output_start] == [u64::MAX; 2] {
        return Ok(None);
    }
    if output_start > length || length > most as u64 {
        return Err(Error::format("the saved session is damaged: input that was queued"));
    }
    let (length, output_start) = (length as usize, output_start as usize);
    Ok(Some(BeforeInput { length, output_start }))
}

fn save_rng(out: &mut Writer, rng: &Rng) -> Result<()> {
    rng.state().into_iter().try_for_each(|word| out.u64(word))
}

fn load_rng(input: &mut Reader) -> Result<Rng> {
    let words = [input.u64()?, input.u64()?, input.u64()?, input.u64()?];
    Rng::from_state(words)
        .ok_or_else(|| Error::format("the saved session is damaged: no random stream"))
}
