// A conversation: chat MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]
import Foundation

func talk(_ arguments: [String]) async throws {
    let most = arguments.count > 2 ? Int(arguments[2]) ?? 64 : 64
    let percent = arguments.count > 3 ? Float(arguments[3]) ?? 70 : 70
    let model = try Model(arguments[1])
    var sampling = Sampling.greedy // no penalties
    sampling.temperature = percent / 100
    sampling.topK = 40
    let session = try Session(model, sampling: sampling)
    var options = ConversationOptions()
    options.thinking = false
    options.maxTokens = UInt32(most)
    let conversation = try Conversation(session, options)
    while let line = readLine() {
        for try await piece in conversation.reply(to: line) {
            if case .text(let text) = piece {
                print(text, terminator: "")
                fflush(stdout)
            }
        }
        print()
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
