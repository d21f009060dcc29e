//! Packed files: making and checking them.

use std::ffi::{c_char, c_void};

use super::arguments::{self, Sized32, fill, flags};
use super::guard::call;
use super::model::{WEIGHT_FORMATS, constant, file_path, qwen_weights};
use super::open::{qwen_work_callback, work_progress};
use super::status::{QWEN_OK, qwen_status};
use crate::pack;

/// How to pack. Zero means default, everywhere.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_pack_options {
    /// sizeof(qwen_pack_options)
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// What weight matrices are made into.
    pub weights: qwen_weights,
    /// Threads that quantize, the calling thread included. 0: as many as this process may use.
    pub threads: u32,
}

// SAFETY: integers only, struct_size first.
unsafe impl Sized32 for qwen_pack_options {
    const NAME: &'static str = "qwen_pack_options";
    const FIRST_SIZE: usize = 16;
}

/// What qwen_pack() made. Set struct_size before asking.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_pack_info {
    /// sizeof(qwen_pack_info)
    pub struct_size: u32,
    /// 0.
    pub reserved: u32,
    /// Length of the file.
    pub file_bytes: u64,
    /// Bytes of the weights in it.
    pub weight_bytes: u64,
    /// Tells the source checkpoint from others, whatever the format it was packed in.
    pub fingerprint: u64,
}

// SAFETY: integers only, struct_size first.
unsafe impl Sized32 for qwen_pack_info {
    const NAME: &'static str = "qwen_pack_info";
    const FIRST_SIZE: usize = 32;
}

/// Packs a model into one file that holds all it needs: weights in the layout that is computed
/// with, tokenizer, chat template, configuration. qwen_model_open() opens it in a fraction of
/// the time that a folder takes, on every CPU. docs/packed-format.md says what is in it.
///
/// The file is written beside its place, as its name with ".packing" behind, and moved there
/// when it is whole and on the disk; one that was there is replaced then, and not touched
/// before. A file of that name that a killed process left behind is removed by the next call
/// for the same place, and may be removed by hand. A symbolic link at the place is
/// replaced, not followed. What is not a regular file (a folder, a device, a pipe, a socket,
/// or a link to one) is refused and left alone.
///
/// source, source_length: as path of qwen_model_open(). Quantized weights of a packed file are
/// copied.
/// destination, destination_length: the file to make.
/// options: NULL, or options, used during the call.
/// callback: NULL, or what is told the bytes done and to do, and may end the call.
/// user: handed to it; never looked at.
/// info: NULL, or filled as far as its struct_size reaches.
///
/// Returns QWEN_OK; QWEN_CANCELLED; as qwen_model_open() for the source; QWEN_ERROR_IO where
/// the file cannot be written; QWEN_ERROR_BUSY while another call is writing a file for the
/// same place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_pack(
    source: *const c_char,
    source_length: usize,
    destination: *const c_char,
    destination_length: usize,
    options: *const qwen_pack_options,
    callback: qwen_work_callback,
    user: *mut c_void,
    info: *mut qwen_pack_info,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let source = file_path("source", source, source_length)?;
        let destination = file_path("destination", destination, destination_length)?;
        let given = arguments::options(options)?;
        flags(given.flags, 0)?;
        let options = pack::PackOptions {
            weights: constant("weights", given.weights, &WEIGHT_FORMATS)?,
            threads: given.threads as usize,
        };
        if !info.is_null() {
            // A struct_size that cannot be is better told before the work than after it.
            let nothing = qwen_pack_info {
                struct_size: 0,
                reserved: 0,
                file_bytes: 0,
                weight_bytes: 0,
                fingerprint: 0,
            };
            fill("info", info, &nothing)?;
        }
        let made = pack::pack(source, destination, &options, &mut work_progress(callback, user))?;
        if !info.is_null() {
            let value = qwen_pack_info {
                struct_size: 0,
                reserved: 0,
                file_bytes: made.bytes,
                weight_bytes: made.weight_bytes,
                fingerprint: made.fingerprint,
            };
            fill("info", info, &value)?;
        }
        Ok(QWEN_OK)
    })
}

/// Checks all of a packed file, every byte of the weights included, which opening does not
/// read.
///
/// path, path_length: the file.
/// callback: NULL, or what is told the bytes done and to do, and may end the call.
/// user: handed to it; never looked at.
///
/// Returns QWEN_OK; QWEN_CANCELLED; QWEN_ERROR_FORMAT for a file that is damaged, with what
/// and where; as qwen_model_open() otherwise.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_pack_verify(
    path: *const c_char,
    path_length: usize,
    callback: qwen_work_callback,
    user: *mut c_void,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let path = file_path("path", path, path_length)?;
        pack::verify(path, &mut work_progress(callback, user))?;
        Ok(QWEN_OK)
    })
}
