// Sessions that branch, go back, are saved, and advance a little at a time. Not compiled or run by
// the tests.
import Qwen35

/// What an advance came to.
enum Advance {
    /// The time is over, and there is more to do.
    case working
    case token(Int32)
    /// A token that ends the turn.
    case endOfTurn(Int32)
    /// The context is full.
    case full

    fileprivate init(_ status: Int32, _ token: Int32) {
        switch status {
        case QWEN_WORKING: self = .working
        case QWEN_END_OF_TURN: self = .endOfTurn(token)
        case QWEN_LIMIT_REACHED: self = .full
        default: self = .token(token)
        }
    }
}

extension Session {
    /// An independent session that stands where this one does. What is computed is shared.
    func fork() throws -> Session {
        var made: OpaquePointer?
        try check(qwen_session_fork(handle, &made))
        return try Session(model, owning: made!)
    }

    /// Keeps the present position for rewind().
    func mark() throws -> UInt64 {
        var mark: UInt64 = 0
        try check(qwen_session_mark(handle, &mark))
        return mark
    }

    func unmark(_ mark: UInt64) throws { try check(qwen_session_unmark(handle, mark)) }

    /// Goes back to a mark, bit for bit; nothing is computed. random: the random stream goes back
    /// too.
    func rewind(to mark: UInt64, random: Bool = false) throws {
        try check(qwen_session_rewind(handle, mark, random ? UInt32(QWEN_REWIND_RANDOM) : 0))
    }

    /// Cuts the sequence to its first tokens; gives how many were computed again for that.
    @discardableResult
    func truncate(to position: Int) throws -> Int {
        var computed = 0
        try check(qwen_session_truncate(handle, position, &computed))
        return computed
    }

    /// Saves the session to a file, which is replaced at once. Restored, it goes on bit for bit.
    func save(_ path: String) throws {
        try check(withText(path) { qwen_session_save_file(handle, $0, $1, 0) })
    }

    /// Puts the session where a saved one of the same model was.
    func restore(_ path: String) throws {
        try check(withText(path) { qwen_session_restore_file(handle, $0, $1) })
    }

    /// Appends tokens for step() to compute.
    func enqueue(_ tokens: [Int32]) throws {
        try check(qwen_session_enqueue(handle, tokens, tokens.count))
    }

    /// As feedChat(), but leaves what is not computed yet to step(): gives how many tokens that are.
    @discardableResult
    func enqueueChat(_ json: String) throws -> Int {
        var total = 0, remaining = 0
        try check(withText(json) { qwen_session_enqueue_chat(handle, $0, $1, 0, &total, &remaining) })
        return remaining
    }

    /// Goes on for about that long: with what is queued, then with the next token. For frame loops:
    /// call it once per frame until it is not .working.
    func step(microseconds: UInt64) throws -> Advance {
        var token: Int32 = -1
        let status = try check(qwen_session_step(handle, microseconds, 0, &token, nil))
        return Advance(status, token)
    }

    /// Advances sessions of one model by one token each and reads the weights once for all. Each
    /// has an outcome of its own, in its place.
    static func batchStep(_ sessions: [Session]) throws -> [Result<Advance, Error>] {
        let handles: [OpaquePointer?] = sessions.map { $0.handle }
        var tokens = [Int32](repeating: -1, count: sessions.count)
        var statuses = [Int32](repeating: 0, count: sessions.count)
        guard !sessions.isEmpty else { return [] }
        try check(qwen_batch_step(handles, sessions.count, &tokens, &statuses))
        return zip(statuses, tokens).map { status, token in
            Result { Advance(try check(status), token) }
        }
    }

    /// How likely a text is after the sequence, which must not be empty. The session stays as it is.
    func score(_ text: String) throws -> qwen_score {
        var score = qwen_score()
        score.struct_size = UInt32(MemoryLayout<qwen_score>.size)
        try check(withText(text) { qwen_session_score_text(handle, $0, $1, 0, &score) })
        return score
    }

    /// What the session has done since it was made.
    func statistics() throws -> qwen_statistics {
        var raw = qwen_statistics()
        raw.struct_size = UInt32(MemoryLayout<qwen_statistics>.size)
        try check(qwen_session_get_statistics(handle, &raw))
        return raw
    }
}
