// Two threads, two sessions, one model: threads MODEL
#include <future>
#include <iostream>
#include <string>

#include "qwen35.hpp"

int main(int argc, char **argv) try {
    if (argc != 2) {
        std::cerr << "usage: threads MODEL\n";
        return 2;
    }
    const qwen::Model model(argv[1]); // const: any number of threads may use it at once
    auto answer = [&model](const std::string &country) {
        qwen::SessionOptions options;
        options.sampling = qwen::Sampling::greedy();
        qwen::Session session(model, options); // used by one thread at a time
        session.feed_chat(
            R"({"enable_thinking": false, "messages": [{"role": "user", "content": )"
            R"("What is the capital of )" + country + R"(?"}]})");
        std::string text;
        for (std::string_view piece : session.stream(60)) text += piece;
        return text;
    };
    auto first = std::async(std::launch::async, answer, "France");
    auto second = std::async(std::launch::async, answer, "Italy");
    std::cout << first.get() << '\n' << second.get() << '\n'; // throws what the threads threw
    return 0;
} catch (const qwen::Error &error) {
    std::cerr << "threads: " << error.what() << " (" << error.name() << ")\n";
    return 1;
}
