//! A conversation: chat MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]
const std = @import("std");
const qwen35 = @import("qwen35");

fn talk(allocator: std.mem.Allocator, arguments: []const []const u8) !void {
    const most = if (arguments.len > 2) try std.fmt.parseInt(u32, arguments[2], 10) else 64;
    const percent = if (arguments.len > 3) try std.fmt.parseInt(u16, arguments[3], 10) else 70;
    var model = try qwen35.Model.open(arguments[1], .{});
    defer model.close();
    var sampling = qwen35.Sampling.greedy; // no penalties
    sampling.temperature = @as(f32, @floatFromInt(percent)) / 100;
    sampling.top_k = 40;
    var session = try model.session(.{ .sampling = sampling });
    defer session.close();

    var conversation = try qwen35.Conversation.open(session, .{ .thinking = false, .max_tokens = most });
    defer conversation.close();

    const input = std.io.getStdIn().reader();
    const out = std.io.getStdOut().writer();
    while (try input.readUntilDelimiterOrEofAlloc(allocator, '\n', 1 << 20)) |line| {
        try conversation.sendText(line);
        while (try conversation.next()) |piece| switch (piece) {
            .text => |text| try out.writeAll(text),
            else => {},
        };
        try out.writeByte('\n');
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
