//! Replacing a file so that it is there, whole, at every moment.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Lets `write` write a new file in the same folder, brings it to the disk, and puts it in
/// the place of `path` by renaming.
///
/// The new file is called like the old one with `.saving` behind it, and locked: one that a
/// killed process left behind is used again, one that is in use is `Busy`.
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    crate::files::check_place(path)?;
    let name = path.file_name().unwrap_or_default();
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mut new_name = name.to_owned();
    new_name.push(".saving");
    let new_path = folder.join(new_name);
    let file = lock(&new_path, path)?;

    let result = (|| {
        file.set_len(0).map_err(|e| Error::io(&new_path, "empty", &e))?;
        let mut sink = BufWriter::with_capacity(1 << 18, &file);
        write(&mut sink).map_err(|error| error.within(crate::error::shown(&new_path)))?;
        sink.flush().map_err(|e| Error::io(&new_path, "write", &e))?;
        drop(sink);
        file.sync_all().map_err(|e| Error::io(&new_path, "bring to disk", &e))?;
        fs::rename(&new_path, path).map_err(|e| Error::io(path, "replace", &e))
    })();
    if result.is_err() {
        let _ = fs::remove_file(&new_path);
        return result;
    }
    // Only now is the new name sure to survive a loss of power. Some file systems cannot do
    // this for folders; the file is whole all the same.
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    match synced {
        Err(error) if error.kind() != ErrorKind::InvalidInput => {
            Err(Error::io(folder, "bring to disk", &error))
        }
        _ => Ok(()),
    }
}

/// Opens `new_path` and makes sure that no other process or session writes to it.
fn lock(new_path: &PathBuf, path: &Path) -> Result<File> {
    let fail = |action, error: io::Error| Error::io(new_path, action, &error);
    loop {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600);
        // A link or a pipe of that name is not ours to write to.
        let file = file.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = file.open(new_path).map_err(|e| fail("create", e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::busy(format!(
                    "{}: another session is being saved to it",
                    crate::error::shown(path)
                )));
            }
            // A file system without locks: then it is the caller's care.
            Err(TryLockError::Error(e)) if e.kind() == ErrorKind::Unsupported => {}
            Err(TryLockError::Error(e)) => return Err(fail("lock", e)),
        }
        // Whoever held the lock before may have renamed or removed this very file since it
        // was opened; writing to it would change the finished one.
        let mine = file.metadata().map_err(|e| fail("look at", e))?;
        match fs::metadata(new_path) {
            Ok(there) if (there.dev(), there.ino()) == (mine.dev(), mine.ino()) => {
                return Ok(file);
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(fail("look at", error)),
        }
    }
}
