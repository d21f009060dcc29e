//! Opening a packed file, which is taken as hostile until it is checked.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::entry::{Section, long, word};
use super::{
    ALIGNMENT, ENTRY, Element, HEADER, Kind, LARGE, MAGIC, MAX_SECTIONS, VERSION, checksum,
};
use crate::checkpoint::mmap::{HostMemory, Mapping};
use crate::error::{Error, Result, shown};
use crate::files::{excerpt, open_regular};

/// An open packed file, checked but for the checksums of large weights.
pub struct PackedFile {
    /// What messages call it.
    name: String,
    map: Arc<Mapping>,
    pub(super) layout: Layout,
    index: HashMap<(Kind, String), usize>,
}

/// What header and table say.
pub(super) struct Layout {
    pub weight_format: u32,
    pub quantizer: u32,
    pub fingerprint: u64,
    pub sections: Vec<Section>,
    /// Where sections end and the table begins.
    pub table: Range<usize>,
}

/// What the header says, before the table is seen.
pub(super) struct Head {
    pub file: u64,
    pub table: Range<u64>,
    count: usize,
    table_checksum: u64,
    weight_format: u32,
    quantizer: u32,
    fingerprint: u64,
}

impl PackedFile {
    /// Whether the file at `path` begins as packed files do. What cannot be read does not.
    pub fn is_packed(path: &Path) -> bool {
        use std::io::Read;
        let Ok((mut file, _)) = open_regular(path) else { return false };
        let mut magic = [0; MAGIC.len()];
        file.read_exact(&mut magic).is_ok() && magic == MAGIC
    }

    /// Maps and checks the file at `path`.
    ///
    /// # Errors
    /// `Io`; `Format` for a file that is damaged, cut off or of another kind; `Unsupported`
    /// for one of another version.
    pub fn open(path: &Path) -> Result<PackedFile> {
        Self::new(shown(path), Mapping::open(path)?)
    }

    /// Checks a file in the host's memory, which is used where it is if it begins at a
    /// multiple of 64 bytes, else copied and given back.
    ///
    /// # Errors
    /// As [`PackedFile::open`], and `OutOfMemory`.
    pub fn from_memory(memory: Box<dyn HostMemory>) -> Result<PackedFile> {
        let name = "packed file in memory".to_owned();
        let bytes = memory.bytes();
        if bytes.as_ptr().addr().is_multiple_of(ALIGNMENT) {
            return Self::new(name, Mapping::Host(memory));
        }
        // Not before it is known to be worth it.
        read_layout(bytes).map_err(|e| e.within(&name))?;
        let copy = Mapping::filled(bytes.len(), |to| {
            to.copy_from_slice(bytes);
            Ok(())
        })?;
        drop(memory);
        Self::new(name, copy)
    }

    /// Reads a file of `size` bytes by `read`, which fills a buffer with the bytes from an
    /// offset on. Header and table are read and checked before memory for the rest is asked
    /// for. `progress` is told how many bytes of the rest are there, and can end it by an error.
    ///
    /// # Errors
    /// As [`PackedFile::open`], `OutOfMemory`, what `read` and `progress` report.
    pub fn from_reader(
        size: u64,
        read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
        progress: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<PackedFile> {
        let name = READ_BY_HOST.to_owned();
        let Start { length, .. } = Start::read(size, read).map_err(|e| e.within(&name))?;
        let map = Mapping::filled(length, |to| {
            to.chunks_mut(STEP).enumerate().try_for_each(|(i, part)| {
                let at = (i * STEP) as u64;
                progress(at)?;
                read(at, part)
            })
        })?;
        Self::new(name, map)
    }

    /// As [`PackedFile::from_reader`], without large weights: they are not read and are all
    /// zeros, which take no memory. For questions about the model.
    ///
    /// # Errors
    /// As [`PackedFile::open`], and what `read` reports.
    pub fn outline(
        size: u64,
        read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<PackedFile> {
        let name = READ_BY_HOST.to_owned();
        let start = Start::read(size, read).map_err(|e| e.within(&name))?;
        let map = Mapping::sparse(start.length, |to| {
            let Layout { sections, table, .. } = &start.layout;
            to[..HEADER].copy_from_slice(&start.head);
            to[table.start..table.start + start.table.len()].copy_from_slice(&start.table);
            for section in sections.iter().filter(|section| !section.is_large_weight()) {
                for at in section.range.clone().step_by(STEP) {
                    read(at as u64, &mut to[at..section.range.end.min(at + STEP)])?;
                }
            }
            Ok(())
        })?;
        Self::new(name, map)
    }

    fn new(name: String, map: Mapping) -> Result<PackedFile> {
        let layout = read_layout(map.bytes()).map_err(|e| e.within(&name))?;
        let mut index = HashMap::with_capacity(layout.sections.len());
        for (i, section) in layout.sections.iter().enumerate() {
            index.insert((section.kind, section.name.clone()), i);
        }
        let file = PackedFile { name, map: Arc::new(map), layout, index };
        for section in &file.layout.sections {
            if !section.is_large_weight() {
                file.check_sum(section)?;
            }
        }
        Ok(file)
    }

    /// Compares a section with its checksum.
    pub(super) fn check_sum(&self, section: &Section) -> Result<()> {
        if checksum(&self.bytes()[section.range.clone()]) == section.checksum {
            return Ok(());
        }
        Err(Error::format(format!(
            "{}: section {} (bytes {} to {}) is damaged: its checksum does not fit",
            self.name, section.name, section.range.start, section.range.end
        )))
    }

    /// What messages call the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole file.
    pub(super) fn bytes(&self) -> &[u8] {
        self.map.bytes()
    }

    pub(in crate::checkpoint) fn map(&self) -> &Arc<Mapping> {
        &self.map
    }

    /// The fingerprint of the checkpoint that the file was made from, see
    /// [`Checkpoint::fingerprint`](crate::checkpoint::Checkpoint::fingerprint).
    pub fn fingerprint(&self) -> u64 {
        self.layout.fingerprint
    }

    /// The weight format that the header says, which decides: 0 as stored, 1 INT8, 2 INT4.
    pub fn weight_format(&self) -> u32 {
        self.layout.weight_format
    }

    /// The [revision](crate::kernels::quantized::REVISION) of what quantized the weights.
    pub fn quantizer(&self) -> u32 {
        self.layout.quantizer
    }

    /// The bytes of a section of `kind` that is called `name`.
    pub fn section(&self, kind: Kind, name: &str) -> Option<&[u8]> {
        let at = *self.index.get(&(kind, name.to_owned()))?;
        Some(&self.bytes()[self.layout.sections[at].range.clone()])
    }

    /// As [`PackedFile::section`].
    ///
    /// # Errors
    /// `Format` where there is none.
    pub fn need(&self, kind: Kind, name: &str) -> Result<&[u8]> {
        self.section(kind, name).ok_or_else(|| {
            Error::format(format!("{}: there is no section {}", self.name, excerpt(name)))
        })
    }

    /// Gives the memory pages of the sections of a kind back to the system, which reads them
    /// again when they are needed: for what was copied from them.
    pub fn release(&self, kind: Kind) {
        for section in self.layout.sections.iter().filter(|section| section.kind == kind) {
            self.map.release(section.range.clone());
        }
    }

    /// The tensors: name, element type, shape, place in the file.
    pub(in crate::checkpoint) fn tensors(
        &self,
    ) -> impl Iterator<Item = (&str, Element, &[usize], Range<usize>)> {
        let weights = self.layout.sections.iter().filter(|s| s.kind == Kind::Weights);
        weights.map(|s| (s.name.as_str(), s.element, s.shape.as_slice(), s.range.clone()))
    }
}

/// Whether a file that begins with `start` and not with [`MAGIC`] seems to have done so once: most
/// of these bytes are there.
pub(in crate::checkpoint) fn resembles(start: &[u8]) -> bool {
    MAGIC.iter().zip(start).filter(|(expected, found)| expected == found).count() > MAGIC.len() / 2
}

/// What messages call a file of the host.
const READ_BY_HOST: &str = "packed file that is read by the host";
/// The host may cut its reads where it likes, but not every reader can do all at once.
const STEP: usize = 8 << 20;

/// Header and table of a file that is read, checked.
struct Start {
    length: usize,
    head: [u8; HEADER],
    table: Vec<u8>,
    layout: Layout,
}

impl Start {
    fn read(size: u64, read: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>) -> Result<Self> {
        let mut head = [0; HEADER];
        let there = head.len().min(usize::try_from(size).unwrap_or(HEADER));
        read(0, &mut head[..there])?;
        let header = read_head(&head[..there], size)?;
        let mut table = vec![0; (header.table.end - header.table.start) as usize];
        read(header.table.start, &mut table)?;
        let layout = read_table(&header, &table)?;
        let length =
            usize::try_from(size).map_err(|_| Error::format("larger than the address space"))?;
        Ok(Self { length, head, table, layout })
    }
}

impl Section {
    /// Whether it is left unread until its tensor is used.
    fn is_large_weight(&self) -> bool {
        self.kind == Kind::Weights && self.range.len() >= LARGE
    }
}

fn read_layout(file: &[u8]) -> Result<Layout> {
    let head = read_head(&file[..file.len().min(HEADER)], file.len() as u64)?;
    read_table(&head, &file[head.table.start as usize..head.table.end as usize])
}

/// Checks the header of a file of `size` bytes. The table lies within the file.
fn read_head(head: &[u8], size: u64) -> Result<Head> {
    if head.len() < MAGIC.len() || head[..MAGIC.len()] != MAGIC {
        return Err(Error::format("this is not a packed model, or its first bytes are damaged"));
    }
    if head.len() < HEADER {
        return Err(Error::format(format!("cut off: {size} bytes, the header alone has {HEADER}")));
    }
    let version = word(head, 8);
    if version != VERSION {
        return Err(Error::unsupported(format!(
            "a packed model of version {version}; this library reads version {VERSION}: pack it \
             again from its checkpoint"
        )));
    }
    if checksum(&head[..HEADER - 8]) != long(head, HEADER - 8) {
        return Err(Error::format("the header is damaged: its checksum does not fit"));
    }
    let (file, start, length) = (long(head, 16), long(head, 24), long(head, 32));
    if file != size {
        return Err(Error::format(format!(
            "{size} bytes long, expected {file}: the file is cut off, or something was added"
        )));
    }
    let count = word(head, 40) as usize;
    let spare = &head[64..HEADER - 8];
    let regular = start >= HEADER as u64
        && start.is_multiple_of(ALIGNMENT as u64)
        && start.checked_add(length) == Some(file)
        && (1..=MAX_SECTIONS).contains(&count)
        && length >= (count * ENTRY) as u64
        && length <= (count * (ENTRY + super::MAX_NAME)) as u64
        && spare.iter().all(|&byte| byte == 0);
    if !regular {
        return Err(Error::format(format!(
            "the header contradicts itself: {count} sections, table of {length} bytes at {start}, \
             file of {file} bytes"
        )));
    }
    Ok(Head {
        file,
        table: start..file,
        count,
        table_checksum: long(head, 56),
        weight_format: word(head, 12),
        quantizer: word(head, 44),
        fingerprint: long(head, 48),
    })
}

/// Checks the table, entry by entry.
fn read_table(head: &Head, table: &[u8]) -> Result<Layout> {
    if checksum(table) != head.table_checksum {
        return Err(Error::format("the table of sections is damaged: its checksum does not fit"));
    }
    let too_large = |_| Error::format(format!("{} bytes cannot be mapped", head.file));
    let range = usize::try_from(head.table.start).map_err(too_large)?
        ..usize::try_from(head.table.end).map_err(too_large)?;
    let mut sections: Vec<Section> = Vec::with_capacity(head.count);
    let mut end = HEADER;
    for index in 0..head.count {
        let section = Section::decode(table, index, end, range.start)?;
        end = section.range.end;
        sections.push(section);
    }
    if end.next_multiple_of(ALIGNMENT) != range.start {
        return Err(Error::format(format!(
            "the sections end at byte {end}, but the table begins at {}",
            range.start
        )));
    }
    let mut names: Vec<(Kind, &str)> =
        sections.iter().map(|section| (section.kind, section.name.as_str())).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::format(format!("two sections are called {}", pair[0].1)));
    }
    Ok(Layout {
        weight_format: head.weight_format,
        quantizer: head.quantizer,
        fingerprint: head.fingerprint,
        sections,
        table: range,
    })
}
