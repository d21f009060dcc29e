//! Pages as bytes, to be stored and read back.

use std::sync::Arc;

use super::{Isa, KvPage, KvPages, KvShape, PAGE_TOKENS};
use crate::kernels::buffer::Buffer;
use crate::{Error, Result};

impl KvPages {
    /// Bytes that [`KvPages::store`] gives for `tokens` tokens; `None` if they overflow.
    pub fn stored_bytes(shape: KvShape, tokens: usize) -> Option<usize> {
        tokens.div_ceil(PAGE_TOKENS).checked_mul(shape.checked_page_bytes()?)
    }

    /// Hands the first `tokens` tokens to `sink`, in whole pages of this machine's byte
    /// order; what lies beyond the tokens is given as zeros.
    ///
    /// # Errors
    /// `Internal` if the cache holds fewer; `OutOfMemory`; what `sink` returns.
    pub fn store(&self, tokens: usize, sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if tokens > self.capacity() {
            return Err(Error::internal("the cache holds fewer tokens than are to be stored"));
        }
        let whole = tokens / PAGE_TOKENS;
        for page in &self.pages[..whole] {
            page.parts().into_iter().try_for_each(&mut *sink)?;
        }
        let rest = tokens % PAGE_TOKENS;
        if rest > 0 {
            // Behind the last token lies what cancelled passes wrote: nobody's business.
            let mut last = Self::new(self.shape);
            last.pages.push(Arc::new(self.pages[whole].try_clone(self.shape)?));
            let width = self.shape.kv_heads * self.shape.head_dim;
            let zeros = Buffer::zeroed((PAGE_TOKENS - rest) * width, "zeros of a stored page")?;
            last.write(Isa::best(), rest, &zeros, &zeros)?;
            last.pages[0].parts().into_iter().try_for_each(sink)?;
        }
        Ok(())
    }

    /// A cache of what [`KvPages::store`] gave, which `source` fills in.
    ///
    /// # Errors
    /// `OutOfMemory`; what `source` returns.
    pub fn load(
        shape: KvShape,
        tokens: usize,
        source: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Self> {
        let mut pages = Self::new(shape);
        super::reserve(&mut pages.pages, tokens.div_ceil(PAGE_TOKENS))?;
        for _ in 0..tokens.div_ceil(PAGE_TOKENS) {
            let mut page = KvPage::zeroed(shape)?;
            page.parts_mut().into_iter().try_for_each(&mut *source)?;
            pages.pages.push(Arc::new(page));
        }
        Ok(pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::kv::KvElement;

    fn stored(pages: &KvPages, tokens: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut sink = |part: &[u8]| {
            bytes.extend_from_slice(part);
            Ok(())
        };
        pages.store(tokens, &mut sink).unwrap();
        assert_eq!(KvPages::stored_bytes(pages.shape(), tokens), Some(bytes.len()));
        bytes
    }

    #[test]
    fn pages_come_back_without_what_lies_beyond() {
        for element in [KvElement::F32, KvElement::F16, KvElement::I8] {
            let shape = KvShape { kv_heads: 2, head_dim: 5, element };
            let rows = |tokens: usize| (0..tokens * 10).map(|i| i as f32).collect::<Vec<_>>();
            let mut pages = KvPages::new(shape);
            pages.write(Isa::best(), 0, &rows(130), &rows(130)).unwrap();
            for tokens in [0, 1, 15, 16, 17, 63, 64, 65, 128, 130] {
                let mut short = KvPages::new(shape);
                short.write(Isa::best(), 0, &rows(tokens), &rows(tokens)).unwrap();
                let bytes = stored(&pages, tokens);
                assert!(bytes == stored(&short, tokens), "{element:?} {tokens}");
                let mut rest = &bytes[..];
                let mut source = |part: &mut [u8]| {
                    let (now, later) = rest.split_at(part.len());
                    part.copy_from_slice(now);
                    rest = later;
                    Ok(())
                };
                let loaded = KvPages::load(shape, tokens, &mut source).unwrap();
                assert!(rest.is_empty() && stored(&loaded, tokens) == bytes);
            }
            assert!(pages.store(1000, &mut |_| Ok(())).is_err());
        }
    }
}
