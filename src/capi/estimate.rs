//! What a model costs, before it is opened.

use std::ffi::{c_char, c_void};

use super::arguments::{Out, Sized32, array, fill};
use super::files::{host_folder, qwen_file_callbacks};
use super::guard::call;
use super::model::{file_path, model_options, qwen_model_options};
use super::open::{host_read, qwen_read_callback};
use super::status::{QWEN_OK, Result, qwen_status};
use crate::engine::Estimate;
use crate::{Model, ModelOptions};

/// What a model takes in memory, in bytes, see qwen_model_estimate(). The tokenizer (some
/// 10 MB at the published vocabulary) comes on top. Set struct_size before asking.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_model_cost {
    /// sizeof(qwen_model_cost)
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Weights in use.
    pub weight_bytes: u64,
    /// Of those, what is mapped from a file: memory the operating system can take back and
    /// shares between processes. Tensors that lie unaligned in a safetensors file are copied
    /// and do not count.
    pub mapped_bytes: u64,
    /// A session that holds the number of tokens asked for, with QWEN_KV_AUTO.
    pub session_bytes: u64,
    /// Of those, what it takes at the start. The rest comes with its tokens, in pages of 64.
    pub session_start_bytes: u64,
    /// What each copy of a session, and each position that it can go back to, takes beyond
    /// the pages that are shared.
    pub copy_bytes: u64,
    /// Scratch memory for each session that computes at the same time as others. It is kept
    /// for the next ones.
    pub scratch_bytes: u64,
    /// The keys and values of the number of tokens asked for, in FP32: the part of
    /// session_bytes that the kv of qwen_session_options changes.
    pub kv_fp32_bytes: u64,
    /// The same in FP16.
    pub kv_fp16_bytes: u64,
    /// The same in INT8.
    pub kv_int8_bytes: u64,
}

// SAFETY: integers only, struct_size first.
unsafe impl Sized32 for qwen_model_cost {
    const NAME: &'static str = "qwen_model_cost";
    const FIRST_SIZE: usize = 56;
}

/// Fills `cost` with what `estimate` says for the options and the tokens of a session.
///
/// # Safety
/// `cost` and `options` are as the header asks for.
unsafe fn give(
    options: *const qwen_model_options,
    context: u64,
    cost: *mut qwen_model_cost,
    estimate: impl FnOnce(&ModelOptions, usize) -> Result<Estimate>,
) -> Result<qwen_status> {
    // SAFETY: the caller's promise.
    let options = unsafe {
        Out::new("cost", cost)?;
        model_options(options)?
    };
    let estimate = estimate(&options, usize::try_from(context).unwrap_or(usize::MAX))?;
    let value = qwen_model_cost {
        struct_size: 0,
        reserved: 0,
        weight_bytes: estimate.weights,
        mapped_bytes: estimate.mapped,
        session_bytes: estimate.session,
        session_start_bytes: estimate.session_start,
        copy_bytes: estimate.mark,
        scratch_bytes: estimate.scratch,
        kv_fp32_bytes: estimate.kv.f32,
        kv_fp16_bytes: estimate.kv.f16,
        kv_int8_bytes: estimate.kv.i8,
    };
    // SAFETY: the caller's promise.
    unsafe { fill("cost", cost, &value) }?;
    Ok(QWEN_OK)
}

/// Says what a model and a session on it will take in memory, before it is opened. Headers
/// are read and checked as by qwen_model_open(), weights are not read.
///
/// path, path_length: as for qwen_model_open().
/// options: those it will be opened with, used during the call; NULL for the defaults.
/// context: tokens of the session. 0: as many as the model was made for.
/// cost: filled as far as its struct_size reaches, which must be set; owned by the caller.
///
/// Returns as qwen_model_open(), for what it reads: a tokenizer that is damaged or does not
/// fit, weights that cannot be quantized, and an instruction set or threads that cannot be had
/// show only when the model is opened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_estimate(
    path: *const c_char,
    path_length: usize,
    options: *const qwen_model_options,
    context: u64,
    cost: *mut qwen_model_cost,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let path = file_path("path", path, path_length);
        give(options, context, cost, |options, context| {
            Ok(Model::estimate(path?, options, context)?)
        })
    })
}

/// The same for a packed file in memory that qwen_model_open_memory() is to open. Nothing is
/// mapped. Where that function uses the memory as it is, weight_bytes are not taken on top
/// of it.
///
/// data, length: the file, used during the call.
/// options, context, cost: as for qwen_model_estimate().
///
/// Returns as qwen_model_open_memory().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_estimate_memory(
    data: *const c_void,
    length: usize,
    options: *const qwen_model_options,
    context: u64,
    cost: *mut qwen_model_cost,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let file = array::<u8>("data", data.cast(), length);
        give(options, context, cost, |options, context| {
            Ok(Model::estimate_memory(file?, options, context)?)
        })
    })
}

/// The same for a packed file that the host reads, which qwen_model_open_reader() is to open.
/// All but large weights is read, some 10 MB at the published vocabulary. Nothing is mapped.
///
/// size, read, user: as for qwen_model_open_reader(); used during the call.
/// options, context, cost: as for qwen_model_estimate().
///
/// Returns as qwen_model_open_reader().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_estimate_reader(
    size: u64,
    read: qwen_read_callback,
    user: *mut c_void,
    options: *const qwen_model_options,
    context: u64,
    cost: *mut qwen_model_cost,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let read = host_read(read, user);
        give(options, context, cost, |options, context| {
            Ok(Model::estimate_reader(size, &mut read?, options, context)?)
        })
    })
}

/// The same for a folder that the host reads, which qwen_model_open_files() is to open. Small
/// files are read whole, of weight files the headers. Nothing is mapped.
///
/// files, user: as for qwen_model_open_files(); used during the call.
/// options, context, cost: as for qwen_model_estimate().
///
/// Returns as qwen_model_open_files(). All files that were opened are closed again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_estimate_files(
    files: *const qwen_file_callbacks,
    user: *mut c_void,
    options: *const qwen_model_options,
    context: u64,
    cost: *mut qwen_model_cost,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let folder = host_folder(files, user);
        give(options, context, cost, |options, context| {
            Ok(Model::estimate_host(folder?, options, context)?)
        })
    })
}
