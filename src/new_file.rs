//! Replacing a file so that it is there, whole, at every moment.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{ErrorKind as IoKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result, shown};
use crate::files::{check_place, kind_of};

/// How often to begin again when others make and remove the same name.
const TRIES: usize = 100;

/// A file that is being written beside its place. It is always a new one of this process, so
/// that nobody else's mode, owner or names come with it, and it is locked: one that a killed
/// process left behind is removed, one that is in use is not touched. Dropped before
/// [`NewFile::finish`], it goes.
pub(crate) struct NewFile {
    file: File,
    path: PathBuf,
    place: PathBuf,
    kept: bool,
}

impl NewFile {
    /// A file with `mode` that is to come to `place`. Until then it is called like that with
    /// `suffix` behind, the same for all that write to `place`.
    ///
    /// # Errors
    /// `Io` where the folder does not take it, and where something is at `place`, or under the
    /// name of the new file, that is not a regular file; `Busy` if somebody is writing a file for
    /// the same place.
    pub(crate) fn create(place: &Path, suffix: &str, mode: u32) -> Result<Self> {
        check_place(place)?;
        let mut name = place.file_name().unwrap_or_default().to_owned();
        name.push(suffix);
        let path = place.with_file_name(name);
        for _ in 0..TRIES {
            let mut options = OpenOptions::new();
            match options.write(true).create_new(true).mode(mode).open(&path) {
                Ok(file) => {
                    // Between the two, another one may have taken it for a leftover.
                    lock(&file, place)?;
                    if is_at(&file, &path)? {
                        let place = place.to_owned();
                        return Ok(Self { file, path, place, kept: false });
                    }
                }
                Err(error) if error.kind() == IoKind::AlreadyExists => {
                    remove_leftover(&path, place)?;
                }
                Err(error) => return Err(Error::io(&path, "create", &error)),
            }
        }
        Err(busy(place))
    }

    /// What to write to.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// What it is called now, for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Brings what was written to the disk and puts it in its place.
    ///
    /// # Errors
    /// `Io`; `Busy` where somebody took its name.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.file.sync_all().map_err(|e| Error::io(&self.path, "bring to disk", &e))?;
        // Where the file system knows no locks, another one may have removed it; its file, not
        // finished, is not to come to the place.
        if !is_at(&self.file, &self.path)? {
            self.kept = true;
            return Err(busy(&self.place));
        }
        fs::rename(&self.path, &self.place).map_err(|e| Error::io(&self.place, "replace", &e))?;
        self.kept = true;
        // Only now is the new name sure to survive a loss of power. Some file systems cannot do
        // this for folders; the file is whole all the same.
        let folder = match self.place.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        match File::open(folder).and_then(|folder| folder.sync_all()) {
            Err(error) if error.kind() != IoKind::InvalidInput => {
                Err(Error::io(folder, "bring to disk", &error))
            }
            _ => Ok(()),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.kept && is_at(&self.file, &self.path).unwrap_or(false) {
            // The error that led here is what counts.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Removes the file that a killed process left at `path`.
fn remove_leftover(path: &Path, place: &Path) -> Result<()> {
    let kind = match fs::symlink_metadata(path) {
        Ok(there) => there.file_type(),
        Err(error) if error.kind() == IoKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io(path, "look at", &error)),
    };
    if !kind.is_file() {
        return Err(in_the_way(path, kind));
    }
    let open = |write| {
        let mut options = OpenOptions::new();
        // Should it have changed since: neither follows a link nor waits for a pipe.
        let options = options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        options.read(true).write(write).open(path)
    };
    // Some file systems lock for one alone only what is open for writing.
    let file = match open(true) {
        Err(error) if error.kind() == IoKind::PermissionDenied => open(false),
        other => other,
    };
    let file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == IoKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io(path, "open what was left behind", &error)),
    };
    // Under the lock: what is at `path` is then nobody's work.
    lock(&file, place)?;
    if is_at(&file, path)? {
        fs::remove_file(path).map_err(|e| Error::io(path, "remove what was left behind", &e))?;
    }
    Ok(())
}

fn in_the_way(path: &Path, kind: fs::FileType) -> Error {
    Error::new(
        ErrorKind::Io,
        format!(
            "{}: it is {}, expected nothing there: the new file is written under this name",
            shown(path),
            kind_of(kind)
        ),
    )
}

fn busy(place: &Path) -> Error {
    Error::busy(format!("{}: another file is being written for this place", shown(place)))
}

/// Locks `file`. Where the file system knows no locks, they are the caller's care.
fn lock(file: &File, place: &Path) -> Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(busy(place)),
        // No locks: each file system says so in a way of its own.
        Err(TryLockError::Error(_)) => Ok(()),
    }
}

/// Whether `file` is what is at `path`: whoever held the lock before may have renamed or removed
/// it.
fn is_at(file: &File, path: &Path) -> Result<bool> {
    let fail = |e: std::io::Error| Error::io(path, "look at", &e);
    let mine = file.metadata().map_err(fail)?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (mine.dev(), mine.ino())),
        Err(error) if error.kind() == IoKind::NotFound => Ok(false),
        Err(error) => Err(fail(error)),
    }
}
