//! The check of everything, which reads the whole file.

use super::{HEADER, PackedFile};
use crate::{Error, Result};

/// Compares every section with its checksum, and that nothing lies between them. `progress`
/// is told the bytes read and the bytes to read, and can end the check by an error.
///
/// # Errors
/// `Format`, naming the section that is damaged; what `progress` returns.
pub fn verify(file: &PackedFile, progress: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
    let total = file.layout.table.start as u64;
    let mut end = HEADER;
    for section in &file.layout.sections {
        progress(end as u64, total)?;
        check_gap(file, end..section.range.start)?;
        file.map().will_need(section.range.clone());
        file.check_sum(section)?;
        end = section.range.end;
    }
    check_gap(file, end..file.layout.table.start)?;
    progress(total, total)
}

fn check_gap(file: &PackedFile, gap: std::ops::Range<usize>) -> Result<()> {
    match file.bytes()[gap.clone()].iter().position(|&byte| byte != 0) {
        None => Ok(()),
        Some(at) => Err(Error::format(format!(
            "{}: byte {} between two sections is not zero: the file is damaged",
            file.name(),
            gap.start + at
        ))),
    }
}
