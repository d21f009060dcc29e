// The conversation of qwen --chat once more, in C++ over qwen35.hpp.
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>

#include <sys/select.h>
#include <unistd.h>

#include "qwen35.hpp"

namespace {

constexpr const char *help =
    "usage: chat [MODEL] [N [T [K]]]\n"
    "\n"
    "A conversation, one message per line of standard input. Answers go to standard output.\n"
    "N: most tokens of an answer (64). T: temperature in percent, 0 to 200 (70). K: draw\n"
    "among the K most likely tokens, 1 to 100 (40). MODEL: a folder with config.json; without\n"
    "it model/ if it is there, else the demo in examples/demo-model.\n"
    "/reset starts anew, /exit or Ctrl-D leaves, Ctrl-C cancels the answer.\n";

// Ctrl-C since the last message was read.
volatile std::sig_atomic_t interrupts = 0;

extern "C" void on_interrupt(int) {
    interrupts = interrupts + 1;
    if (interrupts > 1) _exit(130);
}

[[noreturn]] void fail(int status, const std::string &message) {
    std::cout.flush();
    std::cerr << "chat: " << message << '\n';
    std::exit(status);
}

// Text as a JSON string.
std::string quoted(std::string_view text) {
    std::string json = "\"";
    for (char c : text) {
        auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20) {
            char escape[8];
            std::snprintf(escape, sizeof escape, "\\u%04x", byte);
            json += escape;
            continue;
        }
        if (c == '"' || c == '\\') json += '\\';
        json += c;
    }
    return json + '"';
}

std::string message(std::string_view role, std::string_view content) {
    return "{\"role\":" + quoted(role) + ",\"content\":" + quoted(content) + "}";
}

bool is_model(const std::filesystem::path &path) {
    std::error_code ignored;
    return std::filesystem::exists(path / "config.json", ignored) ||
           (path.extension() == ".safetensors" && std::filesystem::exists(path, ignored));
}

std::string default_model() {
    std::error_code ignored;
    auto home = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path().parent_path();
    for (const char *name : {"model", "examples/demo-model"}) {
        for (const auto &path : {std::filesystem::path(name), home / name}) {
            if (!is_model(path)) continue;
            if (std::strcmp(name, "model") != 0) {
                std::cerr << "chat: using " << path.string()
                          << ", a small demo. For the real Qwen3.5-0.8B run "
                             "scripts/download_model.sh\n";
            }
            return path.string();
        }
    }
    fail(1, "no model: run scripts/download_model.sh, or name a folder");
}

int number(const std::string &text, const char *what, int low, int high) {
    bool digits = !text.empty() && text.size() < 8 &&
                  text.find_first_not_of("0123456789") == std::string::npos;
    int value = digits ? std::stoi(text) : -1;
    if (value < low || value > high) {
        fail(2, std::string(what) + " must be a whole number from " + std::to_string(low) + " to " +
                    std::to_string(high) + ", not \"" + text + "\"");
    }
    return value;
}

// Answers the conversation on standard output and returns the answer.
std::string answer(qwen::Session &session, std::size_t max_tokens) {
    std::string text;
    qwen::TextStream stream = session.stream(max_tokens);
    for (std::string_view piece : stream) {
        std::cout << piece << std::flush;
        text += piece;
        if (interrupts > 0) break;
    }
    std::cout << std::endl;
    if (!std::cout) fail(1, "cannot write to standard output");
    if (stream.status() == QWEN_LIMIT_REACHED) std::cerr << "chat: the context is full\n";
    return text;
}

// Waits until a line was typed; false when Ctrl-C was pressed since `interrupts` was set to 0.
// The signal is let in only while it would end the wait, so that none falls in between.
bool wait_for_line() {
    sigset_t interrupt, before;
    fd_set input;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    FD_ZERO(&input);
    FD_SET(0, &input);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    while (interrupts == 0 && pselect(1, &input, nullptr, nullptr, nullptr, &before) < 0 &&
           errno == EINTR)
        FD_SET(0, &input);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    return interrupts == 0;
}

void converse(qwen::Session &session, std::size_t max_tokens) {
    const bool interactive = isatty(0) && isatty(2);
    std::string messages, line;
    for (;;) {
        interrupts = 0;
        if (interactive) {
            std::cerr << "> " << std::flush;
            if (!wait_for_line()) break;
        }
        if (!std::getline(std::cin, line)) break;
        if (!line.empty() && line.back() == '\r') line.pop_back();
        if (line.empty()) continue;
        if (line == "/exit") return;
        if (line == "/reset") {
            messages.clear();
            session.reset();
            std::cerr << "chat: a new conversation\n";
            continue;
        }
        const std::string with_user =
            messages + (messages.empty() ? "" : ",") + message("user", line);
        auto fed = session.try_feed_chat("{\"messages\":[" + with_user +
                                         "],\"enable_thinking\":false}");
        if (!fed && !interactive) fail(1, "cannot read the message: " + fed.error().message());
        if (!fed || fed->outcome == qwen::Outcome::cancelled) {
            std::cerr << "chat: " << (fed ? "cancelled" : fed.error().message()) << '\n';
            continue; // as if it had not been said
        }
        messages = with_user + "," + message("assistant", answer(session, max_tokens));
    }
    if (std::ferror(stdin) && interrupts == 0) fail(1, "cannot read standard input");
    if (interactive) std::cerr << '\n';
}

} // namespace

int main(int argc, char **argv) try {
    std::vector<std::string> places;
    for (int i = 1; i < argc; i++) {
        if (std::strcmp(argv[i], "--help") == 0 || std::strcmp(argv[i], "-h") == 0) {
            if (!(std::cout << help << std::flush)) fail(1, "cannot write to standard output");
            return 0;
        }
        if (argv[i][0] == '-') fail(2, std::string("unknown option ") + argv[i] + "; see --help");
        places.emplace_back(argv[i]);
    }
    std::string path;
    if (!places.empty() && places[0].find_first_not_of("0123456789") != std::string::npos) {
        path = places[0];
        places.erase(places.begin());
    }
    if (places.size() > 3) fail(2, "one argument too many; see --help");
    const int max_tokens = places.size() > 0 ? number(places[0], "N", 1, 1 << 20) : 64;
    const int percent = places.size() > 1 ? number(places[1], "T", 0, 200) : 70;
    const int top_k = places.size() > 2 ? number(places[2], "K", 1, 100) : 40;

    const qwen::Model model(path.empty() ? default_model() : path);
    qwen::SessionOptions options;
    options.sampling = qwen::Sampling::greedy(); // no penalties
    options.sampling.temperature = static_cast<float>(percent) / 100;
    options.sampling.top_k = static_cast<std::uint32_t>(top_k);
    qwen::Session session(model, options);
    session.set_progress([](std::size_t, std::size_t) { return interrupts == 0; });

    struct sigaction action = {};
    action.sa_handler = on_interrupt; // no SA_RESTART: it also ends the wait for input
    sigaction(SIGINT, &action, nullptr);
    converse(session, static_cast<std::size_t>(max_tokens));
    return 0;
} catch (const qwen::Error &error) {
    std::cerr << "chat: " << error.what() << " (" << error.name() << ")\n";
    return 1;
}
