// Conversations over a session: replies in pieces, thoughts and tool calls apart. Not compiled or
// run by the tests.
import Qwen35

/// How a conversation is held; what is not set is the default.
struct ConversationOptions {
    var system: String?
    /// A JSON array of tools, as in the OpenAI API.
    var tools: String?
    /// Whether the model thinks first; nil: as the template has it.
    var thinking: Bool?
    /// Most tokens of thoughts, and of a reply; 0: no limit.
    var thinkingBudget: UInt32 = 0
    var maxTokens: UInt32 = 0
    /// Texts at which an answer ends.
    var stop: [String] = []

    /// Lends the options as C has them.
    func with<R>(_ body: (UnsafePointer<qwen_conversation_options>) throws -> R) rethrows -> R {
        var owned: [UnsafeMutablePointer<CChar>] = []
        defer { owned.forEach { $0.deallocate() } }
        func lend(_ text: String) -> (UnsafePointer<CChar>?, Int) {
            let bytes = Array(text.utf8)
            let copy = UnsafeMutablePointer<CChar>.allocate(capacity: bytes.count + 1)
            for (i, byte) in bytes.enumerated() { copy[i] = CChar(bitPattern: byte) }
            copy[bytes.count] = 0
            owned.append(copy)
            return (UnsafePointer(copy), bytes.count)
        }
        var raw = qwen_conversation_options()
        raw.struct_size = UInt32(MemoryLayout<qwen_conversation_options>.size)
        if let thinking { raw.thinking = thinking ? QWEN_THINKING_ON : QWEN_THINKING_OFF }
        raw.thinking_budget = thinkingBudget
        raw.max_tokens = maxTokens
        if let system { (raw.system, raw.system_length) = lend(system) }
        if let tools { (raw.tools, raw.tools_length) = lend(tools) }
        let lent = stop.map(lend)
        let texts = lent.map { $0.0 }
        let lengths = lent.map { $0.1 }
        return try texts.withUnsafeBufferPointer { places in
            try lengths.withUnsafeBufferPointer { sizes in
                raw.stop = places.baseAddress
                raw.stop_lengths = sizes.baseAddress
                raw.stop_count = UInt32(stop.count)
                return try withUnsafePointer(to: raw, body)
            }
        }
    }
}

/// A piece of a reply.
enum Piece {
    case thinking(String)
    case text(String)
    case toolCall(ToolCall)
}

/// One that is not whole must not be carried out.
struct ToolCall {
    let name: String
    /// A JSON object, typed by the tool's schema.
    let arguments: String
    let id: String
    /// What is wrong with the call; empty for a proper one.
    let problem: String
    let isWhole: Bool
}

/// Messages, and the session that computes the replies.
final class Conversation: @unchecked Sendable {
    private let handle: OpaquePointer
    private let session: Session
    /// Why the last reply ended: a QWEN_FINISH constant.
    private(set) var finish: Int32 = QWEN_FINISH_NONE

    init(_ session: Session, _ options: ConversationOptions = ConversationOptions()) throws {
        var made: OpaquePointer?
        try options.with { raw in
            _ = try check(qwen_conversation_new(session.handle, raw, &made))
        }
        handle = made!
        self.session = session
    }
    deinit { qwen_conversation_free(handle) }

    /// Goes on by other options from the next reply on.
    func configure(_ options: ConversationOptions) throws {
        try options.with { raw in _ = try check(qwen_conversation_configure(handle, raw)) }
    }

    /// Adds messages (JSON) without having them answered yet.
    func add(_ json: String) throws {
        try check(withText(json) { qwen_conversation_add(handle, $0, $1) })
    }

    /// Adds the result of a tool call; send() has it answered.
    func addToolResult(id: String, _ result: String) throws {
        try check(
            withText(id) { name, length in
                withText(result) {
                    qwen_conversation_add_tool_result(handle, name, length, $0, $1)
                }
            })
    }

    /// Adds a user's message, if one is given, and starts the reply.
    func send(_ text: String? = nil) throws {
        if let text {
            try check(withText(text) { qwen_conversation_send_text(handle, $0, $1, nil, nil) })
        } else {
            try check(qwen_conversation_send(handle, nil, 0, nil, nil))
        }
    }

    /// Drops the last reply and starts another one.
    func regenerate() throws { try check(qwen_conversation_regenerate(handle, nil, nil)) }

    /// Computes now, while the user reads and types, what the next message would wait for; gives
    /// how many tokens that were.
    @discardableResult
    func settle() throws -> Int {
        var total = 0, computed = 0
        try check(qwen_conversation_settle(handle, &total, &computed))
        return computed
    }

    /// Goes on with a reply that ended by its length or was cancelled.
    func resume() throws { try check(qwen_conversation_resume(handle)) }

    /// Takes the last turn back; gives how many messages that were.
    @discardableResult
    func undo() throws -> Int {
        var removed = 0
        try check(qwen_conversation_undo(handle, &removed))
        return removed
    }

    /// Makes the next piece of the reply; nil at its end, and `finish` then says why it ended.
    func next() throws -> Piece? {
        var raw = qwen_piece()
        raw.struct_size = UInt32(MemoryLayout<qwen_piece>.size)
        defer { finish = raw.finish }
        try check(qwen_conversation_next(handle, &raw))
        return Conversation.piece(raw)
    }

    /// As send(), but computes nothing: step() does that. Gives how many tokens there are to compute.
    func enqueue(_ text: String) throws -> Int {
        var total = 0, remaining = 0
        try check(
            withText(text) { qwen_conversation_enqueue_text(handle, $0, $1, &total, &remaining) })
        return remaining
    }

    /// What a step came to.
    enum Step {
        case working
        case piece(Piece)
        case ended
    }

    /// Goes on with the reply for about that long. For frame loops: call it once per frame until it
    /// is .ended; `finish` then says why.
    func step(microseconds: UInt64) throws -> Step {
        var raw = qwen_piece()
        raw.struct_size = UInt32(MemoryLayout<qwen_piece>.size)
        defer { finish = raw.finish }
        let status = try check(qwen_conversation_step(handle, microseconds, &raw, nil))
        if status == QWEN_WORKING { return .working }
        return Conversation.piece(raw).map { .piece($0) } ?? .ended
    }

    private static func piece(_ raw: qwen_piece) -> Piece? {
        switch raw.kind {
        case QWEN_PIECE_THINKING: return .thinking(string(raw.text, raw.text_length))
        case QWEN_PIECE_TEXT: return .text(string(raw.text, raw.text_length))
        case QWEN_PIECE_TOOL_CALL:
            return .toolCall(
                ToolCall(
                    name: string(raw.name, raw.name_length),
                    arguments: string(raw.arguments, raw.arguments_length),
                    id: string(raw.id, raw.id_length),
                    problem: string(raw.problem, raw.problem_length),
                    isWhole: raw.is_whole != 0))
        default: return nil
        }
    }

    /// Sends a message and gives the pieces of the reply. Each is made on a queue of the session,
    /// so that no task is blocked; cancelling the task that walks it cancels the call.
    func reply(to text: String? = nil) -> AsyncThrowingStream<Piece, Error> {
        session.stream { [self] give, goesOn in
            try send(text)
            while goesOn(), let piece = try next() { give(piece) }
        }
    }

    /// The messages so far, a JSON array.
    func history() throws -> String {
        var needed = 0
        try check(qwen_conversation_history(handle, nil, 0, &needed))
        var json = [CChar](repeating: 0, count: needed)
        try check(qwen_conversation_history(handle, &json, needed, &needed))
        return string(json, needed)
    }

    /// Replaces all messages (JSON).
    func setHistory(_ json: String) throws {
        try check(withText(json) { qwen_conversation_set_history(handle, $0, $1) })
    }
}
