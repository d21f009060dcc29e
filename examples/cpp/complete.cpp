// Completes a text: complete MODEL [TEXT [MOST_TOKENS]]
#include <iostream>
#include <string>

#include "qwen35.hpp"

int main(int argc, char **argv) try {
    if (argc < 2 || argc > 4) {
        std::cerr << "usage: complete MODEL [TEXT [MOST_TOKENS]]\n";
        return 2;
    }
    const std::string text = argc > 2 ? argv[2] : "The capital of France is";
    const qwen::Model model(argv[1]);
    qwen::SessionOptions options;
    options.sampling = qwen::Sampling::greedy();
    qwen::Session session(model, options);
    session.feed_text(text);
    std::cout << text;
    for (std::string_view piece : session.stream(argc > 3 ? std::stoul(argv[3]) : 16))
        std::cout << piece;
    std::cout << '\n';
    return 0;
} catch (const std::exception &error) {
    std::cerr << "complete: " << error.what() << '\n';
    return 1;
}
