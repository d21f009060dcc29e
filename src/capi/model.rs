//! Models: an opened checkpoint.

use std::ffi::{OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;

use super::arguments::{Out, Sized32, as_i32, bytes, fill, flags, init, options};
use super::guard::{call, call_void};
use super::handle::{self, Freed, Object};
use super::status::{Failure, QWEN_OK, Result, qwen_status};
use crate::log::{Level, Log};
use crate::{ComputeMode, Model, ModelOptions, WeightFormat};

/// An opened checkpoint: tokenizer, chat template, weights and the threads that compute.
///
/// Every function takes it as const: many threads may use one model at once. Its sessions
/// and stream decoders keep it open when the handle is freed before them.
pub struct qwen_model {
    _opaque: [u8; 0],
}

/// The instruction set that computes: one of the QWEN_ISA constants.
pub type qwen_isa = i32;

/// The widest one this CPU has.
pub const QWEN_ISA_AUTO: qwen_isa = 0;
/// Any x86-64 CPU.
pub const QWEN_ISA_SCALAR: qwen_isa = 1;
/// AVX2 with FMA.
pub const QWEN_ISA_AVX2: qwen_isa = 2;
/// AVX-512.
pub const QWEN_ISA_AVX512: qwen_isa = 3;

const ISA_NAMES: [(qwen_isa, &str); 3] =
    [(QWEN_ISA_SCALAR, "scalar"), (QWEN_ISA_AVX2, "avx2"), (QWEN_ISA_AVX512, "avx512")];

/// What weight matrices are made into when a model is opened: one of the QWEN_WEIGHTS
/// constants.
pub type qwen_weights = i32;

/// Left as the checkpoint stores them (Qwen3.5: BF16), mapped from its files.
pub const QWEN_WEIGHTS_STORED: qwen_weights = 0;
/// INT8 with a scale for every 32 weights of a row: 8.5 bits per weight, in memory.
pub const QWEN_WEIGHTS_INT8: qwen_weights = 1;
/// INT4 with a scale for every 32 weights of a row: 4.5 bits per weight, in memory.
pub const QWEN_WEIGHTS_INT4: qwen_weights = 2;

pub(super) const WEIGHT_FORMATS: [(qwen_weights, WeightFormat); 3] = [
    (QWEN_WEIGHTS_STORED, WeightFormat::Stored),
    (QWEN_WEIGHTS_INT8, WeightFormat::Int8),
    (QWEN_WEIGHTS_INT4, WeightFormat::Int4),
];

/// How products with weights are computed: one of the QWEN_COMPUTE constants.
pub type qwen_compute = i32;

/// QWEN_COMPUTE_EXACT for weights as stored, QWEN_COMPUTE_FAST for quantized ones.
pub const QWEN_COMPUTE_AUTO: qwen_compute = 0;
/// In FP32, over the weights as they are.
pub const QWEN_COMPUTE_EXACT: qwen_compute = 1;
/// In dot products of narrow numbers with FP32 sums: with quantized weights, inputs are
/// rounded to INT8, with a scale for every 32 (INT8 weights) or 128 (INT4).
pub const QWEN_COMPUTE_FAST: qwen_compute = 2;

const COMPUTE_MODES: [(qwen_compute, Option<ComputeMode>); 3] = [
    (QWEN_COMPUTE_AUTO, None),
    (QWEN_COMPUTE_EXACT, Some(ComputeMode::Exact)),
    (QWEN_COMPUTE_FAST, Some(ComputeMode::Fast)),
];

/// Called on the calling thread while qwen_model_open() and its kin read weights: done of
/// total bytes of the checkpoint are read. (Where the host reads, each byte counts twice: when
/// it is read, and when it is used.) A return value other than 0 ends the call with
/// QWEN_CANCELLED, within some milliseconds, or after the read of the host in progress. No
/// lock is held. It must return: an exception or longjmp() through the library is undefined.
pub type qwen_open_callback =
    Option<unsafe extern "C" fn(done: u64, total: u64, user: *mut c_void) -> i32>;

/// In qwen_model_options.flags: open the tokenizer and the chat template only. A folder
/// without weights is enough; there are no sessions on such a model.
pub const QWEN_MODEL_TOKENIZER_ONLY: u32 = 0x1;

/// How much a model tells: one of the QWEN_LOG constants, each with all before it.
pub type qwen_log_level = i32;

/// Nothing.
pub const QWEN_LOG_NOTHING: qwen_log_level = 0;
/// Something does not work that the host may need.
pub const QWEN_LOG_WARNING: qwen_log_level = 1;
/// What was opened, and how.
pub const QWEN_LOG_INFO: qwen_log_level = 2;
/// How long each step took.
pub const QWEN_LOG_DEBUG: qwen_log_level = 3;

/// Takes a message of a model: one line of UTF-8 without a line break, ending with a NUL that
/// length does not count; valid during the call. It is called on the thread that makes the
/// call that the message is about, which may be any thread that uses the model, under no
/// lock. It must return: an exception or longjmp() through the library is undefined.
pub type qwen_log_callback = Option<
    unsafe extern "C" fn(
        level: qwen_log_level,
        message: *const c_char,
        length: usize,
        user: *mut c_void,
    ),
>;

/// How to open a model. Zero means default, everywhere.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_model_options {
    /// sizeof(qwen_model_options)
    pub struct_size: u32,
    /// QWEN_MODEL_TOKENIZER_ONLY or 0.
    pub flags: u32,
    /// Threads that compute, the calling thread included. 0: as many as this process may
    /// use (affinity mask and cgroup quota). At most 512. Where the system starts fewer, those
    /// compute, and a warning in the log says so: see `threads` of qwen_model_info.
    pub threads: u32,
    /// What computes. AVX2 and AVX-512 give the same bits; SCALAR differs by rounding.
    pub isa: qwen_isa,
    /// NULL, or what takes the model's messages for as long as the model lives.
    pub log: qwen_log_callback,
    /// Handed to log; never looked at.
    pub log_user: *mut c_void,
    /// Which messages log takes. 0: none.
    pub log_level: qwen_log_level,
    /// 0.
    pub reserved: u32,
    /// What weight matrices are made into. With a format other than QWEN_WEIGHTS_STORED they
    /// are quantized now, on all threads; small tensors that need it stay wide.
    pub weights: qwen_weights,
    /// How products with weights are computed.
    pub compute: qwen_compute,
    /// NULL, or what qwen_model_open() and the other ways to open tell how far they have
    /// come; it may end them.
    pub progress: qwen_open_callback,
    /// Handed to progress; never looked at.
    pub user: *mut c_void,
    /// Memory for computed beginnings of sequences that sessions share, see cache_namespace
    /// in qwen_session_options. 0: none are shared.
    pub prefix_cache_bytes: u64,
}

// SAFETY: integers and pointers that may be NULL, struct_size first.
unsafe impl Sized32 for qwen_model_options {
    const NAME: &'static str = "qwen_model_options";
    const FIRST_SIZE: usize = 16;
}

/// What a model is. Set struct_size before asking.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_model_info {
    /// sizeof(qwen_model_info)
    pub struct_size: u32,
    /// 1 if weights are open, 0 with QWEN_MODEL_TOKENIZER_ONLY. Fields marked (w) are 0 then.
    pub has_weights: u32,
    /// 1 if the checkpoint has a chat template that can be used.
    pub has_chat_template: u32,
    /// Ids from 0 that stand for text. Only these are generated.
    pub token_count: u32,
    /// (w) Rows of the embedding and number of logits. Ids from token_count on are padding:
    /// allowed as input, never generated, without text.
    pub vocab_size: u32,
    /// (w) The longest sequence the model was made for, in tokens.
    pub context_limit: u32,
    /// (w) Numbers per token between layers.
    pub hidden_size: u32,
    /// (w) Layers.
    pub layer_count: u32,
    /// (w) Threads that compute, the calling thread included.
    pub threads: u32,
    /// (w) What computes.
    pub isa: qwen_isa,
    /// (w) Bytes of weights in use. As stored they are mapped from the files: memory the
    /// operating system can take back and shares between processes. Only tensors that lie
    /// unaligned in a safetensors file are copied.
    pub weight_bytes: u64,
    /// (w) What weight matrices were made into.
    pub weights: qwen_weights,
    /// (w) How products with weights are computed: QWEN_COMPUTE_EXACT or QWEN_COMPUTE_FAST.
    pub compute: qwen_compute,
}

// SAFETY: integers only, struct_size first.
unsafe impl Sized32 for qwen_model_info {
    const NAME: &'static str = "qwen_model_info";
    const FIRST_SIZE: usize = 48;
}

impl Object for Model {
    type Public = qwen_model;
    type Side = ();
    const MAGIC: u64 = u64::from_le_bytes(*b"qwenMODL");
    const NAME: &'static str = "qwen_model";
    fn freed() -> &'static Freed<Self> {
        static FREED: Freed<Model> = Freed::new();
        &FREED
    }
}

/// Sets `size` bytes of options to their defaults: zeros, and struct_size = size. The macro
/// QWEN_MODEL_OPTIONS_INIT does the same in a declaration.
///
/// size is sizeof(qwen_model_options).
///
/// Returns QWEN_OK, or QWEN_ERROR_INVALID_ARGUMENT for NULL or a size that cannot be.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_options_init(
    options: *mut qwen_model_options,
    size: usize,
) -> qwen_status {
    // SAFETY: the header asks for `size` writable bytes.
    call(|| unsafe { init(options, size) })
}

/// Opens a packed file (see qwen_pack()) or the checkpoint in a Hugging Face folder:
/// config.json, tokenizer.json, tokenizer_config.json, the chat template, and safetensors
/// weights (single or sharded). Weights are mapped into memory. Every tensor is checked before
/// any is used. One in the layers of the text model that is not of a Qwen3.5 model, a bias or a
/// scale for one, is refused; other modules (vision, drafting) are left alone.
///
/// The weight files must stay as they are until the model is gone. Of one that is cut off the
/// system ends the process (SIGBUS) at the next touch of the lost part; one that is written over
/// in place changes the results. Moving a new file into the place of an old one is safe, and so
/// is removing it.
///
/// path, path_length: the file, the folder, or the weight file in it. Bytes as the file system takes
/// them, used during the call. A relative path is resolved now.
/// options: NULL, or options, used during the call.
/// model: receives a handle owned by the caller, for qwen_model_free(); NULL on failure.
///
/// Returns QWEN_OK; QWEN_ERROR_IO for a file that is missing or cannot be read;
/// QWEN_ERROR_FORMAT for one that is damaged or does not fit the others;
/// QWEN_ERROR_UNSUPPORTED for a model of another kind or an instruction set this CPU lacks;
/// QWEN_ERROR_INVALID_ARGUMENT; QWEN_ERROR_OUT_OF_MEMORY; QWEN_CANCELLED, when the progress
/// callback of the options asked for it, with model NULL. The message names the file, and
/// the tensor, and what is wrong with it. A failure leaves nothing open.
///
/// A chat template that cannot be used is no failure here, but of the chat functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_open(
    path: *const c_char,
    path_length: usize,
    options: *const qwen_model_options,
    model: *mut *mut qwen_model,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let out = Out::new("model", model)?;
        out.set(null_mut());
        let path = file_path("path", path, path_length)?;
        let mut progress = open_progress(options)?;
        let options = model_options(options)?;
        let model = Model::open_with_progress(path, &options, &mut progress)?;
        out.set(handle::create(model, ()));
        Ok(QWEN_OK)
    })
}

/// A path of the caller.
///
/// # Safety
/// As [`bytes`].
pub(super) unsafe fn file_path<'a>(
    name: &str,
    path: *const c_char,
    length: usize,
) -> Result<&'a Path> {
    // SAFETY: the caller's promise.
    let path = unsafe { bytes(name, path, length) }?;
    if path.is_empty() {
        return Err(Failure::argument(format!("`{name}` is empty")));
    }
    if path.contains(&0) {
        return Err(Failure::argument(format!("`{name}` has a NUL in it")));
    }
    Ok(Path::new(OsStr::from_bytes(path)))
}

/// # Safety
/// As [`options`].
pub(super) unsafe fn model_options(pointer: *const qwen_model_options) -> Result<ModelOptions> {
    // SAFETY: the caller's promise.
    let given = unsafe { options(pointer) }?;
    let isa = match given.isa {
        QWEN_ISA_AUTO => None,
        isa => Some(constant("isa", isa, &ISA_NAMES)?.to_owned()),
    };
    if given.reserved != 0 {
        return Err(Failure::argument("`reserved` is not 0"));
    }
    Ok(ModelOptions {
        log: log(given.log, given.log_user, given.log_level)?,
        threads: given.threads as usize,
        isa,
        tokenizer_only: flags(given.flags, QWEN_MODEL_TOKENIZER_ONLY)? != 0,
        weights: constant("weights", given.weights, &WEIGHT_FORMATS)?,
        compute: constant("compute", given.compute, &COMPUTE_MODES)?,
        prefix_cache_bytes: usize::try_from(given.prefix_cache_bytes).unwrap_or(usize::MAX),
    })
}

/// What is told how far opening has come, and says whether to go on.
///
/// # Safety
/// As [`options`]; to be called during the call that the options were given to.
pub(super) unsafe fn open_progress(
    pointer: *const qwen_model_options,
) -> Result<impl FnMut(u64, u64) -> bool> {
    // SAFETY: the caller's promise.
    let given = unsafe { options(pointer) }?;
    Ok(move |done, total| match given.progress {
        // SAFETY: the host gave the function for being called so.
        Some(callback) => unsafe { callback(done, total, given.user) == 0 },
        None => true,
    })
}

/// What the constant `value` stands for.
pub(super) fn constant<T: Copy>(name: &str, value: i32, known: &[(i32, T)]) -> Result<T> {
    let found = known.iter().find(|(constant, _)| *constant == value);
    found
        .map(|(_, meaning)| *meaning)
        .ok_or_else(|| Failure::argument(format!("`{name}` is {value}: no such constant")))
}

/// The constant that stands for `meaning`, or 0.
pub(super) fn constant_of<T: PartialEq>(meaning: &T, known: &[(i32, T)]) -> i32 {
    known.iter().find(|(_, other)| other == meaning).map_or(0, |(constant, _)| *constant)
}

/// Where the messages of a model go.
fn log(callback: qwen_log_callback, user: *mut c_void, level: qwen_log_level) -> Result<Log> {
    let level = match level {
        QWEN_LOG_NOTHING => return Ok(Log::default()),
        QWEN_LOG_WARNING => Level::Warning,
        QWEN_LOG_INFO => Level::Info,
        QWEN_LOG_DEBUG => Level::Debug,
        _ => return Err(Failure::argument(format!("`log_level` is {level}: no such constant"))),
    };
    let Some(callback) = callback else {
        return Err(Failure::argument("`log` is NULL, but `log_level` asks for messages"));
    };
    let user = User(user);
    Ok(Log::new(
        level,
        Arc::new(move |level, text| {
            let text = text.replace('\0', "\\0") + "\0";
            let length = text.len() - 1;
            // SAFETY: the host gave the function for being called so.
            unsafe { callback(level as qwen_log_level, text.as_ptr().cast(), length, user.get()) };
        }),
    ))
}

/// A pointer that only the host's own function looks at, which the header asks to be ready
/// for any thread.
pub(super) struct User(pub *mut c_void);

// SAFETY: the library never looks at what it points to.
unsafe impl Send for User {}
// SAFETY: as above.
unsafe impl Sync for User {}

impl User {
    pub(super) fn get(&self) -> *mut c_void {
        self.0
    }
}

/// Frees the handle. The memory goes when the last session and stream decoder on the model
/// are freed too. NULL is fine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_free(model: *mut qwen_model) {
    // SAFETY: the header asks for NULL or a handle.
    call_void(|| unsafe { handle::free::<Model>(model) });
}

/// Says what a model is.
///
/// info: filled as far as its struct_size reaches, which must be set; owned by the caller.
///
/// Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_get_info(
    model: *const qwen_model,
    info: *mut qwen_model_info,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let model = handle::read::<Model>(model)?;
        let config = model.config();
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let value = qwen_model_info {
            struct_size: 0,
            has_weights: model.has_weights().into(),
            has_chat_template: model.chat_template().is_ok().into(),
            token_count: number(model.tokenizer().token_count()),
            vocab_size: config.map_or(0, |c| number(c.vocab_size)),
            context_limit: config.map_or(0, |c| number(c.max_position_embeddings)),
            hidden_size: config.map_or(0, |c| number(c.hidden_size)),
            layer_count: config.map_or(0, |c| number(c.num_hidden_layers)),
            threads: number(model.threads().unwrap_or(0)),
            isa: model.isa().map_or(QWEN_ISA_AUTO, |isa| constant_of(&isa, &ISA_NAMES)),
            weight_bytes: model.weight_bytes(),
            weights: model.weight_format().map_or(0, |f| constant_of(&f, &WEIGHT_FORMATS)),
            compute: constant_of(&model.compute_mode(), &COMPUTE_MODES),
        };
        fill("info", info, &value)?;
        Ok(QWEN_OK)
    })
}

/// The ids that end a turn: all that the checkpoint's files name, ascending.
///
/// tokens: receives a borrowed array, valid until the model handle is freed.
/// count: receives its length.
///
/// Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_end_tokens(
    model: *const qwen_model,
    tokens: *mut *const i32,
    count: *mut usize,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let (tokens, count) = (Out::new("tokens", tokens)?, Out::new("count", count)?);
        tokens.set(std::ptr::null());
        count.set(0);
        let model = handle::read::<Model>(model)?;
        let ids = as_i32(model.end_of_turn_ids());
        tokens.set(ids.as_ptr());
        count.set(ids.len());
        Ok(QWEN_OK)
    })
}
