use super::super::guard::call;
use super::super::status::QWEN_OK;
use super::*;
use std::sync::Arc;

struct Counter {
    count: u32,
    _life: Arc<()>,
}
struct Other;
struct Public;

macro_rules! object {
    ($type:ty, $magic:literal) => {
        impl Object for $type {
            type Public = Public;
            type Side = AtomicBool;
            const MAGIC: u64 = $magic;
            const NAME: &'static str = stringify!($type);
            fn freed() -> &'static Freed<Self> {
                static FREED: Freed<$type> = Freed::new();
                &FREED
            }
            fn interrupt(side: &AtomicBool) {
                side.store(true, Ordering::SeqCst);
            }
        }
    };
}
object!(Counter, 0x1111);
object!(Other, 0x2222);

fn make() -> (*mut Public, Arc<()>) {
    let life = Arc::new(());
    (create(Counter { count: 0, _life: life.clone() }, AtomicBool::new(false)), life)
}

fn status<T>(result: Result<T>) -> i32 {
    result.map_or_else(|f| f.status, |_| 0)
}

// SAFETY of the blocks below: each handle is NULL or from create().
#[test]
fn use_is_exclusive_or_shared() {
    let (h, _) = make();
    // SAFETY: see above.
    unsafe {
        let mut w = write::<Counter>(h).ok().unwrap();
        w.count += 1;
        assert_eq!(status(write::<Counter>(h)), QWEN_ERROR_BUSY);
        assert_eq!(status(read::<Counter>(h)), QWEN_ERROR_BUSY);
        assert!(visit::<Counter>(h).is_ok());
        drop(w);
        let a = read::<Counter>(h).ok().unwrap();
        let b = read::<Counter>(h).ok().unwrap();
        assert_eq!(status(write::<Counter>(h)), QWEN_ERROR_BUSY);
        assert_eq!(a.count + b.count, 2);
        drop((a, b));
        assert!(write::<Counter>(h).is_ok());
        free::<Counter>(h);
    }
}

#[test]
fn wrong_and_stale_handles_are_errors() {
    let (h, life) = make();
    // SAFETY: see above.
    unsafe {
        assert_eq!(status(read::<Counter>(std::ptr::null())), QWEN_ERROR_INVALID_HANDLE);
        assert_eq!(status(read::<Other>(h)), QWEN_ERROR_INVALID_HANDLE);
        free::<Other>(h);
        assert!(read::<Counter>(h).is_ok());
        free::<Counter>(h);
        assert_eq!(Arc::strong_count(&life), 1);
        assert_eq!(status(read::<Counter>(h)), QWEN_ERROR_INVALID_HANDLE);
        assert_eq!(status(visit::<Counter>(h)), QWEN_ERROR_INVALID_HANDLE);
        free::<Counter>(h);
        free::<Counter>(std::ptr::null_mut());
    }
}

#[test]
fn the_last_one_out_destroys() {
    let (h, life) = make();
    // SAFETY: see above.
    unsafe {
        let w = write::<Counter>(h).ok().unwrap();
        let v = visit::<Counter>(h).ok().unwrap();
        free::<Counter>(h);
        assert!(v.load(Ordering::SeqCst), "the call inside is told to stop");
        assert_eq!(status(write::<Counter>(h)), QWEN_ERROR_INVALID_HANDLE);
        drop(w);
        assert_eq!(Arc::strong_count(&life), 2);
        drop(v);
        assert_eq!(Arc::strong_count(&life), 1);
    }
}

#[test]
fn a_held_object_outlives_its_handle() {
    let (h, life) = make();
    // SAFETY: see above.
    unsafe {
        let held = hold::<Counter>(h).ok().unwrap();
        let inside = held.write().ok().unwrap();
        assert_eq!(status(held.write()), QWEN_ERROR_BUSY);
        assert_eq!(status(write::<Counter>(h)), QWEN_ERROR_BUSY);
        drop(inside);
        free::<Counter>(h);
        assert!(!held.load(Ordering::SeqCst), "there was no call to stop");
        assert_eq!(status(write::<Counter>(h)), QWEN_ERROR_INVALID_HANDLE);
        held.write().ok().unwrap().count += 1;
        assert_eq!(Arc::strong_count(&life), 2);
        drop(held);
    }
    assert_eq!(Arc::strong_count(&life), 1);
}

#[test]
fn a_panic_poisons() {
    let (h, life) = make();
    // SAFETY: see above.
    unsafe {
        let panicked = call(|| {
            let _w = write::<Counter>(h)?;
            panic!("inside")
        });
        assert_eq!(panicked, QWEN_ERROR_INTERNAL);
        assert_eq!(status(write::<Counter>(h)), QWEN_ERROR_INTERNAL);
        assert_eq!(status(read::<Counter>(h)), QWEN_ERROR_INTERNAL);
        assert!(visit::<Counter>(h).is_ok());
        free::<Counter>(h);
    }
    assert_eq!(Arc::strong_count(&life), 1);
}

#[test]
fn threads_never_share_a_writer() {
    let (h, life) = make();
    let address = h as usize;
    let ok: u32 = std::thread::scope(|s| {
        let run = move || {
            // SAFETY: see above.
            (0..1000)
                .filter(|_| unsafe {
                    call(|| {
                        write::<Counter>(address as *mut Public)?.count += 1;
                        Ok(QWEN_OK)
                    }) == QWEN_OK
                })
                .count() as u32
        };
        let threads: Vec<_> = (0..8).map(|_| s.spawn(run)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).sum()
    });
    // SAFETY: see above.
    unsafe {
        assert_eq!(read::<Counter>(h).ok().unwrap().count, ok);
        free::<Counter>(h);
    }
    assert_eq!(Arc::strong_count(&life), 1);
}

#[test]
fn slots_rest_before_they_are_used_again() {
    let (first, _) = make();
    // SAFETY: see above.
    unsafe {
        free::<Counter>(first);
        for _ in 0..REST / 2 {
            let (h, _) = make();
            assert_ne!(h, first);
            free::<Counter>(h);
        }
    }
}
