// An answer without certain words: words MODEL QUESTION WORD...
#include <iostream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "qwen35.hpp"

static const std::size_t tail = 16; // tokens looked back at: more than a word has

// Whether `text` holds the word, or can be its end behind `before`.
static bool completes(std::string_view word, std::string_view before, std::string_view text) {
    if (text.find(word) != text.npos) return true;
    for (std::size_t had = 1; had < word.size() && had <= before.size(); had++) {
        if (before.substr(before.size() - had) == word.substr(0, had) &&
            text.substr(0, word.size() - had) == word.substr(had)) {
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        std::cerr << "usage: words MODEL QUESTION WORD...\n";
        return 2;
    }
    try {
        qwen::Model model(argv[1]);
        std::vector<std::string> banned(argv + 3, argv + argc);
        qwen::SessionOptions session_options;
        session_options.sampling = qwen::Sampling::greedy();
        qwen::Session session(model, session_options);
        // Called before each choice: no token may be chosen that completes a word. For a large
        // vocabulary, look at each token once beforehand and keep those that a word can end in.
        session.set_logits_callback([&](float *logits, std::size_t count,
                                        qwen::Span<qwen::Token> tokens) {
            std::size_t start = tokens.size() > tail ? tokens.size() - tail : 0;
            auto before = model.try_detokenize(
                qwen::Span<qwen::Token>(tokens.data() + start, tokens.size() - start),
                QWEN_TEXT_SKIP_SPECIAL);
            if (!before) return false; // cancels
            for (std::size_t token = 0; token < count; token++) {
                auto text = model.try_token_bytes(static_cast<qwen::Token>(token));
                if (!text) return false;
                for (const std::string &word : banned) {
                    if (completes(word, *before, *text)) {
                        logits[token] = -std::numeric_limits<float>::infinity();
                    }
                }
            }
            return true;
        });
        qwen::ConversationOptions options;
        options.thinking = QWEN_THINKING_OFF;
        options.max_tokens = 60;
        qwen::Conversation talk(session, options);
        talk.send_text(argv[2]);
        for (const qwen::Piece &piece : talk.reply()) std::cout << piece.text << std::flush;
        std::cout << "\n";
    } catch (const qwen::Error &error) {
        std::cerr << "words: " << error.what() << "\n";
        return 1;
    }
}
