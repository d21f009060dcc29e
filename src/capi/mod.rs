//! The C ABI: the only home of `extern "C"`.
