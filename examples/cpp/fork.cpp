// Many characters from one system prompt, which is computed once: fork MODEL
#include <iostream>
#include <string>
#include <vector>

#include "qwen35.hpp"

int main(int argc, char **argv) try {
    if (argc != 2) {
        std::cerr << "usage: fork MODEL\n";
        return 2;
    }
    const std::string system = R"({"role": "system", "content": "You are a helpful guide."})";
    const qwen::Model model(argv[1]);
    qwen::SessionOptions options;
    options.sampling = qwen::Sampling::greedy();
    qwen::Session first(model, options);
    // The beginning that all share, up to the user's text: the template closes the message with
    // two tokens.
    std::vector<qwen::Token> shared = model.tokenize_chat(
        "{\"messages\": [" + system + R"(, {"role": "user", "content": ""}],)"
        R"("enable_thinking": false, "add_generation_prompt": false})");
    if (shared.size() > 2) shared.resize(shared.size() - 2);
    first.feed(shared);
    for (const char *country : {"France", "Italy", "Spain"}) {
        qwen::Session character = first.fork(model); // shares what is computed
        const qwen::Fed fed = character.feed_chat(
            "{\"messages\": [" + system + R"(, {"role": "user", "content": )"
            R"("What is the capital of )" + country + R"(?"}], "enable_thinking": false})");
        for (std::string_view piece : character.stream(60)) std::cout << piece << std::flush;
        std::cout << '\n';
        std::cerr << '[' << fed.computed << " of " << fed.total << " tokens computed]\n";
    }
    return 0;
} catch (const qwen::Error &error) {
    std::cerr << "fork: " << error.what() << " (" << error.name() << ")\n";
    return 1;
}
