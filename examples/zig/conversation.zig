//! Conversations over a session: replies in pieces, thoughts and tool calls apart.
const std = @import("std");
const qwen35 = @import("qwen35.zig");
const c = qwen35.c;
const check = qwen35.check;
const Error = qwen35.Error;

/// Messages, and the session that computes the replies.
pub const Conversation = struct {
    handle: *c.qwen_conversation,
    /// Why the last reply ended.
    finish: Finish = .none,

    /// What is not set is the default. Strings are used during the call.
    pub const Options = struct {
        system: ?[]const u8 = null,
        /// A JSON array of tools, as in the OpenAI API.
        tools: ?[]const u8 = null,
        /// Whether the model thinks first; null: as the template has it.
        thinking: ?bool = null,
        /// Most tokens of thoughts, and of a reply; 0: no limit.
        thinking_budget: u32 = 0,
        max_tokens: u32 = 0,
        /// Texts at which an answer ends; at most 16.
        stop: []const []const u8 = &.{},
    };

    pub const Finish = enum(c.qwen_finish) {
        none = c.QWEN_FINISH_NONE,
        end_of_turn = c.QWEN_FINISH_END_OF_TURN,
        tool_calls = c.QWEN_FINISH_TOOL_CALLS,
        stop = c.QWEN_FINISH_STOP,
        length = c.QWEN_FINISH_LENGTH,
        context_full = c.QWEN_FINISH_CONTEXT_FULL,
        cancelled = c.QWEN_FINISH_CANCELLED,
        _,
    };

    /// A piece of a reply, lent until the next call on the conversation.
    pub const Piece = union(enum) {
        thinking: []const u8,
        text: []const u8,
        tool_call: ToolCall,
    };

    /// One that is not whole must not be carried out.
    pub const ToolCall = struct {
        name: []const u8,
        /// A JSON object, typed by the tool's schema.
        arguments: []const u8,
        id: []const u8,
        /// What is wrong with the call; empty for a proper one.
        problem: []const u8,
        is_whole: bool,
    };

    const most_stops = 16;

    pub fn open(session: qwen35.Session, options: Options) Error!Conversation {
        var handle: ?*c.qwen_conversation = null;
        var texts: [most_stops][*c]const u8 = undefined;
        var lengths: [most_stops]usize = undefined;
        const raw = lower(options, &texts, &lengths);
        _ = try check(c.qwen_conversation_new(session.handle, &raw, &handle));
        return .{ .handle = handle.? };
    }

    /// Frees it; the session stays.
    pub fn close(talk: *Conversation) void {
        c.qwen_conversation_free(talk.handle);
        talk.* = undefined;
    }

    /// Goes on by other options from the next reply on.
    pub fn configure(talk: *Conversation, options: Options) Error!void {
        var texts: [most_stops][*c]const u8 = undefined;
        var lengths: [most_stops]usize = undefined;
        const raw = lower(options, &texts, &lengths);
        _ = try check(c.qwen_conversation_configure(talk.handle, &raw));
    }

    fn lower(options: Options, texts: *[most_stops][*c]const u8, lengths: *[most_stops]usize) c.qwen_conversation_options {
        std.debug.assert(options.stop.len <= most_stops);
        var raw = std.mem.zeroes(c.qwen_conversation_options);
        raw.struct_size = @sizeOf(c.qwen_conversation_options);
        if (options.thinking) |thinking| raw.thinking = if (thinking) c.QWEN_THINKING_ON else c.QWEN_THINKING_OFF;
        raw.thinking_budget = options.thinking_budget;
        raw.max_tokens = options.max_tokens;
        if (options.system) |system| {
            raw.system, raw.system_length = .{ system.ptr, system.len };
        }
        if (options.tools) |tools| {
            raw.tools, raw.tools_length = .{ tools.ptr, tools.len };
        }
        for (options.stop, 0..) |text, i| {
            texts[i], lengths[i] = .{ text.ptr, text.len };
        }
        raw.stop, raw.stop_lengths = .{ texts, lengths };
        raw.stop_count = @intCast(options.stop.len);
        return raw;
    }

    /// Adds messages (JSON) without having them answered yet.
    pub fn add(talk: *Conversation, json: []const u8) Error!void {
        _ = try check(c.qwen_conversation_add(talk.handle, json.ptr, json.len));
    }

    /// Adds the result of a tool call; send() has it answered.
    pub fn addToolResult(talk: *Conversation, id: []const u8, result: []const u8) Error!void {
        _ = try check(c.qwen_conversation_add_tool_result(talk.handle, id.ptr, id.len, result.ptr, result.len));
    }

    /// Starts the reply to all messages so far.
    pub fn send(talk: *Conversation) Error!void {
        _ = try check(c.qwen_conversation_send(talk.handle, null, 0, null, null));
    }

    /// Adds a user's message and starts the reply.
    pub fn sendText(talk: *Conversation, text: []const u8) Error!void {
        _ = try check(c.qwen_conversation_send_text(talk.handle, text.ptr, text.len, null, null));
    }

    /// Drops the last reply and starts another one.
    pub fn regenerate(talk: *Conversation) Error!void {
        _ = try check(c.qwen_conversation_regenerate(talk.handle, null, null));
    }

    /// Computes now, while the user reads and types, what the next message would wait for; gives
    /// how many tokens that were.
    pub fn settle(talk: *Conversation) Error!usize {
        var computed: usize = 0;
        _ = try check(c.qwen_conversation_settle(talk.handle, null, &computed));
        return computed;
    }

    /// Goes on with a reply that ended by its length or was cancelled.
    pub fn goOn(talk: *Conversation) Error!void {
        _ = try check(c.qwen_conversation_resume(talk.handle));
    }

    /// Takes the last turn back; gives how many messages that were.
    pub fn undo(talk: *Conversation) Error!usize {
        var removed: usize = 0;
        _ = try check(c.qwen_conversation_undo(talk.handle, &removed));
        return removed;
    }

    /// Makes the next piece of the reply; null at its end, and `finish` then says why it ended.
    pub fn next(talk: *Conversation) Error!?Piece {
        var raw = std.mem.zeroes(c.qwen_piece);
        raw.struct_size = @sizeOf(c.qwen_piece);
        defer talk.finish = @enumFromInt(raw.finish);
        _ = try check(c.qwen_conversation_next(talk.handle, &raw));
        return made(raw);
    }

    /// As sendText(), but computes nothing: step() does that. Gives how many tokens there are to
    /// compute.
    pub fn enqueueText(talk: *Conversation, text: []const u8) Error!usize {
        var remaining: usize = 0;
        _ = try check(c.qwen_conversation_enqueue_text(talk.handle, text.ptr, text.len, null, &remaining));
        return remaining;
    }

    pub const Step = union(enum) { working, piece: Piece, ended };

    /// Goes on with the reply for about that long. For frame loops: call it once per frame until it
    /// has `ended`; `finish` then says why.
    pub fn step(talk: *Conversation, budget_us: u64) Error!Step {
        var raw = std.mem.zeroes(c.qwen_piece);
        raw.struct_size = @sizeOf(c.qwen_piece);
        defer talk.finish = @enumFromInt(raw.finish);
        const status = try check(c.qwen_conversation_step(talk.handle, budget_us, &raw, null));
        if (status == c.QWEN_WORKING) return .working;
        return if (made(raw)) |piece| .{ .piece = piece } else .ended;
    }

    fn made(raw: c.qwen_piece) ?Piece {
        return switch (raw.kind) {
            c.QWEN_PIECE_THINKING => .{ .thinking = lent(raw.text, raw.text_length) },
            c.QWEN_PIECE_TEXT => .{ .text = lent(raw.text, raw.text_length) },
            c.QWEN_PIECE_TOOL_CALL => .{ .tool_call = .{
                .name = lent(raw.name, raw.name_length),
                .arguments = lent(raw.arguments, raw.arguments_length),
                .id = lent(raw.id, raw.id_length),
                .problem = lent(raw.problem, raw.problem_length),
                .is_whole = raw.is_whole != 0,
            } },
            else => null,
        };
    }

    fn lent(data: [*c]const u8, length: usize) []const u8 {
        return if (length == 0) "" else data[0..length];
    }

    /// The messages so far, a JSON array; owned by the caller.
    pub fn history(talk: Conversation, allocator: std.mem.Allocator) ![]u8 {
        var needed: usize = 0;
        _ = try check(c.qwen_conversation_history(talk.handle, null, 0, &needed));
        const json = try allocator.alloc(u8, needed);
        errdefer allocator.free(json);
        _ = try check(c.qwen_conversation_history(talk.handle, json.ptr, json.len, &needed));
        return json;
    }

    /// Replaces all messages (JSON).
    pub fn setHistory(talk: *Conversation, json: []const u8) Error!void {
        _ = try check(c.qwen_conversation_set_history(talk.handle, json.ptr, json.len));
    }

    /// Cancels the call in progress, or the next one. Any thread, any time.
    pub fn cancel(talk: Conversation) void {
        _ = c.qwen_conversation_cancel(talk.handle);
    }
};
