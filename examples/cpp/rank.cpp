// Ranks sentences by how likely the model finds them: rank MODEL SENTENCE...
#include <algorithm>
#include <iomanip>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "qwen35.hpp"

int main(int argc, char **argv) try {
    if (argc < 3) {
        std::cerr << "usage: rank MODEL SENTENCE...\n";
        return 2;
    }
    const qwen::Model model(argv[1]);
    qwen::Session session(model);
    // Perplexity: as of so many equally likely words, lower is better.
    std::vector<std::pair<double, std::string>> all;
    for (int i = 2; i < argc; i++) {
        const std::vector<qwen::Token> tokens = model.tokenize(argv[i]);
        double perplexity = 0;
        if (!tokens.empty()) {
            session.reset();
            session.feed({tokens.data(), 1}); // nothing predicts the first
            perplexity = session.score({tokens.data() + 1, tokens.size() - 1}).perplexity;
        }
        all.emplace_back(perplexity, argv[i]);
    }
    std::sort(all.begin(), all.end());
    for (const auto &[perplexity, sentence] : all)
        std::cout << std::fixed << std::setprecision(1) << std::setw(10) << perplexity << "  "
                  << sentence << '\n';
    return 0;
} catch (const qwen::Error &error) {
    std::cerr << "rank: " << error.what() << " (" << error.name() << ")\n";
    return 1;
}
