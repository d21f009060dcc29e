// Qwen3.5 language models on x86-64 CPUs, for Swift. Not compiled or run by the tests.
//
//     let model = try Model("path/to/Qwen3.5-0.8B")
//     let session = try Session(model)
//     try session.feedChat(#"[{"role": "user", "content": "Hello!"}]"#)
//     for try await piece in session.stream(limit: 100) { print(piece, terminator: "") }
//
// Conversation.swift keeps the messages; Branches.swift has forks, marks, saving and steps.
import Foundation
import Qwen35

/// A failure: the negative status, its name, and the library's message.
struct QwenError: Error, CustomStringConvertible {
    let status: Int32
    let name: String
    let message: String

    /// The last error of this thread.
    init(_ status: Int32) {
        self.status = status
        name = String(cString: qwen_status_name(status))
        message = String(cString: qwen_last_error())
    }
    var description: String { "\(message) (\(name))" }
}

/// Throws for an error and for a cancelled call; gives other outcomes back.
@discardableResult
func check(_ status: Int32) throws -> Int32 {
    if status < 0 { throw QwenError(status) }
    if status == QWEN_CANCELLED { throw CancellationError() }
    return status
}

/// Lends the UTF-8 of a text.
func withText<R>(_ text: String, _ body: (UnsafePointer<CChar>?, Int) -> R) -> R {
    var text = text
    return text.withUTF8 { bytes in
        bytes.withMemoryRebound(to: CChar.self) { body($0.baseAddress, $0.count) }
    }
}

/// A copy of bytes that the library lends.
func string(_ data: UnsafePointer<CChar>?, _ length: Int) -> String {
    guard let data, length > 0 else { return "" }
    return data.withMemoryRebound(to: UInt8.self, capacity: length) {
        String(decoding: UnsafeBufferPointer(start: $0, count: length), as: UTF8.self)
    }
}

/// An opened checkpoint. Many threads may use one at once.
final class Model: @unchecked Sendable {
    let handle: OpaquePointer

    /// threads: that compute; 0 is as many as the process may use. weights, compute: QWEN_WEIGHTS
    /// and QWEN_COMPUTE constants. prefixCacheBytes: for beginnings that sessions share.
    init(
        _ path: String, threads: UInt32 = 0, weights: Int32 = QWEN_WEIGHTS_STORED,
        compute: Int32 = QWEN_COMPUTE_AUTO, prefixCacheBytes: UInt64 = 0, tokenizerOnly: Bool = false
    ) throws {
        var options = qwen_model_options()
        options.struct_size = UInt32(MemoryLayout<qwen_model_options>.size)
        options.threads = threads
        options.weights = weights
        options.compute = compute
        options.prefix_cache_bytes = prefixCacheBytes
        options.flags = tokenizerOnly ? UInt32(QWEN_MODEL_TOKENIZER_ONLY) : 0
        var made: OpaquePointer?
        try check(withText(path) { qwen_model_open($0, $1, &options, &made) })
        handle = made!
    }
    deinit { qwen_model_free(handle) }

    func tokenize(_ text: String, flags: UInt32 = 0) throws -> [Int32] {
        var needed = 0
        try check(withText(text) { qwen_tokenize(handle, $0, $1, flags, nil, 0, &needed) })
        var tokens = [Int32](repeating: 0, count: needed)
        if needed > 0 {
            try check(withText(text) { qwen_tokenize(handle, $0, $1, flags, &tokens, needed, &needed) })
        }
        return tokens
    }

    func detokenize(_ tokens: [Int32], flags: UInt32 = 0) throws -> String {
        var needed = 0
        try check(qwen_detokenize(handle, tokens, tokens.count, flags, nil, 0, &needed))
        var text = [CChar](repeating: 0, count: needed)
        if needed > 0 {
            try check(qwen_detokenize(handle, tokens, tokens.count, flags, &text, needed, &needed))
        }
        return string(text, needed)
    }
}

/// A preset, and what replaces its values.
struct Sampling {
    var preset: Int32 = QWEN_PRESET_CHAT
    var temperature: Float?
    var topK: UInt32?
    var topP: Float?
    var seed: UInt64?

    static let greedy = Sampling(preset: QWEN_PRESET_GREEDY)

    func raw() -> qwen_sampling_options {
        var raw = qwen_sampling_options()
        raw.struct_size = UInt32(MemoryLayout<qwen_sampling_options>.size)
        raw.preset = preset
        func set<T>(_ bit: Int32, _ field: WritableKeyPath<qwen_sampling_options, T>, _ value: T?) {
            guard let value else { return }
            raw.set |= UInt32(bit)
            raw[keyPath: field] = value
        }
        set(QWEN_SET_TEMPERATURE, \.temperature, temperature)
        set(QWEN_SET_TOP_K, \.top_k, topK)
        set(QWEN_SET_TOP_P, \.top_p, topP)
        set(QWEN_SET_SEED, \.seed, seed)
        return raw
    }
}

/// A sequence being continued, used by one thread at a time. A cancelled call throws
/// CancellationError; the session can be used on.
final class Session: @unchecked Sendable {
    let handle: OpaquePointer
    let model: Model
    private let decoder: OpaquePointer
    private let queue = DispatchQueue(label: "qwen35.session")

    /// cacheNamespace: shares beginnings with the sessions that have the same number; 0: with none.
    /// dropTurns: a conversation that does not fit loses its oldest turns; else it is an error.
    /// kv: how keys and values are stored, a QWEN_KV constant.
    convenience init(
        _ model: Model, contextLimit: UInt64 = 0, sampling: Sampling = Sampling(),
        cacheNamespace: UInt64 = 0, dropTurns: Bool = false, markLimit: UInt32 = 0,
        kv: Int32 = QWEN_KV_AUTO
    ) throws {
        var options = qwen_session_options()
        options.struct_size = UInt32(MemoryLayout<qwen_session_options>.size)
        options.context_limit = contextLimit
        options.cache_namespace = cacheNamespace
        options.overflow = dropTurns ? QWEN_OVERFLOW_DROP_TURNS : QWEN_OVERFLOW_REFUSE
        options.mark_limit = markLimit
        options.kv = kv
        var made: OpaquePointer?
        let raw = sampling.raw()
        try withUnsafePointer(to: raw) {
            options.sampling = $0
            _ = try check(qwen_session_new(model.handle, &options, &made))
        }
        try self.init(model, owning: made!)
    }

    /// Takes a handle over.
    init(_ model: Model, owning made: OpaquePointer) throws {
        var text: OpaquePointer?
        let status = qwen_stream_decoder_new(model.handle, UInt32(QWEN_TEXT_SKIP_SPECIAL), &text)
        guard status == QWEN_OK, let text else {
            let error = QwenError(status)
            qwen_session_free(made)
            throw error
        }
        self.model = model
        handle = made
        decoder = text
    }
    deinit {
        qwen_session_free(handle)
        qwen_stream_decoder_free(decoder)
    }

    /// Any thread, any time.
    func cancel() { qwen_session_cancel(handle) }

    func feed(_ tokens: [Int32]) throws {
        try check(qwen_session_feed(handle, tokens, tokens.count))
    }

    /// Makes the session hold exactly this conversation (JSON), ready for the answer. Call it
    /// once per turn with all messages so far. Returns how many tokens were computed.
    @discardableResult
    func feedChat(_ json: String) throws -> Int {
        var total = 0, computed = 0
        try check(withText(json) { qwen_session_feed_chat(handle, $0, $1, 0, &total, &computed) })
        return computed
    }

    /// The next token; nil at an end of turn and when the context is full.
    func next() throws -> Int32? {
        var token: Int32 = -1
        return try check(qwen_session_next_token(handle, &token)) == QWEN_OK ? token : nil
    }

    /// Text of the next tokens in whole characters. Each is made on a queue of the session, so
    /// that no task is blocked; cancelling the task that walks it cancels the call.
    func stream(limit: Int) -> AsyncThrowingStream<String, Error> {
        stream { [self] give, goesOn in
            var left = limit
            while left > 0, goesOn(), let token = try next() {
                left -= 1
                let piece = try text { qwen_stream_decoder_push(decoder, token, $0, $1) }
                if !piece.isEmpty { give(piece) }
            }
            let rest = try text { qwen_stream_decoder_finish(decoder, $0, $1) }
            if !rest.isEmpty { give(rest) }
        }
    }

    /// A stream of what `work` gives, on the session's queue, until it returns. When the walk is
    /// left, the call is cancelled and goesOn() is false.
    func stream<T>(
        _ work: @escaping (_ give: (T) -> Void, _ goesOn: () -> Bool) throws -> Void
    ) -> AsyncThrowingStream<T, Error> {
        AsyncThrowingStream { continuation in
            let walk = Walk()
            continuation.onTermination = { [self] reason in
                if case .cancelled = reason { walk.leave { cancel() } }
            }
            queue.async { [self] in
                do {
                    try work({ continuation.yield($0) }, { walk.goesOn })
                    // A cancel that came after the end of its call would end the next one.
                    if walk.end() { forget() }
                    continuation.finish()
                } catch {
                    if walk.end() && !(error is CancellationError) { forget() }
                    continuation.finish(throwing: error)
                }
            }
        }
    }

    /// Takes back a cancel that no call has answered.
    private func forget() {
        qwen_session_cancel_clear(handle)
    }

    private func text(
        _ call: (UnsafeMutablePointer<UnsafePointer<CChar>?>, UnsafeMutablePointer<Int>) -> Int32
    ) throws -> String {
        var data: UnsafePointer<CChar>?
        var length = 0
        try check(call(&data, &length))
        return string(data, length)
    }
}

/// Goes on until another thread leaves it.
private final class Walk: @unchecked Sendable {
    private let lock = NSLock()
    private var left = false
    private var ended = false

    var goesOn: Bool {
        lock.lock()
        defer { lock.unlock() }
        return !left
    }
    /// Does nothing once it has ended.
    func leave(_ cancel: () -> Void) {
        lock.lock()
        defer { lock.unlock() }
        guard !ended else { return }
        left = true
        cancel()
    }
    /// Says whether it was left.
    func end() -> Bool {
        lock.lock()
        defer { lock.unlock() }
        ended = true
        return left
    }
}
