// A conversation: chat MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]
import Foundation

struct Message: Codable {
    let role: String
    let content: String
}

struct Chat: Codable {
    var messages: [Message] = []
    var enable_thinking = false
}

func talk(_ arguments: [String]) async throws {
    let most = arguments.count > 2 ? Int(arguments[2]) ?? 64 : 64
    let percent = arguments.count > 3 ? Float(arguments[3]) ?? 70 : 70
    let model = try Model(arguments[1])
    var sampling = Sampling.greedy // no penalties
    sampling.temperature = percent / 100
    sampling.topK = 40
    let session = try Session(model, sampling: sampling)
    var chat = Chat()
    while let line = readLine() {
        chat.messages.append(Message(role: "user", content: line))
        try session.feedChat(String(decoding: try JSONEncoder().encode(chat), as: UTF8.self))
        var answer = ""
        for try await piece in session.stream(limit: most) {
            print(piece, terminator: "")
            fflush(stdout)
            answer += piece
        }
        print()
        chat.messages.append(Message(role: "assistant", content: answer))
    }
}

if CommandLine.arguments.contains("--layout") {
    checkLayout()
    print("layout: as in C")
} else if CommandLine.arguments.count < 2 {
    print("usage: chat MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]")
    exit(2)
} else {
    do {
        try await talk(CommandLine.arguments)
    } catch {
        FileHandle.standardError.write("chat: \(error)\n".data(using: .utf8)!)
        exit(1)
    }
}
