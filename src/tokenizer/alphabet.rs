//! The byte-level alphabet of GPT-2: every byte has a printable character of its own.
//!
//! `tokenizer.json` spells tokens in it (`Ġthe` is the bytes of ` the`). The printable bytes of
//! Latin-1 stand for themselves, the other 68 for U+0100 and on, in order.

/// For U+0000..=U+0143: the byte that the character stands for, or [`NOT_A_BYTE`].
const BYTE_OF: [u16; 0x144] = {
    let mut table = [NOT_A_BYTE; 0x144];
    let mut byte = 0;
    let mut extra = 0x100;
    while byte < 256 {
        if matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF) {
            table[byte] = byte as u16;
        } else {
            table[extra] = byte as u16;
            extra += 1;
        }
        byte += 1;
    }
    table
};

const NOT_A_BYTE: u16 = u16::MAX;

/// Appends the bytes that `spelling` stands for to `out`; if a character is not in the alphabet,
/// it is the error, and `out` is left with a part of the bytes.
pub fn append_bytes(spelling: &str, out: &mut Vec<u8>) -> Result<(), char> {
    for c in spelling.chars() {
        match BYTE_OF.get(c as usize) {
            Some(&byte) if byte != NOT_A_BYTE => out.push(byte as u8),
            _ => return Err(c),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_one_character() {
        let mut bytes = Vec::new();
        for c in (0..0x144).filter_map(char::from_u32) {
            let _ = append_bytes(c.encode_utf8(&mut [0; 4]), &mut bytes);
        }
        bytes.sort_unstable();
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn known_spellings() {
        let mut bytes = Vec::new();
        assert_eq!(append_bytes("ĠtheĊ\u{143}ÿ", &mut bytes), Ok(()));
        assert_eq!(bytes, b" the\n\xAD\xFF");
        assert_eq!(append_bytes("a b", &mut bytes), Err(' '));
        assert_eq!(append_bytes("\u{144}", &mut bytes), Err('\u{144}'));
    }
}
