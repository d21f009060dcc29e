// A model that calls functions of the program: tools MODEL [QUESTION]
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "qwen35.hpp"

static const char *offered = R"([
    {"type": "function", "function": {"name": "get_weather",
      "description": "Get the weather in a city.",
      "parameters": {"type": "object", "properties": {"city": {"type": "string"}},
      "required": ["city"]}}},
    {"type": "function", "function": {"name": "set_timer",
      "description": "Set a timer.",
      "parameters": {"type": "object", "properties": {"minutes": {"type": "integer"}},
      "required": ["minutes"]}}}])";

// What the program's functions give back. A real one reads `arguments` with its JSON library:
// numbers and booleans are what the schema says.
static std::string carry_out(const qwen::Piece &call) {
    // Not whole: cut by a limit. A problem: an unknown tool, a parameter that does not fit.
    if (!call.is_whole || !call.problem.empty()) return R"({"error": "not a valid call"})";
    if (call.name == "get_weather") return R"({"temperature": 21, "condition": "sunny"})";
    return R"({"status": "ok"})";
}

int main(int argc, char **argv) {
    if (argc < 2) {
        std::cerr << "usage: tools MODEL [QUESTION]\n";
        return 2;
    }
    try {
        qwen::Model model(argv[1]);
        qwen::SessionOptions session_options;
        session_options.sampling = qwen::Sampling::greedy();
        qwen::Session session(model, session_options);
        qwen::ConversationOptions options;
        options.tools = offered;
        options.thinking = QWEN_THINKING_OFF;
        options.max_tokens = 200;
        qwen::Conversation talk(session, options);
        talk.add_text("user", argc > 2 ? argv[2] : "What is the weather in Paris?");
        // The question first, then the results, until the model needs no more of them.
        for (int round = 0; round < 5; round++) {
            talk.send();
            std::vector<std::pair<std::string, std::string>> results;
            qwen::Reply reply = talk.reply();
            for (const qwen::Piece &piece : reply) {
                if (piece.is_text()) std::cout << piece.text << std::flush;
                if (!piece.is_tool_call()) continue;
                results.emplace_back(piece.id, carry_out(piece));
                std::cout << "[" << piece.name << " " << piece.arguments << ": "
                          << results.back().second << "]\n";
            }
            if (reply.finish() != QWEN_FINISH_TOOL_CALLS) break;
            for (const auto &result : results) {
                talk.add_tool_result(result.first, result.second);
            }
        }
        std::cout << "\n";
    } catch (const qwen::Error &error) {
        std::cerr << "tools: " << error.what() << "\n";
        return 1;
    }
}
