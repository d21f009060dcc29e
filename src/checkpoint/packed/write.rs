//! Writing a packed file: beside its place under another name, and moved there when it is
//! whole and on the disk.

use std::io::{BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::checksum;
use super::entry::Section;
use super::{ALIGNMENT, ENTRY, Element, HEADER, Kind, MAGIC, MAX_NAME, VERSION, alignment_of};
use crate::new_file::NewFile;
use crate::{Error, Result};

/// Behind the name of the file while it is being written.
const SUFFIX: &str = ".packing";

/// What the header tells beyond the layout.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// 0 as stored, 1 INT8, 2 INT4.
    pub weight_format: u32,
    /// The [revision](crate::kernels::quantized::REVISION) of what quantized, 0 as stored.
    pub quantizer: u32,
    /// The fingerprint of the source checkpoint.
    pub fingerprint: u64,
}

/// A packed file that is being written. Until [`Writer::finish`] nothing is at its place, or
/// what was there before; a writer that is dropped leaves no trace.
pub struct Writer {
    file: BufWriter<NewFile>,
    position: usize,
    sections: Vec<Section>,
}

impl Writer {
    /// Begins a file that will be at `place`.
    ///
    /// # Errors
    /// `Io` where the folder does not take a new file, and where something is at `place` that is
    /// not a regular file; `Busy` while another file is being packed for the same place.
    pub fn create(place: &Path) -> Result<Writer> {
        // The working directory may change before it is finished.
        let place = std::path::absolute(place).map_err(|e| Error::io(place, "resolve", &e))?;
        let file = NewFile::create(&place, SUFFIX, 0o644)?;
        let mut writer = Writer {
            file: BufWriter::with_capacity(1 << 20, file),
            position: 0,
            sections: Vec::new(),
        };
        // Zeros stand for the header until all is known: an unfinished file is none.
        writer.write(&[0; HEADER])?;
        Ok(writer)
    }

    /// Writes a section in one piece. `bytes` must be what shape and element type need.
    ///
    /// # Errors
    /// `Io`; `Internal` where the section does not fit together.
    pub fn section(
        &mut self,
        kind: Kind,
        name: &str,
        element: Element,
        shape: &[usize],
        bytes: &[u8],
    ) -> Result<()> {
        let fits = element.bytes(shape) == Some(bytes.len())
            && (1..=4).contains(&shape.len())
            && !bytes.is_empty()
            && (1..=MAX_NAME).contains(&name.len());
        if !fits {
            return Err(Error::internal(format!(
                "section {name:?}: {} bytes for {element:?} {shape:?}",
                bytes.len()
            )));
        }
        self.pad(alignment_of(bytes.len()))?;
        let range = self.position..self.position + bytes.len();
        self.write(bytes)?;
        self.sections.push(Section {
            kind,
            element,
            name: name.to_owned(),
            shape: shape.to_vec(),
            range,
            checksum: checksum(bytes),
        });
        Ok(())
    }

    /// Writes a JSON document.
    ///
    /// # Errors
    /// `Io`.
    pub fn text(&mut self, name: &str, text: &[u8]) -> Result<()> {
        self.section(Kind::Text, name, Element::U8, &[text.len()], text)
    }

    /// Writes table and header, makes sure that all of it is on the disk, and moves the file
    /// to its place, where it replaces what was there. Returns its length.
    ///
    /// # Errors
    /// `Io`; what was at the place is then still there.
    pub fn finish(mut self, header: Header) -> Result<u64> {
        self.pad(ALIGNMENT)?;
        let start = self.position;
        let mut table = Vec::new();
        let mut name_at = self.sections.len() * ENTRY;
        for section in &self.sections {
            table.extend_from_slice(&section.encode(name_at));
            name_at += section.name.len();
        }
        for section in &self.sections {
            table.extend_from_slice(section.name.as_bytes());
        }
        self.write(&table)?;

        let mut head = [0; HEADER];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        put(8, &VERSION.to_le_bytes());
        put(12, &header.weight_format.to_le_bytes());
        put(16, &(self.position as u64).to_le_bytes());
        put(24, &(start as u64).to_le_bytes());
        put(32, &(table.len() as u64).to_le_bytes());
        put(40, &(self.sections.len() as u32).to_le_bytes());
        put(44, &header.quantizer.to_le_bytes());
        put(48, &header.fingerprint.to_le_bytes());
        put(56, &checksum(&table).to_le_bytes());
        let sum = checksum(&head[..HEADER - 8]);
        head[HEADER - 8..].copy_from_slice(&sum.to_le_bytes());

        let Writer { file, position, .. } = self;
        let path = file.get_ref().path().to_owned();
        let new = file.into_inner().map_err(|e| Error::io(&path, "write", e.error()))?;
        new.file().write_all_at(&head, 0).map_err(|e| Error::io(&path, "write", &e))?;
        new.finish()?;
        Ok(position as u64)
    }

    fn pad(&mut self, alignment: usize) -> Result<()> {
        let zeros = [0; super::PAGE];
        let gap = self.position.next_multiple_of(alignment) - self.position;
        self.write(&zeros[..gap])
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.write_all(bytes);
        written.map_err(|e| Error::io(self.file.get_ref().path(), "write", &e))?;
        self.position += bytes.len();
        Ok(())
    }
}
