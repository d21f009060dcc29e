//! Saving to a file, which is replaced.

use std::io::{BufWriter, Write};
use std::path::Path;

use crate::new_file::NewFile;
use crate::{Error, Result};

/// Lets `write` write a new file in the same folder, brings it to the disk, and puts it in
/// the place of `path` by renaming.
///
/// The new file is called like the old one with `.saving` behind it, and readable by its owner
/// only; see [`NewFile`].
pub(crate) fn replace(path: &Path, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let new = NewFile::create(path, ".saving", 0o600)?;
    let mut sink = BufWriter::with_capacity(1 << 18, new.file());
    write(&mut sink).map_err(|error| error.within(crate::error::shown(new.path())))?;
    sink.flush().map_err(|e| Error::io(new.path(), "write", &e))?;
    drop(sink);
    new.finish()
}
