// A conversation of two turns, its answers shown while they are made: stream MODEL
#include <iostream>
#include <string>

#include "qwen35.hpp"

namespace {

// Real programs build JSON with a library; this escapes what an answer may hold.
std::string message(const std::string &role, const std::string &content) {
    std::string text;
    for (char c : content) {
        if (c == '"' || c == '\\') text += '\\';
        text += c == '\n' ? ' ' : c;
    }
    return "{\"role\": \"" + role + "\", \"content\": \"" + text + "\"}";
}

// Shows the answer to all messages so far, and gives it back.
std::string show(qwen::Session &session, const std::string &messages) {
    const qwen::Fed fed =
        session.feed_chat("{\"messages\": [" + messages + "], \"enable_thinking\": false}");
    std::string answer;
    for (std::string_view piece : session.stream(60)) {
        std::cout << piece << std::flush;
        answer += piece;
    }
    std::cout << std::endl;
    std::cerr << "[" << fed.computed << " of " << fed.total << " prompt tokens computed]\n";
    return answer;
}

} // namespace

int main(int argc, char **argv) try {
    if (argc != 2) {
        std::cerr << "usage: stream MODEL\n";
        return 2;
    }
    const qwen::Model model(argv[1]);
    qwen::SessionOptions options;
    options.sampling.seed = 1; // the same answers each time
    qwen::Session session(model, options);
    std::string messages = message("user", "My name is Ada.");
    messages += ", " + message("assistant", show(session, messages));
    messages += ", " + message("user", "What is my name?");
    show(session, messages); // computes only what is new
    return 0;
} catch (const qwen::Error &error) {
    std::cerr << "stream: " << error.what() << " (" << error.name() << ")\n";
    return 1;
}
