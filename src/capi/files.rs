//! Opening a checkpoint folder that the host reads.

use std::ffi::{c_char, c_void};
use std::ptr::null_mut;

use super::arguments::{Out, Sized32, flags, options};
use super::guard::call;
use super::handle;
use super::model::{model_options, open_progress, qwen_model, qwen_model_options};
use super::status::{Failure, QWEN_OK, Result, qwen_status};
use super::user::User;
use crate::checkpoint::{HostFile, HostFolder};
use crate::{Error, ErrorKind, Model};

/// What a qwen_file_open_callback returns if there is no file of that name: some files of a
/// checkpoint need not be there.
pub const QWEN_FILE_MISSING: i32 = 1;

/// Opens a file of a checkpoint folder.
///
/// name, length: as the file is called in the folder, "config.json" or
/// "model-00001-of-00003.safetensors" say; UTF-8, with a NUL behind it that length does not
/// count; valid during the call. It never leads out of the folder, but an index may name files
/// in folders below, as "a/b.safetensors".
/// file: receives what the other callbacks are to be given for it; may stay NULL.
/// size: receives its length in bytes.
///
/// Returns 0; QWEN_FILE_MISSING if there is none; anything else ends the opening with
/// QWEN_ERROR_IO.
///
/// This and the other two are called on the thread that opens the model, during that call,
/// under no lock, and must not use the model. They must return: an exception or longjmp()
/// through the library is undefined.
pub type qwen_file_open_callback = Option<
    unsafe extern "C" fn(
        name: *const c_char,
        length: usize,
        file: *mut *mut c_void,
        size: *mut u64,
        user: *mut c_void,
    ) -> i32,
>;

/// Reads length bytes of a file from offset on into buffer: all of them, or it fails. They lie
/// within the size that was given. 8 MiB at most are asked for at once, and 1 KiB often.
/// Returns 0; anything else ends the opening with QWEN_ERROR_IO.
pub type qwen_file_read_callback = Option<
    unsafe extern "C" fn(
        file: *mut c_void,
        offset: u64,
        buffer: *mut c_void,
        length: usize,
        user: *mut c_void,
    ) -> i32,
>;

/// Closes a file: called once for each that was opened, before the opening of the model
/// returns.
pub type qwen_file_close_callback =
    Option<unsafe extern "C" fn(file: *mut c_void, user: *mut c_void)>;

/// How the host reads a folder.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct qwen_file_callbacks {
    /// sizeof(qwen_file_callbacks)
    pub struct_size: u32,
    /// 0.
    pub flags: u32,
    /// Must be set.
    pub open: qwen_file_open_callback,
    /// Must be set.
    pub read: qwen_file_read_callback,
    /// NULL if there is nothing to do.
    pub close: qwen_file_close_callback,
}

// SAFETY: integers and pointers that may be NULL, struct_size first.
unsafe impl Sized32 for qwen_file_callbacks {
    const NAME: &'static str = "qwen_file_callbacks";
    const FIRST_SIZE: usize = 32;
}

/// The callbacks, called on the thread of the one call that they were given to.
#[derive(Clone, Copy)]
struct Calls {
    open:
        unsafe extern "C" fn(*const c_char, usize, *mut *mut c_void, *mut u64, *mut c_void) -> i32,
    read: unsafe extern "C" fn(*mut c_void, u64, *mut c_void, usize, *mut c_void) -> i32,
    close: qwen_file_close_callback,
}

struct Folder {
    calls: Calls,
    user: User,
}

struct File {
    calls: Calls,
    user: User,
    file: User,
    name: String,
    size: u64,
}

fn refused(action: &str, name: &str, code: i32) -> Error {
    Error::new(ErrorKind::Io, format!("{name:?}: the host cannot {action}: it returned {code}"))
}

impl HostFolder for Folder {
    fn open(&self, name: &str) -> crate::Result<Option<Box<dyn HostFile>>> {
        let Self { calls, user } = self;
        let terminated = std::ffi::CString::new(name)
            .map_err(|_| Error::format(format!("file name {name:?} has a NUL in it")))?;
        let (mut file, mut size) = (null_mut(), 0);
        // SAFETY: the host gave the function for being called so.
        let code = unsafe {
            (calls.open)(terminated.as_ptr(), name.len(), &mut file, &mut size, user.get())
        };
        match code {
            0 => {}
            QWEN_FILE_MISSING => return Ok(None),
            code => return Err(refused("open it", name, code)),
        }
        let (user, file) = (User::new(user.get()), User::new(file));
        Ok(Some(Box::new(File { calls: *calls, user, file, name: name.to_owned(), size })))
    }
}

impl HostFile for File {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> crate::Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        let (to, length) = (buffer.as_mut_ptr().cast(), buffer.len());
        // SAFETY: the host gave the function for being called so; `length` bytes are writable.
        match unsafe { (self.calls.read)(self.file.get(), offset, to, length, self.user.get()) } {
            0 => Ok(()),
            code => Err(refused(&format!("read {length} bytes at {offset}"), &self.name, code)),
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if let Some(close) = self.calls.close {
            // SAFETY: the host gave the function for being called so, once for each file.
            unsafe { close(self.file.get(), self.user.get()) };
        }
    }
}

/// The folder of the host.
///
/// # Safety
/// As [`options`]; the host gave the callbacks for being called with `user`.
pub(super) unsafe fn host_folder(
    files: *const qwen_file_callbacks,
    user: *mut c_void,
) -> Result<Box<dyn HostFolder>> {
    if files.is_null() {
        return Err(Failure::argument("`files` is NULL"));
    }
    // SAFETY: the caller's promise.
    let given = unsafe { options(files) }?;
    flags(given.flags, 0)?;
    let (Some(open), Some(read)) = (given.open, given.read) else {
        return Err(Failure::argument("`open` and `read` of `files` must be set"));
    };
    let calls = Calls { open, read, close: given.close };
    Ok(Box::new(Folder { calls, user: User::new(user) }))
}

/// Opens a Hugging Face folder that the host reads: out of a pak file, decrypting, from a
/// network. The files are those of qwen_model_open(), but for weights: model.safetensors, else
/// what model.safetensors.index.json names. Further templates in additional_chat_templates/
/// are not looked for.
///
/// Small files are read whole, of weight files the header, samples for the fingerprint, and
/// then the tensors of the text model, one after the other; vision and drafting weights are
/// not read. What is read is kept in memory, as stored or quantized (options->weights), so
/// that more than one tensor at a time is never there twice. A packed file takes fewer reads:
/// qwen_model_open_reader().
///
/// files: the callbacks, used during the call.
/// user: handed to them; never looked at.
/// options: NULL, or options, used during the call. Their progress callback counts each byte
/// twice, when it is read and when it is used, and can end the call between two reads.
/// model: receives a handle owned by the caller, for qwen_model_free(); NULL on failure.
///
/// Returns as qwen_model_open(). All files that were opened are closed again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qwen_model_open_files(
    files: *const qwen_file_callbacks,
    user: *mut c_void,
    options: *const qwen_model_options,
    model: *mut *mut qwen_model,
) -> qwen_status {
    // SAFETY: pointers are NULL or as the header asks for.
    call(|| unsafe {
        let out = Out::new("model", model)?;
        out.set(null_mut());
        let folder = host_folder(files, user)?;
        let mut progress = open_progress(options)?;
        let options = model_options(options)?;
        let model = Model::open_host(folder, &options, &mut progress)?;
        out.set(handle::create(model, ()));
        Ok(QWEN_OK)
    })
}
