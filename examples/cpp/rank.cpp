// Ranks sentences by how likely the model finds them: rank MODEL SENTENCE...
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "qwen35.hpp"

namespace {

// The mean log-probability of the tokens after the first, which nothing predicts.
double score(const qwen::Model &model, std::string_view sentence) {
    const std::vector<qwen::Token> tokens = model.tokenize(sentence);
    qwen::Session session(model);
    double sum = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); i++) {
        session.feed(qwen::Span<qwen::Token>(&tokens[i], 1));
        const qwen::Span<float> logits = session.logits();
        const float most = *std::max_element(logits.begin(), logits.end());
        double all = 0;
        for (float logit : logits) all += std::exp(static_cast<double>(logit - most));
        const auto next = static_cast<std::size_t>(tokens[i + 1]);
        sum += static_cast<double>(logits[next] - most) - std::log(all);
    }
    return tokens.size() > 1 ? sum / static_cast<double>(tokens.size() - 1) : 0;
}

} // namespace

int main(int argc, char **argv) try {
    if (argc < 3) {
        std::cerr << "usage: rank MODEL SENTENCE...\n";
        return 2;
    }
    const qwen::Model model(argv[1]);
    std::vector<std::pair<double, std::string>> all;
    for (int i = 2; i < argc; i++) all.emplace_back(score(model, argv[i]), argv[i]);
    std::sort(all.rbegin(), all.rend());
    for (const auto &[value, sentence] : all)
        std::cout << std::fixed << std::setprecision(3) << std::setw(8) << value << "  "
                  << sentence << '\n';
    return 0;
} catch (const qwen::Error &error) {
    std::cerr << "rank: " << error.what() << " (" << error.name() << ")\n";
    return 1;
}
