//! Qwen3.5 language models on x86-64 CPUs, for Zig.
//!
//!     var model = try qwen35.Model.open("path/to/Qwen3.5-0.8B", .{});
//!     defer model.close();
//!     var session = try model.session(.{});
//!     defer session.close();
//!     _ = try session.feedChat("[{\"role\": \"user\", \"content\": \"Hello!\"}]");
//!     var stream = try session.stream(100);
//!     while (try stream.next()) |piece| try out.writeAll(piece);
//!
//! A Conversation keeps the messages and gives the reply in pieces: conversation.zig.
const std = @import("std");

/// The C interface, for what is not wrapped here.
pub const c = @cImport(@cInclude("qwen35.h"));

pub const Conversation = @import("conversation.zig").Conversation;

/// The negative statuses; message() tells more. Cancelled is an outcome after which the
/// session can be used on.
pub const Error = error{
    InvalidArgument,
    InvalidHandle,
    InvalidState,
    BufferTooSmall,
    Busy,
    Io,
    Format,
    Unsupported,
    ContextOverflow,
    Template,
    Numeric,
    OutOfMemory,
    Forked,
    Internal,
    Cancelled,
};

/// What the last failing call of this thread said; valid until the next one fails.
pub fn message() []const u8 {
    return std.mem.span(c.qwen_last_error());
}

/// An error for a negative status and for a cancelled call.
pub fn check(status: c.qwen_status) Error!c.qwen_status {
    return switch (status) {
        c.QWEN_CANCELLED => Error.Cancelled,
        c.QWEN_ERROR_INVALID_ARGUMENT => Error.InvalidArgument,
        c.QWEN_ERROR_INVALID_HANDLE => Error.InvalidHandle,
        c.QWEN_ERROR_INVALID_STATE => Error.InvalidState,
        c.QWEN_ERROR_BUFFER_TOO_SMALL => Error.BufferTooSmall,
        c.QWEN_ERROR_BUSY => Error.Busy,
        c.QWEN_ERROR_IO => Error.Io,
        c.QWEN_ERROR_FORMAT => Error.Format,
        c.QWEN_ERROR_UNSUPPORTED => Error.Unsupported,
        c.QWEN_ERROR_CONTEXT_OVERFLOW => Error.ContextOverflow,
        c.QWEN_ERROR_TEMPLATE => Error.Template,
        c.QWEN_ERROR_NUMERIC => Error.Numeric,
        c.QWEN_ERROR_OUT_OF_MEMORY => Error.OutOfMemory,
        c.QWEN_ERROR_FORKED => Error.Forked,
        else => if (status < 0) Error.Internal else status,
    };
}

/// An opened checkpoint. Many threads may use one at once.
pub const Model = struct {
    handle: *c.qwen_model,

    pub const Options = struct {
        /// That compute; 0: as many as the process may use.
        threads: u32 = 0,
        isa: c.qwen_isa = c.QWEN_ISA_AUTO,
        tokenizer_only: bool = false,
        /// As stored, or quantized now.
        weights: c.qwen_weights = c.QWEN_WEIGHTS_STORED,
        compute: c.qwen_compute = c.QWEN_COMPUTE_AUTO,
        /// For beginnings that sessions share.
        prefix_cache_bytes: u64 = 0,
    };

    pub fn open(path: []const u8, options: Options) Error!Model {
        if (c.qwen_abi_version() != c.QWEN_ABI_VERSION) return Error.Unsupported;
        var raw = std.mem.zeroes(c.qwen_model_options);
        raw.struct_size = @sizeOf(c.qwen_model_options);
        raw.threads = options.threads;
        raw.isa = options.isa;
        if (options.tokenizer_only) raw.flags = c.QWEN_MODEL_TOKENIZER_ONLY;
        raw.weights = options.weights;
        raw.compute = options.compute;
        raw.prefix_cache_bytes = options.prefix_cache_bytes;
        var handle: ?*c.qwen_model = null;
        _ = try check(c.qwen_model_open(path.ptr, path.len, &raw, &handle));
        return .{ .handle = handle.? };
    }

    /// Frees it. Sessions that are open keep what they need.
    pub fn close(model: *Model) void {
        c.qwen_model_free(model.handle);
        model.* = undefined;
    }

    pub fn info(model: Model) Error!c.qwen_model_info {
        var raw = std.mem.zeroes(c.qwen_model_info);
        raw.struct_size = @sizeOf(c.qwen_model_info);
        _ = try check(c.qwen_model_get_info(model.handle, &raw));
        return raw;
    }

    /// The ids of a text; owned by the caller. flags: QWEN_TEXT_ADDED_TOKENS or 0.
    pub fn tokenize(model: Model, allocator: std.mem.Allocator, text: []const u8, flags: u32) ![]i32 {
        var needed: usize = 0;
        _ = try check(c.qwen_tokenize(model.handle, text.ptr, text.len, flags, null, 0, &needed));
        const tokens = try allocator.alloc(i32, needed);
        errdefer allocator.free(tokens);
        if (needed > 0)
            _ = try check(c.qwen_tokenize(model.handle, text.ptr, text.len, flags, tokens.ptr, tokens.len, &needed));
        return tokens;
    }

    /// The exact bytes of tokens; owned by the caller. flags: QWEN_TEXT_SKIP_SPECIAL or 0.
    pub fn detokenize(model: Model, allocator: std.mem.Allocator, tokens: []const i32, flags: u32) ![]u8 {
        var needed: usize = 0;
        _ = try check(c.qwen_detokenize(model.handle, tokens.ptr, tokens.len, flags, null, 0, &needed));
        const text = try allocator.alloc(u8, needed);
        errdefer allocator.free(text);
        if (needed > 0)
            _ = try check(c.qwen_detokenize(model.handle, tokens.ptr, tokens.len, flags, text.ptr, text.len, &needed));
        return text;
    }

    pub fn session(model: Model, options: Session.Options) Error!Session {
        var raw = std.mem.zeroes(c.qwen_session_options);
        raw.struct_size = @sizeOf(c.qwen_session_options);
        raw.context_limit = options.context_limit;
        raw.cache_namespace = options.cache_namespace;
        raw.overflow = if (options.drop_turns) c.QWEN_OVERFLOW_DROP_TURNS else c.QWEN_OVERFLOW_REFUSE;
        raw.mark_limit = options.mark_limit;
        raw.kv = options.kv;
        var how: c.qwen_sampling_options = undefined;
        if (options.sampling) |sampling| {
            how = sampling.raw();
            raw.sampling = &how;
        }
        var handle: ?*c.qwen_session = null;
        _ = try check(c.qwen_session_new(model.handle, &raw, &handle));
        return own(model, handle.?);
    }

    fn own(model: Model, handle: *c.qwen_session) Error!Session {
        errdefer c.qwen_session_free(handle);
        var decoder: ?*c.qwen_stream_decoder = null;
        _ = try check(c.qwen_stream_decoder_new(model.handle, c.QWEN_TEXT_SKIP_SPECIAL, &decoder));
        return .{ .handle = handle, .decoder = decoder.? };
    }

    /// An independent session that stands where another one of this model does. What is computed
    /// is shared.
    pub fn fork(model: Model, session_: Session) Error!Session {
        var handle: ?*c.qwen_session = null;
        _ = try check(c.qwen_session_fork(session_.handle, &handle));
        return own(model, handle.?);
    }
};

/// A preset, and what replaces its values.
pub const Sampling = struct {
    preset: c.qwen_preset = c.QWEN_PRESET_CHAT,
    temperature: ?f32 = null,
    top_k: ?u32 = null,
    top_p: ?f32 = null,
    min_p: ?f32 = null,
    repetition_penalty: ?f32 = null,
    presence_penalty: ?f32 = null,
    frequency_penalty: ?f32 = null,
    penalty_window: ?u32 = null,
    seed: ?u64 = null,
    /// Lent during the call.
    logit_bias: []const c.qwen_logit_bias = &.{},

    pub const greedy = Sampling{ .preset = c.QWEN_PRESET_GREEDY };

    fn raw(sampling: Sampling) c.qwen_sampling_options {
        var options = std.mem.zeroes(c.qwen_sampling_options);
        options.struct_size = @sizeOf(c.qwen_sampling_options);
        options.preset = sampling.preset;
        inline for (.{
            .{ "temperature", c.QWEN_SET_TEMPERATURE },
            .{ "top_k", c.QWEN_SET_TOP_K },
            .{ "top_p", c.QWEN_SET_TOP_P },
            .{ "min_p", c.QWEN_SET_MIN_P },
            .{ "repetition_penalty", c.QWEN_SET_REPETITION_PENALTY },
            .{ "presence_penalty", c.QWEN_SET_PRESENCE_PENALTY },
            .{ "frequency_penalty", c.QWEN_SET_FREQUENCY_PENALTY },
            .{ "penalty_window", c.QWEN_SET_PENALTY_WINDOW },
            .{ "seed", c.QWEN_SET_SEED },
        }) |field| {
            if (@field(sampling, field[0])) |value| {
                options.set |= field[1];
                @field(options, field[0]) = value;
            }
        }
        options.logit_bias = sampling.logit_bias.ptr;
        options.logit_bias_count = sampling.logit_bias.len;
        return options;
    }
};

/// A sequence being continued, used by one thread at a time.
pub const Session = struct {
    handle: *c.qwen_session,
    decoder: *c.qwen_stream_decoder,

    pub const Options = struct {
        /// The most tokens it may hold; 0: what the model was made for.
        context_limit: u64 = 0,
        sampling: ?Sampling = null,
        /// Shares beginnings with the sessions that have the same number, through the model's
        /// prefix cache; 0: with none.
        cache_namespace: u64 = 0,
        /// A conversation that does not fit loses its oldest turns; else it is an error.
        drop_turns: bool = false,
        /// Most marks held; 0: 4.
        mark_limit: u32 = 0,
        /// How keys and values are stored.
        kv: c.qwen_kv = c.QWEN_KV_AUTO,
    };

    pub fn close(session: *Session) void {
        c.qwen_session_free(session.handle);
        c.qwen_stream_decoder_free(session.decoder);
        session.* = undefined;
    }

    /// Cancels the call in progress, or the next one. Any thread, any time.
    pub fn cancel(session: Session) void {
        _ = c.qwen_session_cancel(session.handle);
    }

    pub fn feed(session: *Session, ids: []const i32) Error!void {
        _ = try check(c.qwen_session_feed(session.handle, ids.ptr, ids.len));
    }

    /// For plain continuation. flags: QWEN_TEXT_ADDED_TOKENS or 0.
    pub fn feedText(session: *Session, text: []const u8, flags: u32) Error!void {
        _ = try check(c.qwen_session_feed_text(session.handle, text.ptr, text.len, flags));
    }

    pub const Fed = struct { total: usize, computed: usize };

    /// Makes the session hold exactly this conversation (JSON), ready for the answer. Call it
    /// once per turn with all messages so far; what is held already is not computed again.
    pub fn feedChat(session: *Session, json: []const u8) Error!Fed {
        var fed: Fed = undefined;
        _ = try check(c.qwen_session_feed_chat(session.handle, json.ptr, json.len, 0, &fed.total, &fed.computed));
        return fed;
    }

    pub const Next = union(enum) { token: i32, end_of_turn: i32, full };

    pub fn next(session: *Session) Error!Next {
        var token: i32 = -1;
        return switch (try check(c.qwen_session_next_token(session.handle, &token))) {
            c.QWEN_END_OF_TURN => .{ .end_of_turn = token },
            c.QWEN_LIMIT_REACHED => .full,
            else => .{ .token = token },
        };
    }

    /// Lent until the next call on the session.
    pub fn logits(session: *Session) Error![]const f32 {
        var data: [*c]const f32 = null;
        var count: usize = 0;
        _ = try check(c.qwen_session_logits(session.handle, &data, &count));
        return data[0..count];
    }

    /// The sequence; lent until the next call that changes it.
    pub fn tokens(session: Session) Error![]const i32 {
        var data: [*c]const i32 = null;
        var count: usize = 0;
        _ = try check(c.qwen_session_tokens(session.handle, &data, &count));
        return if (count == 0) &.{} else data[0..count];
    }

    pub fn setSampling(session: *Session, sampling: Sampling) Error!void {
        const raw = sampling.raw();
        _ = try check(c.qwen_session_set_sampling(session.handle, &raw));
    }

    pub fn reset(session: *Session) Error!void {
        _ = try check(c.qwen_session_reset(session.handle));
    }

    /// Keeps the present position for rewind().
    pub fn mark(session: *Session) Error!u64 {
        var name: u64 = 0;
        _ = try check(c.qwen_session_mark(session.handle, &name));
        return name;
    }

    pub fn unmark(session: *Session, name: u64) Error!void {
        _ = try check(c.qwen_session_unmark(session.handle, name));
    }

    /// Goes back to a mark, bit for bit; nothing is computed. flags: QWEN_REWIND_RANDOM or 0.
    pub fn rewind(session: *Session, name: u64, flags: u32) Error!void {
        _ = try check(c.qwen_session_rewind(session.handle, name, flags));
    }

    /// Cuts the sequence to its first tokens; gives how many were computed again for that.
    pub fn truncate(session: *Session, length: usize) Error!usize {
        var computed: usize = 0;
        _ = try check(c.qwen_session_truncate(session.handle, length, &computed));
        return computed;
    }

    /// Saves the session to a file, which is replaced at once. Restored, it goes on bit for bit.
    pub fn save(session: Session, path: []const u8) Error!void {
        _ = try check(c.qwen_session_save_file(session.handle, path.ptr, path.len, 0));
    }

    /// Puts the session where a saved one of the same model was.
    pub fn restore(session: *Session, path: []const u8) Error!void {
        _ = try check(c.qwen_session_restore_file(session.handle, path.ptr, path.len));
    }

    /// The same as save(), to memory that is owned by the caller.
    pub fn saveBytes(session: Session, allocator: std.mem.Allocator) ![]u8 {
        var needed: usize = 0;
        _ = try check(c.qwen_session_save_memory(session.handle, 0, null, 0, &needed));
        const state = try allocator.alloc(u8, needed);
        errdefer allocator.free(state);
        _ = try check(c.qwen_session_save_memory(session.handle, 0, state.ptr, state.len, &needed));
        return state;
    }

    pub fn restoreBytes(session: *Session, state: []const u8) Error!void {
        _ = try check(c.qwen_session_restore_memory(session.handle, state.ptr, state.len));
    }

    /// Appends tokens for step() to compute; returns at once.
    pub fn enqueue(session: *Session, ids: []const i32) Error!void {
        _ = try check(c.qwen_session_enqueue(session.handle, ids.ptr, ids.len));
    }

    /// As feedChat(), but leaves what is not computed yet to step(): gives how many tokens that
    /// are.
    pub fn enqueueChat(session: *Session, json: []const u8) Error!usize {
        var remaining: usize = 0;
        _ = try check(c.qwen_session_enqueue_chat(session.handle, json.ptr, json.len, 0, null, &remaining));
        return remaining;
    }

    pub const Step = union(enum) { working, token: i32, end_of_turn: i32, full };

    /// Goes on for about that long: with what is queued, then with the next token. For frame
    /// loops: call it once per frame until it is not `working`.
    pub fn step(session: *Session, budget_us: u64) Error!Step {
        var token: i32 = -1;
        return switch (try check(c.qwen_session_step(session.handle, budget_us, 0, &token, null))) {
            c.QWEN_WORKING => .working,
            c.QWEN_END_OF_TURN => .{ .end_of_turn = token },
            c.QWEN_LIMIT_REACHED => .full,
            else => .{ .token = token },
        };
    }

    /// Advances sessions of one model by one token each and reads the weights once for all. Each
    /// has an outcome of its own, in its place; at most 256.
    pub fn batchStep(sessions: []const *Session, outcomes: []Error!Step) Error!void {
        var handles: [256]?*c.qwen_session = undefined;
        var ids: [256]i32 = undefined;
        var statuses: [256]c.qwen_status = undefined;
        std.debug.assert(sessions.len <= handles.len and outcomes.len == sessions.len);
        for (sessions, 0..) |session, i| handles[i] = session.handle;
        _ = try check(c.qwen_batch_step(&handles, sessions.len, &ids, &statuses));
        for (outcomes, 0..) |*outcome, i| {
            outcome.* = if (check(statuses[i])) |status| switch (status) {
                c.QWEN_END_OF_TURN => Step{ .end_of_turn = ids[i] },
                c.QWEN_LIMIT_REACHED => .full,
                else => Step{ .token = ids[i] },
            } else |failure| failure;
        }
    }

    /// How likely a text is after the sequence, which must not be empty. The session stays as
    /// it is.
    pub fn scoreText(session: *Session, text: []const u8) Error!c.qwen_score {
        var score = std.mem.zeroes(c.qwen_score);
        score.struct_size = @sizeOf(c.qwen_score);
        _ = try check(c.qwen_session_score_text(session.handle, text.ptr, text.len, 0, &score));
        return score;
    }

    /// What the session has done since it was made.
    pub fn statistics(session: Session) Error!c.qwen_statistics {
        var raw = std.mem.zeroes(c.qwen_statistics);
        raw.struct_size = @sizeOf(c.qwen_statistics);
        _ = try check(c.qwen_session_get_statistics(session.handle, &raw));
        return raw;
    }

    /// Text of up to `limit` tokens in whole characters, made while it is walked.
    pub fn stream(session: *Session, limit: usize) Error!Stream {
        _ = try session.finish(); // of a walk that was left
        return .{ .session = session, .left = limit };
    }

    fn push(session: *Session, token: i32) Error![]const u8 {
        var text: [*c]const u8 = null;
        var length: usize = 0;
        _ = try check(c.qwen_stream_decoder_push(session.decoder, token, &text, &length));
        return if (length == 0) "" else text[0..length];
    }

    fn finish(session: *Session) Error![]const u8 {
        var text: [*c]const u8 = null;
        var length: usize = 0;
        _ = try check(c.qwen_stream_decoder_finish(session.decoder, &text, &length));
        return if (length == 0) "" else text[0..length];
    }
};

pub const Stream = struct {
    session: *Session,
    left: usize,
    ended: bool = false,

    /// The next piece, lent until the next call; null at an end of turn, at a full context, or
    /// after the limit.
    pub fn next(walk: *Stream) Error!?[]const u8 {
        while (!walk.ended) {
            var piece: []const u8 = "";
            const found: Session.Next = if (walk.left == 0) .full else try walk.session.next();
            switch (found) {
                .token => |token| {
                    walk.left -= 1;
                    piece = try walk.session.push(token);
                },
                else => {
                    walk.ended = true;
                    piece = try walk.session.finish();
                },
            }
            if (piece.len > 0) return piece;
        }
        return null;
    }
};
