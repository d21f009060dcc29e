// A loop of frames that never waits for the model; its worst frame is printed:
// frame MODEL [MICROSECONDS_PER_FRAME]
#include <algorithm>
#include <chrono>
#include <iostream>
#include <string>

#include "qwen35.hpp"

int main(int argc, char **argv) try {
    if (argc != 2 && argc != 3) {
        std::cerr << "usage: frame MODEL [MICROSECONDS_PER_FRAME]\n";
        return 2;
    }
    using clock = std::chrono::steady_clock;
    const std::chrono::microseconds budget(argc > 2 ? std::stol(argv[2]) : 4000);
    const qwen::Model model(argv[1]);
    qwen::SessionOptions options;
    options.sampling = qwen::Sampling::greedy();
    qwen::Session session(model, options);
    qwen::StreamDecoder decoder(model);
    session.enqueue(model.tokenize_chat( // at once
        R"({"messages": [{"role": "user", "content": "What is the capital of France?"}],)"
        R"( "enable_thinking": false})"));
    qwen::Next next;
    clock::duration worst{};
    int frames = 0;
    for (; next.status != QWEN_END_OF_TURN && next.status != QWEN_LIMIT_REACHED; frames++) {
        const auto start = clock::now();
        // ... the rest of the frame: input, simulation, drawing ...
        next = session.step(budget);
        if (next.status == QWEN_OK) std::cout << decoder.push(next.token);
        worst = std::max(worst, clock::now() - start);
    }
    std::cout << '\n';
    std::cerr << '[' << frames << " frames, the worst took "
              << std::chrono::duration<double, std::milli>(worst).count() << " ms]\n";
    return 0;
} catch (const std::exception &error) { // of the library, or of reading the number
    std::cerr << "frame: " << error.what() << "\n";
    return 1;
}
