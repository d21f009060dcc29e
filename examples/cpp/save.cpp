// Saves a session to a file, and goes on from the file as if nothing had happened:
// save MODEL FILE
#include <iostream>
#include <string>
#include <vector>

#include "qwen35.hpp"

int main(int argc, char **argv) try {
    if (argc != 3) {
        std::cerr << "usage: save MODEL FILE\n";
        return 2;
    }
    const std::string file = argv[2];
    const qwen::Model model(argv[1]);
    qwen::SessionOptions options;
    options.sampling.seed = 7; // the random stream is saved too
    auto go_on = [](qwen::Session &session) {
        std::vector<qwen::Token> tokens;
        for (int i = 0; i < 6; i++) tokens.push_back(session.next().token);
        return tokens;
    };
    qwen::Session before(model, options);
    before.feed_text("Once upon a time");
    before.save(file);
    const std::vector<qwen::Token> straight = go_on(before);
    // In another process, or another day: only the model must be the same.
    qwen::Session after(model);
    after.restore(file);
    std::cout << "resumed at token " << after.position() << ": ";
    std::cout << (go_on(after) == straight ? "the same tokens" : "other tokens") << '\n';
    return 0;
} catch (const qwen::Error &error) {
    std::cerr << "save: " << error.what() << " (" << error.name() << ")\n";
    return 1;
}
