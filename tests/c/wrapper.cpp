// qwen35.hpp: both styles, ownership, ranges. Argument: the toy model.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <type_traits>

#include "qwen35.hpp"

#define CHECK(condition)                                                                       \
    ((condition) ? (void)0                                                                     \
                 : (std::fprintf(stderr, "%s:%d: CHECK(%s)\n", __FILE__, __LINE__, #condition), \
                    std::exit(1)))

static const char chat[] = R"([{"role": "user", "content": "hello"}])";

static_assert(!std::is_copy_constructible<qwen::Model>::value, "a model has one owner");
static_assert(std::is_nothrow_move_constructible<qwen::Model>::value, "and moves");
static_assert(!std::is_copy_constructible<qwen::Session>::value, "a session has one owner");

// Results instead of exceptions.
static void results(const char *path) {
    auto none = qwen::Model::open("/no/such/model");
    CHECK(!none && none.error().status() == QWEN_ERROR_IO);
    CHECK(none.error().message().find("/no/such/model") != std::string::npos);
    CHECK(std::string(none.error().name()) == "QWEN_ERROR_IO");

    auto opened = qwen::Model::open(path);
    CHECK(opened.has_value());
    qwen::Model model = *std::move(opened);
    CHECK(model.try_info()->vocab_size == 512);
    CHECK(model.try_end_tokens()->size() == 2);
    auto ids = model.try_tokenize("hello");
    CHECK(ids && *model.try_detokenize(*ids) == "hello");
    CHECK(model.try_tokenize("")->empty() && model.try_detokenize({})->empty());
    CHECK(model.try_tokenize("a\xFF").error().status() == QWEN_ERROR_INVALID_ARGUMENT);
    CHECK(*model.try_find_token("<think>") == 506);
    CHECK(!model.try_find_token("<nothing>")->has_value());
    CHECK(*model.try_token_bytes(506) == "<think>");
    CHECK(*model.try_token_kind(506) == QWEN_TOKEN_ADDED);
    CHECK(model.try_render_chat(chat)->find("<|im_start|>user\nhello") == 0);
    CHECK(model.try_render_chat("{").error().status() == QWEN_ERROR_INVALID_ARGUMENT);

    qwen::ModelOptions impatient;
    impatient.progress = [](std::uint64_t, std::uint64_t) { return false; };
    auto unopened = qwen::Model::open(path, impatient);
    CHECK(!unopened && unopened.error().status() == QWEN_CANCELLED);
    CHECK(unopened.error().message() == "the call was cancelled");
    CHECK(*model.try_warm_up() && !*model.try_warm_up([](auto, auto) { return false; }));
    CHECK(qwen::Model::try_estimate(path, 100)->weight_bytes == model.try_info()->weight_bytes);
    const std::string file = std::string(path) + "/wrapper.qwen";
    auto ended = qwen::try_pack(path, file, QWEN_WEIGHTS_INT4, [](auto, auto) { return false; });
    CHECK(ended && !ended->has_value());
    auto packed = qwen::try_pack(path, file);
    CHECK(packed && (*packed)->weight_bytes == model.try_info()->weight_bytes);
    CHECK(*qwen::try_verify_pack(file));
    auto whole = std::make_shared<std::string>();
    {
        std::ifstream stream(file, std::ios::binary);
        whole->assign(std::istreambuf_iterator<char>(stream), {});
    }
    CHECK(whole->size() == (*packed)->file_bytes);
    {
        auto lent = qwen::Model::open_memory(whole->data(), whole->size(), whole);
        CHECK(lent && *lent->try_find_token("<think>") == 506);
        auto read = qwen::Model::open_reader(whole->size(), [&](auto at, void *to, auto length) {
            whole->copy(static_cast<char *>(to), length, std::size_t(at));
            return true;
        });
        CHECK(read && *read->try_find_token("<think>") == 506);
        auto cost = qwen::Model::try_estimate_memory(whole->data(), whole->size(), 100);
        CHECK(cost && cost->weight_bytes == model.try_info()->weight_bytes);
        auto same = qwen::Model::try_estimate_reader(
            whole->size(),
            [&](auto at, void *to, auto length) {
                whole->copy(static_cast<char *>(to), length, std::size_t(at));
                return true;
            },
            100);
        CHECK(same && same->session_bytes == cost->session_bytes);
    }
    CHECK(whole.use_count() == 1);
    auto gone = qwen::Model::open_reader(whole->size(), [](auto, void *, auto) { return false; });
    CHECK(!gone && gone.error().status() == QWEN_ERROR_IO);

    struct File {
        std::ifstream stream;
        std::uint64_t size() {
            stream.seekg(0, std::ios::end);
            return std::uint64_t(stream.tellg());
        }
        bool read(std::uint64_t at, void *to, std::size_t length) {
            stream.seekg(std::streamoff(at));
            return bool(stream.read(static_cast<char *>(to), std::streamsize(length)));
        }
    };
    int asked = 0;
    auto host = qwen::Model::open_files([&](std::string_view name) {
        std::ifstream stream(std::string(path) + "/" + std::string(name), std::ios::binary);
        asked += bool(stream);
        return stream ? std::make_unique<File>(File{std::move(stream)}) : nullptr;
    });
    CHECK(host && asked >= 5 && *host->try_find_token("<think>") == 506);
    auto cost = qwen::Model::try_estimate_files([&](std::string_view name) {
        std::ifstream stream(std::string(path) + "/" + std::string(name), std::ios::binary);
        return stream ? std::make_unique<File>(File{std::move(stream)}) : nullptr;
    });
    CHECK(cost && cost->weight_bytes == model.try_info()->weight_bytes && !cost->mapped_bytes);
    auto empty = qwen::Model::open_files([](std::string_view) { return std::unique_ptr<File>(); });
    CHECK(!empty && empty.error().status() == QWEN_ERROR_IO);

    qwen::SessionOptions options;
    options.sampling = qwen::Sampling::greedy();
    options.context_limit = 64;
    auto made = qwen::Session::make(model, options);
    CHECK(made.has_value());
    qwen::Session session = *std::move(made);
    CHECK(*session.try_context_limit() == 64);
    CHECK(session.try_next().error().status() == QWEN_ERROR_INVALID_STATE);
    auto fed = session.try_feed_chat(chat);
    CHECK(fed && fed->total == fed->computed && fed->outcome == qwen::Outcome::complete);
    CHECK(*session.try_position() == fed->total);
    CHECK(session.try_logits()->size() == 512);
    session.cancel();
    CHECK(session.try_next()->status == QWEN_CANCELLED);

    // Streamed text is the text of the tokens.
    std::string text;
    qwen::TextStream stream = session.stream();
    for (std::string_view piece : stream) {
        CHECK(!piece.empty());
        text += piece;
    }
    CHECK(!stream.error());
    CHECK(stream.status() == QWEN_END_OF_TURN || stream.status() == QWEN_LIMIT_REACHED);
    auto tokens = session.try_tokens();
    CHECK(tokens && tokens->size() >= fed->total + stream.count());
    std::vector<qwen::Token> made_tokens(tokens->begin() + fed->total,
                                         tokens->begin() + fed->total + stream.count());
    std::string bytes = *model.try_detokenize(made_tokens, QWEN_TEXT_SKIP_SPECIAL);
    CHECK(text.find("\xEF\xBF\xBD") != std::string::npos || text == bytes);

    // Branches, and a saved state.
    auto fork = session.try_fork(model);
    CHECK(fork && *fork->try_position() == *session.try_position());
    CHECK(fork->try_truncate(10));
    auto mark = fork->try_mark();
    CHECK(mark && fork->try_feed(qwen::Span<qwen::Token>(tokens->data(), 5)));
    std::string saved = *fork->try_save_to_memory();
    CHECK(fork->try_rewind(*mark, QWEN_REWIND_RANDOM) && fork->try_marks()->size() >= 1);
    CHECK(*fork->try_position() == 10);
    CHECK(fork->try_set_attachment("notes") && *fork->try_attachment() == "notes");
    CHECK(fork->try_restore_from_memory(saved) && fork->try_attachment()->empty());
    CHECK(fork->try_restore_from_memory("no").error().status() == QWEN_ERROR_FORMAT);
    CHECK(fork->try_truncate(3) && *fork->try_position() == 3);
    CHECK(fork->try_set_tokens(made_tokens)->total == made_tokens.size());
    CHECK(fork->try_feed_info()->total == made_tokens.size());
    CHECK(fork->try_unmark(99).error().status() == QWEN_ERROR_INVALID_ARGUMENT);
    CHECK(fork->try_save("/no/such/folder/x").error().status() == QWEN_ERROR_IO);
    CHECK(fork->try_restore("/no/such/file").error().status() == QWEN_ERROR_IO);
    CHECK(model.try_statistics()->output_tokens >= session.try_statistics()->output_tokens);
    CHECK(model.try_prefix_cache_info().error().status() == QWEN_ERROR_INVALID_STATE);
    CHECK(model.try_clear_prefix_cache().error().status() == QWEN_ERROR_INVALID_STATE);

    // Handles may go in any order, and moved-from objects are errors, not crashes.
    qwen::Model other = std::move(model);
    CHECK(model.try_info().error().status() == QWEN_ERROR_INVALID_HANDLE);
    { qwen::Model gone = std::move(other); }
    CHECK(session.try_reset().has_value());
    CHECK(session.try_enqueue_text("a little at a time").has_value());
    auto step = session.try_step(std::chrono::microseconds(0));
    CHECK(step && step->status == QWEN_WORKING && step->token == -1);
    while (step && step->status == QWEN_WORKING) {
        step = session.try_step(std::chrono::microseconds(100));
    }
    CHECK(step && step->token >= 0);
    auto batch = qwen::try_batch_step({&session, &session});
    CHECK(batch && batch->size() == 2 && (*batch)[0].token >= 0);
    CHECK((*batch)[1].status == QWEN_ERROR_BUSY);
    CHECK(session.try_statistics()->output_tokens >= 2);
    CHECK(session.try_reset().has_value());
    CHECK(session.try_feed_text("once more").has_value());

    bool called = false;
    CHECK(session.try_set_progress([&](std::size_t, std::size_t) { return called = true; }));
    CHECK(session.try_feed(qwen::Span<qwen::Token>(std::vector<qwen::Token>{1, 2, 3})));
    CHECK(called);
    CHECK(session.try_set_progress([](std::size_t, std::size_t) { return false; }));
    CHECK(*session.try_feed_text("and more") == qwen::Outcome::cancelled);
    CHECK(session.try_set_progress(nullptr));

    qwen::Sampling sampling;
    sampling.temperature = -1.0f;
    CHECK(session.try_set_sampling(sampling).error().message().find("temperature") !=
          std::string::npos);
    sampling = qwen::Sampling::greedy();
    sampling.logit_bias = {{42, 1000.0f}};
    CHECK(session.try_set_sampling(sampling));
    CHECK(session.try_next()->token == 42);

    // Judging, and a say in the choice.
    CHECK(session.try_set_sampling(qwen::Sampling::greedy()));
    auto top = session.try_top_logprobs(2);
    CHECK(top && (*top)[0].logprob >= (*top)[1].logprob);
    std::vector<qwen::Token> best{(*top)[0].token};
    CHECK((*session.try_logprobs(best))[0] == (*top)[0].logprob);
    CHECK(session.try_next()->token == best[0]);
    auto chosen = session.try_chosen_logprobs(2);
    CHECK(chosen && chosen->logprob == (*top)[0].logprob && chosen->top[0].token == best[0]);
    CHECK(session.try_chosen_logprobs()->top.empty());
    CHECK(session.try_truncate(*session.try_position() - 1));
    auto score = session.try_score(best);
    CHECK(score && score->best_count == 1 && score->logprobs[0] == (*top)[0].logprob);
    CHECK(session.try_set_logits_callback([&](float *logits, std::size_t, auto tokens) {
        logits[best[0]] = -std::numeric_limits<float>::infinity();
        return tokens.size() > 0;
    }));
    CHECK(session.try_next()->token == (*top)[1].token);
    CHECK(session.try_set_logits_callback(nullptr));
    CHECK(session.try_reset() && session.try_embed_text("hello")->size() > 0);
}

// A conversation whose reply is written by the callback.
static void conversations(const char *path) {
    qwen::Model model = *qwen::Model::open(path);
    auto session = std::make_unique<qwen::Session>(*qwen::Session::make(model));
    std::vector<qwen::Token> script = *model.try_tokenize("one two END three");
    std::size_t next = 0;
    CHECK(session->try_set_logits_callback([&](float *logits, std::size_t count, auto) {
        for (std::size_t i = 0; i < count; i++) {
            if (static_cast<qwen::Token>(i) != script[next]) {
                logits[i] = -std::numeric_limits<float>::infinity();
            }
        }
        next++;
        return true;
    }));
    qwen::ConversationOptions options;
    options.stop = {"nothing", "END"};
    options.system = "Count.";
    auto made = qwen::Conversation::make(*session, options);
    CHECK(made.has_value());
    qwen::Conversation talk = *std::move(made);
    CHECK(talk.try_next().error().status() == QWEN_ERROR_INVALID_STATE);
    auto fed = talk.try_send_text("Go on");
    CHECK(fed && fed->computed == fed->total);
    std::string text;
    qwen::Reply reply = talk.reply();
    for (const qwen::Piece &piece : reply) {
        CHECK(piece.is_text() && !piece.text.empty());
        text += piece.text;
    }
    CHECK(text == "one two " && reply.finish() == QWEN_FINISH_STOP && reply.stop() == "END");
    CHECK(!reply.error());
    std::string saved = *talk.try_save_to_memory();
    CHECK(!talk.try_restore_from_memory("nothing").has_value());
    CHECK(talk.try_restore_from_memory(saved));
    std::string history = *talk.try_history();
    CHECK(history.find("\"one two \"") != std::string::npos);
    CHECK(*talk.try_undo() == 2);
    CHECK(talk.try_set_history(history));
    CHECK(!talk.try_add("{").has_value());
    // The session goes first; its callback goes with it.
    session.reset();
    talk.cancel();
    CHECK(talk.try_send_text("More")->outcome == qwen::Outcome::cancelled);
    options.max_tokens = 3;
    CHECK(talk.try_configure(options));
    CHECK(talk.try_send_text("More"));
    qwen::Reply more = talk.reply();
    for (const qwen::Piece &piece : more) CHECK(!piece.is_end());
    CHECK(more.finish() != QWEN_FINISH_NONE);
}

#ifdef QWEN35_EXCEPTIONS
static void exceptions(const char *path) {
    bool thrown = false;
    try {
        qwen::Model model("/no/such/model");
    } catch (const qwen::Error &error) {
        thrown = error.status() == QWEN_ERROR_IO && std::string(error.what()) != "";
    }
    CHECK(thrown);
    qwen::ModelOptions options;
    options.threads = 1;
    options.isa = QWEN_ISA_SCALAR;
    qwen::Model model(path, options);
    CHECK(model.info().isa == QWEN_ISA_SCALAR && model.info().threads == 1);
    qwen::Session session(model);
    session.feed_chat(chat);
    std::size_t pieces = 0;
    for (std::string_view piece : session.stream(10)) pieces += !piece.empty();
    CHECK(pieces <= 11);
    session.reset();
    thrown = false;
    try {
        for (std::string_view piece : session.stream(10)) CHECK(piece.empty());
    } catch (const qwen::Error &error) {
        thrown = error.status() == QWEN_ERROR_INVALID_STATE;
    }
    CHECK(thrown);

    qwen::Session fork = session.fork(model);
    std::uint64_t mark = fork.mark();
    fork.set_tokens(model.tokenize("some words"));
    fork.rewind(fork.mark());
    fork.restore_from_memory(fork.save_to_memory(QWEN_SAVE_WITHOUT_MARKS));
    CHECK(fork.marks().empty() && fork.truncate(1) == 1 && mark != 0);

    qwen::StreamDecoder decoder(model);
    decoder.resume(model.tokenize("x"));
    std::string text;
    for (qwen::Token token : model.tokenize("\xF0\x9F\x98\x80 ok")) text += decoder.push(token);
    text += decoder.finish();
    CHECK(text == "\xF0\x9F\x98\x80 ok");

    session.reset();
    qwen::ConversationOptions short_ones;
    short_ones.max_tokens = 4;
    qwen::Conversation talk(session, short_ones);
    talk.send(chat);
    for (const qwen::Piece &piece : talk.reply()) CHECK(!piece.text.empty());
    CHECK(talk.next().is_end());
    talk.regenerate();
    CHECK(talk.undo() == 1);
    std::string stepped;
    CHECK(talk.enqueue_text("Go on.").computed > 0);
    for (;;) {
        auto frame = talk.step(std::chrono::microseconds(200));
        CHECK(!frame.cancelled);
        if (frame.piece.is_text()) stepped += frame.piece.text;
        if (frame.piece.is_end()) break;
    }
    CHECK(!stepped.empty() && talk.undo() == 2);
    thrown = false;
    try {
        for (const qwen::Piece &piece : talk.reply()) CHECK(piece.is_end());
    } catch (const qwen::Error &error) {
        thrown = error.status() == QWEN_ERROR_INVALID_STATE;
    }
    CHECK(thrown);
}
#endif

int main(int argc, char **argv) {
    CHECK(argc == 2);
    results(argv[1]);
    conversations(argv[1]);
#ifdef QWEN35_EXCEPTIONS
    exceptions(argv[1]);
#endif
    return 0;
}
