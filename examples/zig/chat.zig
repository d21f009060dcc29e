//! A conversation: chat MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]
const std = @import("std");
const qwen35 = @import("qwen35");

const Message = struct { role: []const u8, content: []const u8 };

fn talk(allocator: std.mem.Allocator, arguments: []const []const u8) !void {
    const most = if (arguments.len > 2) try std.fmt.parseInt(usize, arguments[2], 10) else 64;
    const percent = if (arguments.len > 3) try std.fmt.parseInt(u16, arguments[3], 10) else 70;
    var model = try qwen35.Model.open(arguments[1], .{});
    defer model.close();
    var sampling = qwen35.Sampling.greedy; // no penalties
    sampling.temperature = @as(f32, @floatFromInt(percent)) / 100;
    sampling.top_k = 40;
    var session = try model.session(.{ .sampling = sampling });
    defer session.close();

    const input = std.io.getStdIn().reader();
    const out = std.io.getStdOut().writer();
    var messages = std.ArrayList(Message).init(allocator);
    while (try input.readUntilDelimiterOrEofAlloc(allocator, '\n', 1 << 20)) |line| {
        try messages.append(.{ .role = "user", .content = line });
        const chat = .{ .messages = messages.items, .enable_thinking = false };
        _ = try session.feedChat(try std.json.stringifyAlloc(allocator, chat, .{}));
        var answer = std.ArrayList(u8).init(allocator);
        var stream = try session.stream(most);
        while (try stream.next()) |piece| {
            try out.writeAll(piece);
            try answer.appendSlice(piece);
        }
        try out.writeByte('\n');
        try messages.append(.{ .role = "assistant", .content = answer.items });
    }
}

pub fn main() !u8 {
    var arena = std.heap.ArenaAllocator.init(std.heap.c_allocator);
    defer arena.deinit();
    const arguments = try std.process.argsAlloc(arena.allocator());
    if (arguments.len < 2 or arguments.len > 4) {
        std.debug.print("usage: chat MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]\n", .{});
        return 2;
    }
    talk(arena.allocator(), arguments) catch |failure| {
        std.debug.print("chat: {s} ({s})\n", .{ qwen35.message(), @errorName(failure) });
        return 1;
    };
    return 0;
}
