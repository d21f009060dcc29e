//! An opened checkpoint: network, tokenizer, chat template and the threads that compute.

mod estimate;
mod open;
mod origin;

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::chat::{ChatRequest, ChatTemplate, Segment};
use crate::checkpoint::Config;
use crate::kernels::{Cancel, Compute, ComputeMode, Isa, KvElement, products_revision};
use crate::log::{Level, Log};
use crate::model::prefix_cache::PrefixCache;
use crate::model::{HeadCounts, Network, State, WeightFormat, Workspace};
use crate::pool::Pool;
use crate::statistics::{Statistics, Totals};
use crate::tokenizer::{AddedTokens, Tokenizer};
use crate::{Error, Result};

pub use estimate::{Estimate, KvBytes};
use open::{compute_mode, default_kv};
pub(crate) use open::{quantizer, weight_format};
pub use origin::Origin;

/// How to open a checkpoint.
#[derive(Clone, Debug, Default)]
pub struct ModelOptions {
    /// Threads that compute, the caller's own included; 0: as many as this process may use
    /// (affinity mask and cgroup quota).
    pub threads: usize,
    /// The instruction set, `scalar`, `avx2` or `avx512`; `None`: the widest this CPU has.
    pub isa: Option<String>,
    /// Open the tokenizer and chat template only; weights need not be there.
    pub tokenizer_only: bool,
    /// Where the model's messages go.
    pub log: Log,
    /// What weight matrices are made into.
    pub weights: WeightFormat,
    /// How products with weights are computed; `None`: exactly for weights as stored, fast
    /// for quantized ones.
    pub compute: Option<ComputeMode>,
    /// Memory for computed beginnings that sessions share, see
    /// [`crate::SessionOptions::cache_namespace`]; 0: none are shared.
    pub prefix_cache_bytes: usize,
}

/// What spellings of added tokens in a caller's strings become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChatEncoding {
    /// Ordinary text. Only the template writes control tokens, so no message can.
    #[default]
    Safe,
    /// The added tokens they spell, as Transformers does.
    AsTransformers,
}

/// An opened checkpoint, shared by its sessions. Clones are the same model.
#[derive(Clone)]
pub struct Model {
    inner: Arc<Inner>,
}

struct Inner {
    tokenizer: Tokenizer,
    /// An unusable template is an error of chat, not of opening: the rest still works.
    chat_template: Result<Option<ChatTemplate>>,
    end_of_turn: Vec<u32>,
    turn_start: Option<u32>,
    engine: Option<Engine>,
    log: Log,
    prefix_cache: Option<PrefixCache>,
    totals: Arc<Totals>,
}

struct Engine {
    network: Network,
    isa: Isa,
    format: WeightFormat,
    mode: ComputeMode,
    pool: Pool,
    /// Scratch of passes that have ended, lent again to the next ones.
    workspaces: Mutex<Vec<Workspace>>,
    weight_bytes: u64,
    fingerprint: u64,
    /// See [`quantizer`].
    quantizer: u32,
}

impl Model {
    /// Does once what the first prompt would wait for: computes a few tokens on a state of its
    /// own, which reads all weights from the disk, makes scratch memory and wakes the threads.
    /// `progress` is told the layers done and the layers to do, and cancels by `Break`.
    ///
    /// # Errors
    /// `InvalidState` when only the tokenizer was opened, `Cancelled`, `OutOfMemory`. The model
    /// is as before.
    pub fn warm_up(&self, progress: &mut dyn FnMut(usize, usize) -> ControlFlow<()>) -> Result<()> {
        let start = Instant::now();
        self.compute(&Cancel::new(), |network, c, workspace| {
            let mut state = State::new(network.config(), self.default_kv())?;
            // More than a step of decoding, so that scratch memory for prompts is there too.
            let tokens = [0; 16];
            let layers = network.layers();
            let mut ask = |done| match progress(done, layers + 1) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => Err(Error::cancelled("warming up was cancelled")),
            };
            network.forward(c, &tokens, &mut state, workspace, &mut ask)?;
            ask(layers)?;
            let mut logits = vec![0.0; network.config().vocab_size];
            network.head(c, &state.last_hidden, &mut logits)?;
            ask(layers + 1)
        })?;
        self.inner.log.write(Level::Info, || {
            format!("warmed up in {:.1} ms", start.elapsed().as_secs_f64() * 1e3)
        });
        Ok(())
    }

    /// What all sessions have done since it was opened.
    pub fn statistics(&self) -> Statistics {
        self.inner.totals.statistics()
    }

    /// What choices of tokens came to that needed part of the logits of a quantized model only.
    ///
    /// # Errors
    /// `InvalidState` when only the tokenizer was opened.
    pub fn head_counts(&self) -> Result<HeadCounts> {
        Ok(self.network()?.head_counts())
    }

    pub(crate) fn totals(&self) -> &Arc<Totals> {
        &self.inner.totals
    }

    /// Whether `other` is this model, not merely the same checkpoint opened again.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.inner.tokenizer
    }

    /// The chat template.
    ///
    /// # Errors
    /// `Template` if the checkpoint has none, or one that cannot be used.
    pub fn chat_template(&self) -> Result<&ChatTemplate> {
        match &self.inner.chat_template {
            Ok(Some(template)) => Ok(template),
            Ok(None) => Err(Error::template(
                "the checkpoint has no chat template: neither chat_template.jinja nor a \
                 chat_template in tokenizer_config.json",
            )),
            Err(error) => Err(error.clone()),
        }
    }

    /// Renders a conversation by the checkpoint's template and tokenizes it.
    ///
    /// # Errors
    /// `Template`: there is none, or it refused the messages.
    pub fn encode_chat(&self, request: &ChatRequest, encoding: ChatEncoding) -> Result<Vec<u32>> {
        let (template, tokenizer) = (self.chat_template()?, self.tokenizer());
        let mut ids = Vec::new();
        match encoding {
            ChatEncoding::AsTransformers => {
                let text = template.render(request)?;
                tokenizer.encode(&text, AddedTokens::Honour, &mut ids);
            }
            ChatEncoding::Safe => {
                for segment in template.render_segments(request)? {
                    match segment {
                        Segment::Text(text) => {
                            tokenizer.encode(&text, AddedTokens::AsText, &mut ids);
                        }
                        Segment::Control(spelling) => ids.extend(tokenizer.token_id(&spelling)),
                    }
                }
            }
        }
        Ok(ids)
    }

    /// The beginning that the next prompt will have, whatever a user says next: the messages
    /// as they stand once they are history, which is where templates drop thoughts and empty
    /// think blocks. It ends where the user's turn begins.
    ///
    /// # Errors
    /// As [`Model::encode_chat`].
    pub fn encode_history(
        &self,
        request: &ChatRequest,
        encoding: ChatEncoding,
    ) -> Result<Vec<u32>> {
        // What two questions that differ at once have in common.
        let mut ids = self.encode_chat(&request.with_question("a"), encoding)?;
        let other = self.encode_chat(&request.with_question("b"), encoding)?;
        let common = ids.iter().zip(&other).take_while(|(a, b)| a == b).count();
        ids.truncate(common);
        // The header of the user's turn is its own.
        if let Some(start) = self.turn_start_id()
            && let Some(header) = ids.iter().rposition(|id| *id == start)
            && ids[header..].iter().all(|id| !self.end_of_turn_ids().contains(id))
        {
            ids.truncate(header);
        }
        Ok(ids)
    }

    /// The ids that end a turn: all that the checkpoint's files name, ascending.
    pub fn end_of_turn_ids(&self) -> &[u32] {
        &self.inner.end_of_turn
    }

    /// The control token that begins a turn, if the tokenizer has the usual one.
    pub fn turn_start_id(&self) -> Option<u32> {
        self.inner.turn_start
    }

    /// The beginnings that sessions share, if the options gave them memory.
    pub fn prefix_cache(&self) -> Option<&PrefixCache> {
        self.inner.prefix_cache.as_ref()
    }

    /// Whether weights are open; without them there are no sessions.
    pub fn has_weights(&self) -> bool {
        self.inner.engine.is_some()
    }

    /// The network's configuration, where weights are open.
    pub fn config(&self) -> Option<&Config> {
        self.inner.engine.as_ref().map(|engine| engine.network.config())
    }

    /// The name of the instruction set that computes, where weights are open.
    pub fn isa(&self) -> Option<&'static str> {
        self.inner.engine.as_ref().map(|engine| engine.isa.name())
    }

    /// Threads that compute, the caller's included, where weights are open.
    pub fn threads(&self) -> Option<usize> {
        self.inner.engine.as_ref().map(|engine| engine.pool.threads())
    }

    /// What weight matrices were made into, where weights are open.
    pub fn weight_format(&self) -> Option<WeightFormat> {
        self.inner.engine.as_ref().map(|engine| engine.format)
    }

    /// How products with weights are computed, where weights are open.
    pub fn compute_mode(&self) -> Option<ComputeMode> {
        self.inner.engine.as_ref().map(|engine| engine.mode)
    }

    /// How sessions store keys and values where their options do not say: as computed in exact
    /// mode, in 16 bits in fast mode.
    pub fn default_kv(&self) -> KvElement {
        default_kv(self.compute_mode().unwrap_or_default())
    }

    /// Bytes of the weights in use: in the mapped files as stored, or in memory.
    pub fn weight_bytes(&self) -> u64 {
        self.inner.engine.as_ref().map_or(0, |engine| engine.weight_bytes)
    }

    /// Tells this model from others, see [`Checkpoint::fingerprint`].
    ///
    /// [`Checkpoint::fingerprint`]: crate::checkpoint::Checkpoint::fingerprint
    ///
    /// # Errors
    /// `InvalidState` when only the tokenizer was opened.
    pub fn fingerprint(&self) -> Result<u64> {
        Ok(self.engine()?.fingerprint)
    }

    /// In what form the weights are and how they are computed with: a state continues as it
    /// would have only where this is the same. 24 bytes at most.
    ///
    /// # Errors
    /// `InvalidState` when only the tokenizer was opened.
    pub(crate) fn numerics(&self) -> Result<String> {
        let engine = self.engine()?;
        let revision = match engine.quantizer {
            0 => String::new(),
            revision => format!(".{revision}"),
        };
        let products = match (engine.format.tiles(), engine.mode) {
            (Some(format), ComputeMode::Fast) => products_revision(format),
            _ => 1,
        };
        // The first ones were not told apart.
        let products = if products > 1 { format!(".{products}") } else { String::new() };
        Ok(format!("{:?}{revision} {:?}{products}", engine.format, engine.mode).to_lowercase())
    }

    /// The network.
    ///
    /// # Errors
    /// `InvalidState` when only the tokenizer was opened.
    pub(crate) fn network(&self) -> Result<&Network> {
        Ok(&self.engine()?.network)
    }

    fn engine(&self) -> Result<&Engine> {
        self.inner.engine.as_ref().ok_or_else(|| {
            Error::invalid_state("this model was opened without its weights (tokenizer only)")
        })
    }

    /// Calls `work` with what computes and a workspace of its own.
    pub(crate) fn compute<R>(
        &self,
        cancel: &Cancel,
        work: impl FnOnce(&Network, &Compute, &mut Workspace) -> Result<R>,
    ) -> Result<R> {
        let engine = self.engine()?;
        let lock = || engine.workspaces.lock().unwrap_or_else(|poison| poison.into_inner());
        let mut workspace = lock().pop().unwrap_or_default();
        let compute = Compute::new(engine.isa, &engine.pool, cancel).with_mode(engine.mode);
        let result = work(&engine.network, &compute, &mut workspace);
        lock().push(workspace);
        result
    }
}
