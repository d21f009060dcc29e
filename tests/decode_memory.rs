//! Decoding asks for no memory per token: only for a page of keys and values now and then. Nor
//! does a reset.

#[path = "support/counting.rs"]
mod counting;
#[path = "support/synthetic.rs"]
mod synthetic;
#[path = "support/temp.rs"]
mod temp;
#[path = "support/tiny_tokenizer.rs"]
mod tiny_tokenizer;

use qwen35::sampling::SamplingOptions;
use qwen35::{Model, ModelOptions, Session, SessionOptions};

#[test]
fn decoding_allocates_pages_only() {
    let directory = temp::TempDir::new();
    let spec = synthetic::Spec::named("small-grouped");
    spec.write(directory.path()).unwrap();
    tiny_tokenizer::write(directory.path(), spec.size("vocab_size"));
    let options = ModelOptions { threads: 2, ..ModelOptions::default() };
    let model = Model::open(directory.path(), &options).unwrap();
    for sampling in [SamplingOptions::greedy(), SamplingOptions::default()] {
        let options = SessionOptions { sampling, ..SessionOptions::default() };
        let mut session = Session::new(&model, options).unwrap();
        session.feed(&[1, 2, 3]).unwrap();
        // Warm: scratch of both threads, room in the list of tokens, and the third page,
        // which the computation of token 128 adds (one step after it was chosen).
        while session.position() < 130 {
            session.next_token().unwrap();
        }
        let before = counting::requests();
        while session.position() < 190 {
            session.next_token().unwrap();
        }
        assert_eq!(counting::requests() - before, 0, "within a page of 64 tokens");
        // After a prompt, the room that it needed is given back, once.
        session.feed(&[7; 200]).unwrap();
        while session.position() < 420 {
            session.next_token().unwrap();
        }
        let before = counting::requests();
        while session.position() < 446 {
            session.next_token().unwrap();
        }
        assert_eq!(counting::requests() - before, 0, "long after a prompt");
        // A new beginning takes place in the same memory.
        let ((), most) = counting::peak(|| session.reset().unwrap());
        assert_eq!((session.position(), most), (0, 0));
    }
}
