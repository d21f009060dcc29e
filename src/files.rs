//! Reading the files of a checkpoint, which are a stranger's, and showing untrusted text in
//! messages.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind as IoKind, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result, shown};

/// Opens a regular file for reading and gives its length in bytes.
///
/// Never blocks on a pipe that someone named like a weight file, and says more than "not found"
/// about broken links, the usual damage of a download cache.
pub(crate) fn open_regular(path: &Path) -> Result<(File, u64)> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)
        .map_err(|e| open_error(path, &e))?;
    let meta = file.metadata().map_err(|e| Error::io(path, "read its size", &e))?;
    if !meta.is_file() {
        return Err(Error::new(
            ErrorKind::Io,
            format!("{}: not a regular file, it is {}", shown(path), kind_of(meta.file_type())),
        ));
    }
    Ok((file, meta.len()))
}

/// Why `path` could not be opened.
pub(crate) fn open_error(path: &Path, error: &std::io::Error) -> Error {
    let target = match std::fs::read_link(path) {
        Ok(target) if error.kind() == IoKind::NotFound => target,
        _ => return Error::io(path, "open", error),
    };
    let full = path.parent().unwrap_or(Path::new("")).join(&target);
    let mut partial = full.into_os_string();
    partial.push(".incomplete");
    let hint = if PathBuf::from(partial).exists() { "; its download is incomplete" } else { "" };
    Error::new(
        ErrorKind::Io,
        format!("{}: a link to {}, which does not exist{hint}", shown(path), shown(&target)),
    )
}

/// Whether a folder lists `path`, also as a link to nowhere: that is damage, not absence.
pub(crate) fn is_listed(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// Makes sure that a new file may take the place of what is at `path`: of a regular file or of
/// nothing, also where a link leads to one of these. A device, a pipe or a folder is nobody's to
/// replace; renaming would do it all the same.
pub(crate) fn check_place(path: &Path) -> Result<()> {
    use std::os::unix::ffi::OsStrExt;
    const EXPECTED: &str = "expected the path of a regular file, or one where nothing is";
    let refuse = |found: &str| {
        Error::new(ErrorKind::Io, format!("{}: it is {found}, {EXPECTED}", shown(path)))
    };
    match std::fs::metadata(path) {
        Ok(there) if there.is_file() => {}
        Ok(there) => return Err(refuse(kind_of(there.file_type()))),
        Err(error) if error.kind() == IoKind::NotFound => {}
        Err(error) => return Err(Error::io(path, "look at", &error)),
    }
    if path.file_name().is_none() || path.as_os_str().as_bytes().ends_with(b"/") {
        return Err(refuse("the name of a folder"));
    }
    Ok(())
}

/// What something is that is not a regular file.
pub(crate) fn kind_of(kind: std::fs::FileType) -> &'static str {
    match kind {
        kind if kind.is_dir() => "a folder",
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_fifo() => "a pipe",
        kind if kind.is_socket() => "a socket",
        kind if kind.is_char_device() || kind.is_block_device() => "a device",
        kind if kind.is_file() => "a regular file",
        _ => "of an unknown kind",
    }
}

/// The contents of a file of at most `limit` bytes.
pub(crate) fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let (file, length) = open_regular(path)?;
    if length > limit {
        return Err(Error::format(format!(
            "{}: {length} bytes long, expected at most {limit}",
            shown(path)
        )));
    }
    let mut bytes = Vec::new();
    // The limit holds even for files that grow, or that claim to be empty as those in /proc do.
    file.take(limit).read_to_end(&mut bytes).map_err(|e| Error::io(path, "read", &e))?;
    Ok(bytes)
}

/// The text of a file of at most `limit` bytes, without a byte order mark.
pub(crate) fn read_text(path: &Path, limit: u64) -> Result<String> {
    decode(read(path, limit)?).map_err(|e| e.within(shown(path)))
}

/// UTF-8 bytes to text without a byte order mark.
pub(crate) fn decode(mut bytes: Vec<u8>) -> Result<String> {
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        bytes.drain(..3);
    }
    String::from_utf8(bytes)
        .map_err(|e| Error::format(format!("not UTF-8 at byte {}", e.utf8_error().valid_up_to())))
}

/// Untrusted text in quotes, escaped, and cut to a readable length.
pub(crate) fn excerpt(text: &str) -> String {
    const LIMIT: usize = 120;
    match text.char_indices().nth(LIMIT) {
        Some((end, _)) => format!("{:?}... ({} bytes)", &text[..end], text.len()),
        None => format!("{text:?}"),
    }
}

/// The first few of many names, and how many more there are.
pub(crate) fn list<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN: usize = 5;
    let first: Vec<String> = names.iter().take(SHOWN).map(|n| cut(n.as_ref())).collect();
    let mut out = first.join(", ");
    if names.len() > SHOWN {
        out.push_str(&format!(", and {} more", names.len() - SHOWN));
    }
    out
}

/// Untrusted text without quotes where it is plain, else as [`excerpt`].
fn cut(text: &str) -> String {
    let plain = text.len() <= 120 && text.chars().all(|c| c == ' ' || c.is_ascii_graphic());
    if plain { text.to_owned() } else { excerpt(text) }
}
