//! examples/zig as a program uses it: MODEL FILE.
const std = @import("std");
const qwen35 = @import("qwen35");
const expect = std.testing.expect;

const chat = "[{\"role\": \"user\", \"content\": \"hello\"}]";
const Ids = [4]i32;

fn idOf(step: qwen35.Session.Step) !i32 {
    return switch (step) {
        .token, .end_of_turn => |token| token,
        else => error.NoToken,
    };
}

fn made(session: *qwen35.Session) !Ids {
    var ids: Ids = undefined;
    for (&ids) |*id| id.* = switch (try session.next()) {
        .token, .end_of_turn => |token| token,
        .full => return error.Full,
    };
    return ids;
}

/// Forks, marks and saved sessions go on bit for bit; steps and batches give the same tokens.
fn branches(model: qwen35.Model, allocator: std.mem.Allocator, file: []const u8) !void {
    var session = try model.session(.{ .sampling = .{ .seed = 7 }, .mark_limit = 8 });
    defer session.close();
    try session.feed(&.{ 1, 2, 3, 4, 5 });
    const mark = try session.mark();
    const state = try session.saveBytes(allocator);
    try session.save(file);
    try expect((try session.scoreText("hello")).token_count > 0);
    var forks: [3]qwen35.Session = undefined;
    for (&forks) |*fork| fork.* = try model.fork(session);
    defer for (&forks) |*fork| fork.close();
    const expected = try made(&session);
    try expect(std.meta.eql(expected, try made(&forks[0])));
    try session.rewind(mark, qwen35.c.QWEN_REWIND_RANDOM);
    try expect(std.meta.eql(expected, try made(&session)));
    try session.restoreBytes(state);
    try expect(std.meta.eql(expected, try made(&session)));
    try session.restore(file);
    try expect(std.meta.eql(expected, try made(&session)));
    _ = try session.truncate(2);
    try expect((try session.tokens()).len == 2);
    try session.unmark(try session.mark());
    try std.testing.expectError(qwen35.Error.InvalidArgument, session.unmark(12345));
    try std.testing.expectError(qwen35.Error.Format, session.restoreBytes("no session"));

    var step: qwen35.Session.Step = .working;
    while (step == .working) step = try forks[1].step(2000);
    try expect(try idOf(step) == expected[0]);
    const batch = [_]*qwen35.Session{ &forks[1], &forks[2], &forks[1] };
    var outcomes: [batch.len]qwen35.Error!qwen35.Session.Step = undefined;
    try qwen35.Session.batchStep(&batch, &outcomes);
    try expect(try idOf(try outcomes[0]) == expected[1] and try idOf(try outcomes[1]) == expected[0]);
    if (outcomes[2]) |_| return error.ListedTwice else |_| {}
    try forks[2].reset();
    try expect(try forks[2].enqueueChat(chat) > 0);
    try forks[2].enqueue(&.{1});
    step = .working;
    while (step == .working) step = try forks[2].step(0);
    try expect((try forks[2].statistics()).output_tokens > 0);
}

fn conversations(model: qwen35.Model, allocator: std.mem.Allocator) !void {
    var session = try model.session(.{ .sampling = qwen35.Sampling.greedy });
    defer session.close();
    var talk = try qwen35.Conversation.open(session, .{
        .system = "Be brief.",
        .thinking = false,
        .max_tokens = 4,
        .stop = &.{ "never so", "nor so" },
    });
    defer talk.close();
    try talk.sendText("hello");
    while (try talk.next()) |piece| try expect(piece.text.len > 0);
    try expect(talk.finish == .length or talk.finish == .end_of_turn);
    if (talk.finish == .length) {
        try talk.goOn();
        while (try talk.next()) |piece| try expect(piece.text.len > 0);
    }
    const history = try talk.history(allocator);
    try expect(std.mem.indexOf(u8, history, "Be brief.") != null);
    try talk.regenerate();
    try expect(try talk.next() != null);
    while (try talk.next()) |_| {}
    try expect(try talk.enqueueText("more") > 0);
    var count: usize = 0;
    while (true) switch (try talk.step(1000)) {
        .working => {},
        .piece => count += 1,
        .ended => break,
    };
    try expect(count > 0 and talk.finish != .none);
    _ = try talk.settle();
    try expect(try talk.settle() == 0);
    try talk.addToolResult("call", "{}");
    try talk.send();
    while (try talk.next()) |_| {}
    try expect(try talk.undo() > 0);
    try talk.setHistory(history);
    try talk.configure(.{ .max_tokens = 1 });
    try talk.add("{\"role\": \"user\", \"content\": \"more\"}");
    try talk.send();
    talk.cancel();
    try std.testing.expectError(qwen35.Error.Cancelled, talk.next());
    try expect(talk.finish == .cancelled);
    try std.testing.expectError(qwen35.Error.InvalidArgument, qwen35.Conversation.open(session, .{ .tools = "{" }));
    try std.testing.expectError(qwen35.Error.InvalidArgument, qwen35.Conversation.open(session, .{ .stop = &.{""} }));
}

/// A conversation that does not fit loses its oldest turns, if that is asked for.
fn limits(path: []const u8) !void {
    var model = try qwen35.Model.open(path, .{
        .threads = 1,
        .weights = qwen35.c.QWEN_WEIGHTS_INT8,
        .compute = qwen35.c.QWEN_COMPUTE_EXACT,
        .prefix_cache_bytes = 1 << 20,
    });
    defer model.close();
    try expect((try model.info()).weights == qwen35.c.QWEN_WEIGHTS_INT8);
    const turn = "{\"role\": \"user\", \"content\": \"hello hello hello hello\"}," ++
        "{\"role\": \"assistant\", \"content\": \"hello\"},";
    const long = "[" ++ turn ** 20 ++ chat[1..];
    var session = try model.session(.{ .context_limit = 200 });
    defer session.close();
    try std.testing.expectError(qwen35.Error.ContextOverflow, session.feedChat(long));
    var other = try model.session(.{ .context_limit = 200, .cache_namespace = 5, .drop_turns = true, .kv = qwen35.c.QWEN_KV_INT8 });
    defer other.close();
    try expect((try other.feedChat(long)).total <= 200);
}

pub fn main() !void {
    const allocator = std.heap.c_allocator;
    const arguments = try std.process.argsAlloc(allocator);
    try std.testing.expectError(qwen35.Error.Io, qwen35.Model.open("/nowhere", .{}));
    try expect(std.mem.indexOf(u8, qwen35.message(), "/nowhere") != null);

    var model = try qwen35.Model.open(arguments[1], .{ .threads = 1 });
    try expect((try model.info()).threads == 1);
    const text = "Gr\u{fc}\u{df}e, a\x00b \u{1F469}";
    const ids = try model.tokenize(allocator, text, 0);
    try std.testing.expectEqualStrings(text, try model.detokenize(allocator, ids, 0));
    try expect((try model.tokenize(allocator, "", 0)).len == 0);

    try branches(model, allocator, arguments[2]);
    try conversations(model, allocator);
    try limits(arguments[1]);

    const ban = [_]qwen35.c.qwen_logit_bias{.{ .token = 3, .bias = -std.math.inf(f32) }};
    var session = try model.session(.{ .sampling = .{ .seed = 5, .top_k = 10, .logit_bias = &ban } });
    defer session.close();
    model.close(); // a session keeps what it needs
    try std.testing.expectError(qwen35.Error.InvalidState, session.next());
    try std.testing.expectError(qwen35.Error.InvalidArgument, session.feed(&.{-1}));
    const fed = try session.feedChat(chat);
    try expect(fed.total > 0 and fed.computed == fed.total);
    try expect((try session.feedChat(chat)).computed == 0);
    try expect((try session.logits()).len > 0);
    var stream = try session.stream(5);
    while (try stream.next()) |piece| try expect(std.unicode.utf8ValidateSlice(piece));
    try expect((try session.tokens()).len <= fed.total + 6);
    session.cancel();
    try std.testing.expectError(qwen35.Error.Cancelled, session.next());
    _ = try session.next();
    try session.setSampling(qwen35.Sampling.greedy);
    try session.reset();
    try expect((try session.tokens()).len == 0);
}
