//! examples/zig as a program uses it: MODEL.
const std = @import("std");
const qwen35 = @import("qwen35");
const expect = std.testing.expect;

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

    const ban = [_]qwen35.c.qwen_logit_bias{.{ .token = 3, .bias = -std.math.inf(f32) }};
    var session = try model.session(.{ .sampling = .{ .seed = 5, .top_k = 10, .logit_bias = &ban } });
    defer session.close();
    model.close(); // a session keeps what it needs
    try std.testing.expectError(qwen35.Error.InvalidState, session.next());
    try std.testing.expectError(qwen35.Error.InvalidArgument, session.feed(&.{-1}));
    const chat = "[{\"role\": \"user\", \"content\": \"hello\"}]";
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
