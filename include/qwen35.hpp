// qwen35.hpp: qwen35.h for C++17 and later. Header only.
//
// Every operation exists twice: try_x() returns a qwen::Result, and x() throws qwen::Error
// instead of returning a failure. Without exceptions (-fno-exceptions) only the first are
// there. Objects own their handles: they move, do not copy, and can be destroyed in any
// order. Threads: as in qwen35.h, what is const here may be called by many threads at once.
//
//     qwen::Model model("path/to/Qwen3.5-0.8B");
//     qwen::Session session(model);
//     session.feed_chat(R"([{"role": "user", "content": "Hello!"}])");
//     for (std::string_view piece : session.stream(100)) std::cout << piece << std::flush;
#ifndef QWEN35_HPP
#define QWEN35_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "qwen35.h"

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define QWEN35_EXCEPTIONS 1
#endif

namespace qwen {

using Token = std::int32_t;

// Why a call failed: a negative qwen_status and the library's message.
class Error : public std::exception {
  public:
    Error(qwen_status status, std::string message)
        : status_(status), message_(std::move(message)) {}
    // The last error of this thread. A call that was cancelled has left none.
    static Error last(qwen_status status) {
        return Error(status, status < 0 ? qwen_last_error() : "the call was cancelled");
    }

    qwen_status status() const noexcept { return status_; }
    // The name of the status, such as "QWEN_ERROR_IO".
    const char *name() const noexcept { return qwen_status_name(status_); }
    const std::string &message() const noexcept { return message_; }
    const char *what() const noexcept override { return message_.c_str(); }

  private:
    qwen_status status_;
    std::string message_;
};

// A value or an Error.
template <typename T> class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    // Only with has_value(); anything else ends the program.
    T &operator*() & noexcept { return *pointer(); }
    const T &operator*() const & noexcept { return *const_cast<Result *>(this)->pointer(); }
    T &&operator*() && noexcept { return std::move(*pointer()); }
    T *operator->() noexcept { return pointer(); }
    const T *operator->() const noexcept { return const_cast<Result *>(this)->pointer(); }
    // Only without has_value().
    const Error &error() const noexcept {
        const Error *error = std::get_if<1>(&state_);
        if (error == nullptr) std::abort();
        return *error;
    }
#ifdef QWEN35_EXCEPTIONS
    // The value, or throws the Error.
    T value() && {
        if (!has_value()) throw error();
        return std::move(*pointer());
    }
#endif

  private:
    T *pointer() noexcept {
        T *value = std::get_if<0>(&state_);
        if (value == nullptr) std::abort();
        return value;
    }
    std::variant<T, Error> state_;
};

// An array or string that the library lends; valid as long as the function that gave it says.
template <typename T> class Span {
  public:
    Span() = default;
    Span(const T *data, std::size_t size) : data_(data), size_(size) {}
    Span(const std::vector<T> &values) : data_(values.data()), size_(values.size()) {}
    const T *data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }
    const T &operator[](std::size_t i) const noexcept { return data_[i]; }
    const T *begin() const noexcept { return data_; }
    const T *end() const noexcept { return data_ + size_; }

  private:
    const T *data_ = nullptr;
    std::size_t size_ = 0;
};

namespace detail {

// Calls a function of the two-call rule: once for the size, once for the contents.
template <typename Container, typename Call> Result<Container> sized(Call call) {
    using Value = typename Container::value_type;
    std::size_t needed = 0;
    qwen_status status = call(static_cast<Value *>(nullptr), std::size_t(0), &needed);
    if (status < 0) return Error::last(status);
    Container contents(needed, Value());
    if (needed > 0) {
        status = call(contents.data(), contents.size(), &needed);
        if (status < 0) return Error::last(status);
    }
    return contents;
}

struct Free {
    void operator()(qwen_model *handle) const noexcept { qwen_model_free(handle); }
    void operator()(qwen_session *handle) const noexcept {
        // A conversation may keep the session, but not what its callbacks call.
        qwen_session_set_progress(handle, nullptr, nullptr);
        qwen_session_set_logits_callback(handle, nullptr, nullptr);
        qwen_session_free(handle);
    }
    void operator()(qwen_conversation *handle) const noexcept {
        qwen_conversation_free(handle);
    }
    void operator()(qwen_stream_decoder *handle) const noexcept {
        qwen_stream_decoder_free(handle);
    }
};

} // namespace detail

// For calls that give nothing back.
using Done = Result<std::monostate>;

inline Done done(qwen_status status) {
    if (status < 0) return Error::last(status);
    return std::monostate();
}

// How to open a model. See qwen_model_options.
struct ModelOptions {
    unsigned threads = 0;
    qwen_isa isa = QWEN_ISA_AUTO;
    bool tokenizer_only = false;
    qwen_weights weights = QWEN_WEIGHTS_STORED;
    qwen_compute compute = QWEN_COMPUTE_AUTO;
    // Told while weights are read how many bytes of how many are done; false ends opening,
    // which then gives an Error of status QWEN_CANCELLED. It must not throw.
    std::function<bool(std::uint64_t done, std::uint64_t total)> progress;
    std::uint64_t prefix_cache_bytes = 0;
    // Takes messages as long as the model and its sessions live. See qwen_log_callback.
    qwen_log_callback log = nullptr;
    void *log_user = nullptr;
    qwen_log_level log_level = QWEN_LOG_NOTHING;

    qwen_model_options raw() const noexcept {
        qwen_model_options raw = QWEN_MODEL_OPTIONS_INIT;
        raw.threads = threads;
        raw.isa = isa;
        raw.flags = tokenizer_only ? QWEN_MODEL_TOKENIZER_ONLY : 0;
        raw.weights = weights;
        raw.compute = compute;
        raw.prefix_cache_bytes = prefix_cache_bytes;
        raw.log = log;
        raw.log_user = log_user;
        raw.log_level = log_level;
        return raw;
    }
};

// Told what is done and what is to do; false ends the work. It must not throw.
using WorkProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

namespace detail {

inline std::int32_t work_progress(std::uint64_t done, std::uint64_t total, void *user) {
    return (*static_cast<const WorkProgress *>(user))(done, total) ? 0 : 1;
}

// The callback to pass for `progress`, with &progress as its user pointer.
inline qwen_work_callback work_callback(const WorkProgress &progress) noexcept {
    return progress ? work_progress : nullptr;
}

// What a long call came to: true, or false if it was ended by its progress function.
inline Result<bool> ended(qwen_status status) {
    if (status < 0) return Error::last(status);
    return status != QWEN_CANCELLED;
}

// The options, with their progress function, which is called while they live.
inline qwen_model_options watched(const ModelOptions &options) {
    qwen_model_options raw = options.raw();
    if (options.progress) {
        raw.progress = [](std::uint64_t done, std::uint64_t total, void *user) -> std::int32_t {
            return (*static_cast<const ModelOptions *>(user)).progress(done, total) ? 0 : 1;
        };
        raw.user = const_cast<ModelOptions *>(&options);
    }
    return raw;
}

} // namespace detail

// An opened checkpoint. Sessions keep it open when it is destroyed before them.
class Model {
  public:
    static Result<Model> open(std::string_view path, const ModelOptions &options = {}) {
        const qwen_model_options raw = detail::watched(options);
        qwen_model *handle = nullptr;
        qwen_status status = qwen_model_open(path.data(), path.size(), &raw, &handle);
        if (status != QWEN_OK) return Error::last(status);
        return Model(handle);
    }
    // A packed file in memory. It is used in place if it begins at a multiple of 64 bytes, and
    // `owner` (a shared_ptr to whatever holds it, say) is kept until it is not needed.
    template <typename Owner>
    static Result<Model> open_memory(const void *data, std::size_t size, Owner owner,
                                     const ModelOptions &options = {}) {
        const qwen_model_options raw = detail::watched(options);
        Owner *kept = new (std::nothrow) Owner(std::move(owner));
        if (kept == nullptr) return Error(QWEN_ERROR_OUT_OF_MEMORY, "out of memory");
        qwen_model *handle = nullptr;
        qwen_status status = qwen_model_open_memory(
            data, size, [](void *, std::size_t, void *user) { delete static_cast<Owner *>(user); },
            kept, &raw, &handle);
        if (status != QWEN_OK) return Error::last(status);
        return Model(handle);
    }
    // A packed file of `size` bytes that read(offset, buffer, length) reads; false fails. It is
    // used during the call, and must not throw.
    template <typename Read>
    static Result<Model> open_reader(std::uint64_t size, Read read,
                                     const ModelOptions &options = {}) {
        const qwen_model_options raw = detail::watched(options);
        qwen_model *handle = nullptr;
        qwen_status status =
            qwen_model_open_reader(size, host_read<Read>, &read, &raw, &handle);
        if (status != QWEN_OK) return Error::last(status);
        return Model(handle);
    }
    // A Hugging Face folder that the host reads. open(name) gives a unique_ptr to a file, empty
    // if there is none of that name; the file has size() and read(offset, buffer, length), of
    // which false fails. They are used during the call, and must not throw.
    template <typename Open>
    static Result<Model> open_files(Open open, const ModelOptions &options = {}) {
        const qwen_model_options raw = detail::watched(options);
        const qwen_file_callbacks files = host_files<Open>();
        qwen_model *handle = nullptr;
        qwen_status status = qwen_model_open_files(&files, &open, &raw, &handle);
        if (status != QWEN_OK) return Error::last(status);
        return Model(handle);
    }
    // What open_reader() would take; all but large weights is read.
    template <typename Read>
    static Result<qwen_model_cost> try_estimate_reader(std::uint64_t size, Read read,
                                                       std::uint64_t context = 0,
                                                       const ModelOptions &options = {}) {
        const qwen_model_options raw = options.raw();
        qwen_model_cost cost = QWEN_MODEL_COST_INIT;
        qwen_status status =
            qwen_model_estimate_reader(size, host_read<Read>, &read, &raw, context, &cost);
        if (status < 0) return Error::last(status);
        return cost;
    }
    // What open_files() would take; of weight files the headers are read.
    template <typename Open>
    static Result<qwen_model_cost> try_estimate_files(Open open, std::uint64_t context = 0,
                                                      const ModelOptions &options = {}) {
        const qwen_model_options raw = options.raw();
        const qwen_file_callbacks files = host_files<Open>();
        qwen_model_cost cost = QWEN_MODEL_COST_INIT;
        qwen_status status = qwen_model_estimate_files(&files, &open, &raw, context, &cost);
        if (status < 0) return Error::last(status);
        return cost;
    }
    // What open_memory() would take, the file itself not counted where that is used in place.
    static Result<qwen_model_cost> try_estimate_memory(const void *data, std::size_t size,
                                                       std::uint64_t context = 0,
                                                       const ModelOptions &options = {}) {
        const qwen_model_options raw = options.raw();
        qwen_model_cost cost = QWEN_MODEL_COST_INIT;
        qwen_status status = qwen_model_estimate_memory(data, size, &raw, context, &cost);
        if (status < 0) return Error::last(status);
        return cost;
    }
    // What the model at `path` and a session of `context` tokens take in memory.
    static Result<qwen_model_cost> try_estimate(std::string_view path, std::uint64_t context = 0,
                                                const ModelOptions &options = {}) {
        const qwen_model_options raw = options.raw();
        qwen_model_cost cost = QWEN_MODEL_COST_INIT;
        qwen_status status =
            qwen_model_estimate(path.data(), path.size(), &raw, context, &cost);
        if (status < 0) return Error::last(status);
        return cost;
    }
    // Does once what the first prompt would wait for. False if `progress` ended it.
    Result<bool> try_warm_up(WorkProgress progress = {}) const {
        return detail::ended(
            qwen_model_warm_up(handle(), detail::work_callback(progress), &progress));
    }

    Result<qwen_model_info> try_info() const {
        qwen_model_info info = QWEN_MODEL_INFO_INIT;
        qwen_status status = qwen_model_get_info(handle(), &info);
        if (status < 0) return Error::last(status);
        return info;
    }
    // What all its sessions have done.
    Result<qwen_statistics> try_statistics() const {
        qwen_statistics statistics = QWEN_STATISTICS_INIT;
        qwen_status status = qwen_model_get_statistics(handle(), &statistics);
        if (status < 0) return Error::last(status);
        return statistics;
    }
    Result<qwen_prefix_cache_info> try_prefix_cache_info() const {
        qwen_prefix_cache_info info = QWEN_PREFIX_CACHE_INFO_INIT;
        qwen_status status = qwen_prefix_cache_get_info(handle(), &info);
        if (status < 0) return Error::last(status);
        return info;
    }
    // cache_namespace: 0 for all.
    Done try_clear_prefix_cache(std::uint64_t cache_namespace = 0) const {
        return done(qwen_prefix_cache_clear(handle(), cache_namespace));
    }
    // The ids that end a turn; valid as long as this object.
    Result<Span<Token>> try_end_tokens() const {
        const Token *tokens = nullptr;
        std::size_t count = 0;
        qwen_status status = qwen_model_end_tokens(handle(), &tokens, &count);
        if (status < 0) return Error::last(status);
        return Span<Token>(tokens, count);
    }
    // flags: QWEN_TEXT_ADDED_TOKENS or 0.
    Result<std::vector<Token>> try_tokenize(std::string_view text,
                                            std::uint32_t flags = 0) const {
        return detail::sized<std::vector<Token>>([&](auto *to, auto room, auto *needed) {
            return qwen_tokenize(handle(), text.data(), text.size(), flags, to, room, needed);
        });
    }
    // flags: QWEN_TEXT_SKIP_SPECIAL or 0. The exact bytes.
    Result<std::string> try_detokenize(Span<Token> tokens, std::uint32_t flags = 0) const {
        return detail::sized<std::string>([&](auto *to, auto room, auto *needed) {
            return qwen_detokenize(handle(), tokens.data(), tokens.size(), flags, to, room,
                                   needed);
        });
    }
    // The bytes of one token; valid as long as this object.
    Result<std::string_view> try_token_bytes(Token token) const {
        const char *bytes = nullptr;
        std::size_t length = 0;
        qwen_status status = qwen_token_bytes(handle(), token, &bytes, &length);
        if (status < 0) return Error::last(status);
        return std::string_view(bytes, length);
    }
    // A sum of QWEN_TOKEN_ constants.
    Result<std::uint32_t> try_token_kind(Token token) const {
        std::uint32_t kind = 0;
        qwen_status status = qwen_token_kind(handle(), token, &kind);
        if (status < 0) return Error::last(status);
        return kind;
    }
    // The added token with this spelling, if there is one.
    Result<std::optional<Token>> try_find_token(std::string_view spelling) const {
        Token token = -1;
        qwen_status status =
            qwen_token_find(handle(), spelling.data(), spelling.size(), &token);
        if (status < 0) return Error::last(status);
        return token < 0 ? std::optional<Token>() : std::optional<Token>(token);
    }
    // json: see qwen_chat_render().
    Result<std::string> try_render_chat(std::string_view json) const {
        return detail::sized<std::string>([&](auto *to, auto room, auto *needed) {
            return qwen_chat_render(handle(), json.data(), json.size(), 0, to, room, needed);
        });
    }
    // flags: QWEN_CHAT_AS_TRANSFORMERS or 0.
    Result<std::vector<Token>> try_tokenize_chat(std::string_view json,
                                                 std::uint32_t flags = 0) const {
        return detail::sized<std::vector<Token>>([&](auto *to, auto room, auto *needed) {
            return qwen_chat_tokenize(handle(), json.data(), json.size(), flags, to, room,
                                      needed);
        });
    }

#ifdef QWEN35_EXCEPTIONS
    explicit Model(std::string_view path, const ModelOptions &options = {})
        : Model(open(path, options).value()) {}
    template <typename Read>
    static qwen_model_cost estimate_reader(std::uint64_t size, Read read,
                                           std::uint64_t context = 0,
                                           const ModelOptions &options = {}) {
        return try_estimate_reader(size, std::move(read), context, options).value();
    }
    template <typename Open>
    static qwen_model_cost estimate_files(Open open, std::uint64_t context = 0,
                                          const ModelOptions &options = {}) {
        return try_estimate_files(std::move(open), context, options).value();
    }
    static qwen_model_cost estimate_memory(const void *data, std::size_t size,
                                           std::uint64_t context = 0,
                                           const ModelOptions &options = {}) {
        return try_estimate_memory(data, size, context, options).value();
    }
    static qwen_model_cost estimate(std::string_view path, std::uint64_t context = 0,
                                    const ModelOptions &options = {}) {
        return try_estimate(path, context, options).value();
    }
    bool warm_up(WorkProgress progress = {}) const {
        return try_warm_up(std::move(progress)).value();
    }
    qwen_model_info info() const { return try_info().value(); }
    qwen_statistics statistics() const { return try_statistics().value(); }
    qwen_prefix_cache_info prefix_cache_info() const {
        return try_prefix_cache_info().value();
    }
    void clear_prefix_cache(std::uint64_t cache_namespace = 0) const {
        try_clear_prefix_cache(cache_namespace).value();
    }
    Span<Token> end_tokens() const { return try_end_tokens().value(); }
    std::vector<Token> tokenize(std::string_view text, std::uint32_t flags = 0) const {
        return try_tokenize(text, flags).value();
    }
    std::string detokenize(Span<Token> tokens, std::uint32_t flags = 0) const {
        return try_detokenize(tokens, flags).value();
    }
    std::string_view token_bytes(Token token) const { return try_token_bytes(token).value(); }
    std::uint32_t token_kind(Token token) const { return try_token_kind(token).value(); }
    std::optional<Token> find_token(std::string_view spelling) const {
        return try_find_token(spelling).value();
    }
    std::string render_chat(std::string_view json) const {
        return try_render_chat(json).value();
    }
    std::vector<Token> tokenize_chat(std::string_view json, std::uint32_t flags = 0) const {
        return try_tokenize_chat(json, flags).value();
    }
#endif

    // For calls of qwen35.h; still owned by this object.
    qwen_model *handle() const noexcept { return handle_.get(); }

  private:
    template <typename Read>
    static std::int32_t host_read(std::uint64_t offset, void *buffer, std::size_t length,
                                  void *user) {
        return (*static_cast<Read *>(user))(offset, buffer, length) ? 0 : 1;
    }
    template <typename Open> static qwen_file_callbacks host_files() {
        using File =
            typename decltype(std::declval<Open &>()(std::string_view()))::element_type;
        qwen_file_callbacks files = QWEN_FILE_CALLBACKS_INIT;
        files.open = [](const char *name, std::size_t length, void **file, std::uint64_t *size,
                        void *user) {
            auto found = (*static_cast<Open *>(user))(std::string_view(name, length));
            if (found == nullptr) return std::int32_t(QWEN_FILE_MISSING);
            *size = found->size();
            *file = found.release();
            return std::int32_t(0);
        };
        files.read = [](void *file, std::uint64_t offset, void *buffer, std::size_t length,
                        void *) {
            return std::int32_t(static_cast<File *>(file)->read(offset, buffer, length) ? 0 : 1);
        };
        files.close = [](void *file, void *) { delete static_cast<File *>(file); };
        return files;
    }
    explicit Model(qwen_model *handle) : handle_(handle) {}
    std::unique_ptr<qwen_model, detail::Free> handle_;
};

// Packs the model `source` into the file `destination`. Nothing if `progress` ended it. See
// qwen_pack().
inline Result<std::optional<qwen_pack_info>> try_pack(std::string_view source,
                                                      std::string_view destination,
                                                      qwen_weights weights = QWEN_WEIGHTS_STORED,
                                                      WorkProgress progress = {}) {
    qwen_pack_info info = QWEN_PACK_INFO_INIT;
    qwen_pack_options options = QWEN_PACK_OPTIONS_INIT;
    options.weights = weights;
    qwen_status status =
        qwen_pack(source.data(), source.size(), destination.data(), destination.size(), &options,
                  detail::work_callback(progress), &progress, &info);
    if (status < 0) return Error::last(status);
    if (status == QWEN_CANCELLED) return std::optional<qwen_pack_info>();
    return std::optional<qwen_pack_info>(info);
}

// Checks every byte of a packed file. False if `progress` ended it.
inline Result<bool> try_verify_pack(std::string_view path, WorkProgress progress = {}) {
    return detail::ended(
        qwen_pack_verify(path.data(), path.size(), detail::work_callback(progress), &progress));
}

#ifdef QWEN35_EXCEPTIONS
inline std::optional<qwen_pack_info> pack(std::string_view source, std::string_view destination,
                                          qwen_weights weights = QWEN_WEIGHTS_STORED,
                                          WorkProgress progress = {}) {
    return try_pack(source, destination, weights, std::move(progress)).value();
}
inline bool verify_pack(std::string_view path, WorkProgress progress = {}) {
    return try_verify_pack(path, std::move(progress)).value();
}
#endif

// Tokens to text in whole characters. See qwen_stream_decoder.
class StreamDecoder {
  public:
    // flags: QWEN_TEXT_SKIP_SPECIAL or 0.
    static Result<StreamDecoder> make(const Model &model,
                                      std::uint32_t flags = QWEN_TEXT_SKIP_SPECIAL) {
        qwen_stream_decoder *handle = nullptr;
        qwen_status status = qwen_stream_decoder_new(model.handle(), flags, &handle);
        if (status < 0) return Error::last(status);
        return StreamDecoder(handle);
    }
    // The text that the token completes; valid until the next call.
    Result<std::string_view> try_push(Token token) {
        return text([&](auto **data, auto *length) {
            return qwen_stream_decoder_push(handle(), token, data, length);
        });
    }
    // What is held back. Valid until the next call.
    Result<std::string_view> try_finish() {
        return text([&](auto **data, auto *length) {
            return qwen_stream_decoder_finish(handle(), data, length);
        });
    }
    // As if these tokens had been pushed into a new decoder, without their text.
    Done try_resume(Span<Token> tokens) {
        return done(qwen_stream_decoder_resume(handle(), tokens.data(), tokens.size()));
    }

#ifdef QWEN35_EXCEPTIONS
    explicit StreamDecoder(const Model &model, std::uint32_t flags = QWEN_TEXT_SKIP_SPECIAL)
        : StreamDecoder(make(model, flags).value()) {}
    std::string_view push(Token token) { return try_push(token).value(); }
    std::string_view finish() { return try_finish().value(); }
    void resume(Span<Token> tokens) { try_resume(tokens).value(); }
#endif

    qwen_stream_decoder *handle() const noexcept { return handle_.get(); }

  private:
    explicit StreamDecoder(qwen_stream_decoder *handle) : handle_(handle) {}
    template <typename Call> static Result<std::string_view> text(Call call) {
        const char *data = nullptr;
        std::size_t length = 0;
        qwen_status status = call(&data, &length);
        if (status < 0) return Error::last(status);
        return std::string_view(data, length);
    }
    std::unique_ptr<qwen_stream_decoder, detail::Free> handle_;
};

// How tokens are chosen: a preset, and what replaces its values. See qwen_sampling_options.
struct Sampling {
    qwen_preset preset = QWEN_PRESET_CHAT;
    std::optional<float> temperature, top_p, min_p;
    std::optional<float> repetition_penalty, presence_penalty, frequency_penalty;
    std::optional<std::uint32_t> top_k, penalty_window;
    std::optional<std::uint64_t> seed;
    std::vector<qwen_logit_bias> logit_bias;

    static Sampling greedy() {
        Sampling sampling;
        sampling.preset = QWEN_PRESET_GREEDY;
        return sampling;
    }

    // For qwen35.h; lends `logit_bias`, so it must not outlive this object.
    qwen_sampling_options raw() const {
        qwen_sampling_options raw = QWEN_SAMPLING_OPTIONS_INIT;
        raw.preset = preset;
        set(raw, QWEN_SET_TEMPERATURE, raw.temperature, temperature);
        set(raw, QWEN_SET_TOP_K, raw.top_k, top_k);
        set(raw, QWEN_SET_TOP_P, raw.top_p, top_p);
        set(raw, QWEN_SET_MIN_P, raw.min_p, min_p);
        set(raw, QWEN_SET_REPETITION_PENALTY, raw.repetition_penalty, repetition_penalty);
        set(raw, QWEN_SET_PRESENCE_PENALTY, raw.presence_penalty, presence_penalty);
        set(raw, QWEN_SET_FREQUENCY_PENALTY, raw.frequency_penalty, frequency_penalty);
        set(raw, QWEN_SET_PENALTY_WINDOW, raw.penalty_window, penalty_window);
        set(raw, QWEN_SET_SEED, raw.seed, seed);
        raw.logit_bias = logit_bias.data();
        raw.logit_bias_count = logit_bias.size();
        return raw;
    }

  private:
    template <typename T>
    static void set(qwen_sampling_options &raw, std::uint32_t bit, T &field,
                    const std::optional<T> &value) {
        if (value) {
            raw.set |= bit;
            field = *value;
        }
    }
};

struct SessionOptions {
    std::uint64_t context_limit = 0;
    Sampling sampling;
    std::uint64_t cache_namespace = 0;
    qwen_overflow overflow = QWEN_OVERFLOW_REFUSE;
    std::uint64_t overflow_reserve = 0;
    std::uint32_t mark_limit = 0;
    qwen_kv kv = QWEN_KV_AUTO;
};

// Whether a call ran to its end, or was cancelled.
enum class Outcome { complete, cancelled };

// What next() found: QWEN_OK or QWEN_END_OF_TURN with a token, QWEN_LIMIT_REACHED or
// QWEN_CANCELLED without.
struct Next {
    qwen_status status = QWEN_OK;
    Token token = -1;
};

// What feed_chat() did.
struct Fed {
    Outcome outcome = Outcome::complete;
    std::size_t total = 0;    // tokens of the conversation
    std::size_t computed = 0; // of them, those this call computed
};

// How likely a text is. See qwen_score.
struct Score {
    Outcome outcome = Outcome::complete;
    double log_likelihood = 0;
    double perplexity = 1;
    std::size_t best_count = 0;
    std::vector<float> logprobs; // of each token
};

// How likely the chosen token was, and the most likely ones in its place.
struct Chosen {
    float logprob = 0;
    std::vector<qwen_token_logprob> top;
};

class TextStream;

// A sequence being continued. See qwen_session.
class Session {
  public:
    static Result<Session> make(const Model &model, const SessionOptions &options = {}) {
        qwen_sampling_options sampling = options.sampling.raw();
        qwen_session_options raw = QWEN_SESSION_OPTIONS_INIT;
        raw.context_limit = options.context_limit;
        raw.sampling = &sampling;
        raw.cache_namespace = options.cache_namespace;
        raw.overflow = options.overflow;
        raw.overflow_reserve = options.overflow_reserve;
        raw.mark_limit = options.mark_limit;
        raw.kv = options.kv;
        qwen_session *handle = nullptr;
        qwen_status status = qwen_session_new(model.handle(), &raw, &handle);
        if (status < 0) return Error::last(status);
        auto decoder = StreamDecoder::make(model);
        if (!decoder) {
            qwen_session_free(handle);
            return decoder.error();
        }
        return Session(handle, std::move(*decoder));
    }

    Result<Outcome> try_feed(Span<Token> tokens) {
        return outcome(qwen_session_feed(handle(), tokens.data(), tokens.size()));
    }
    // flags: QWEN_TEXT_ADDED_TOKENS or 0.
    Result<Outcome> try_feed_text(std::string_view text, std::uint32_t flags = 0) {
        return outcome(qwen_session_feed_text(handle(), text.data(), text.size(), flags));
    }
    // json: see qwen_session_feed_chat(). flags: QWEN_CHAT_AS_TRANSFORMERS or 0.
    Result<Fed> try_feed_chat(std::string_view json, std::uint32_t flags = 0) {
        Fed fed;
        qwen_status status = qwen_session_feed_chat(handle(), json.data(), json.size(), flags,
                                                    &fed.total, &fed.computed);
        if (status < 0) return Error::last(status);
        if (status == QWEN_CANCELLED) fed.outcome = Outcome::cancelled;
        return fed;
    }
    Result<Next> try_next() {
        Next next;
        next.status = qwen_session_next_token(handle(), &next.token);
        if (next.status < 0) return Error::last(next.status);
        return next;
    }
    // Queues input for try_step() to compute. flags: QWEN_TEXT_ADDED_TOKENS or 0.
    Done try_enqueue(Span<Token> tokens) {
        return done(qwen_session_enqueue(handle(), tokens.data(), tokens.size()));
    }
    Done try_enqueue_text(std::string_view text, std::uint32_t flags = 0) {
        return done(qwen_session_enqueue_text(handle(), text.data(), text.size(), flags));
    }
    // computed of the result: the tokens that are still to be computed.
    Result<Fed> try_enqueue_chat(std::string_view json, std::uint32_t flags = 0) {
        Fed fed;
        qwen_status status = qwen_session_enqueue_chat(handle(), json.data(), json.size(), flags,
                                                       &fed.total, &fed.computed);
        if (status < 0) return Error::last(status);
        return fed;
    }
    // Goes on for about so long; status is QWEN_WORKING while there is more to do.
    // flags: QWEN_STEP_INPUT or 0.
    Result<Next> try_step(std::chrono::microseconds budget, std::uint32_t flags = 0) {
        Next next;
        auto us = static_cast<std::uint64_t>(budget.count() < 0 ? 0 : budget.count());
        next.status = qwen_session_step(handle(), us, flags, &next.token, nullptr);
        if (next.status < 0) return Error::last(next.status);
        return next;
    }
    Result<qwen_statistics> try_statistics() const {
        qwen_statistics statistics = QWEN_STATISTICS_INIT;
        qwen_status status = qwen_session_get_statistics(handle(), &statistics);
        if (status < 0) return Error::last(status);
        return statistics;
    }
    // Valid until the next call on this object; empty if the call was cancelled.
    Result<Span<float>> try_logits() {
        const float *logits = nullptr;
        std::size_t count = 0;
        qwen_status status = qwen_session_logits(handle(), &logits, &count);
        if (status < 0) return Error::last(status);
        return Span<float>(logits, count);
    }
    Result<std::size_t> try_position() const {
        std::size_t position = 0;
        qwen_status status = qwen_session_position(handle(), &position);
        if (status < 0) return Error::last(status);
        return position;
    }
    Result<std::size_t> try_context_limit() const {
        std::size_t limit = 0;
        qwen_status status = qwen_session_context_limit(handle(), &limit);
        if (status < 0) return Error::last(status);
        return limit;
    }
    // How keys and values are stored.
    Result<qwen_kv> try_kv() const {
        qwen_kv kv = QWEN_KV_AUTO;
        qwen_status status = qwen_session_kv(handle(), &kv);
        if (status < 0) return Error::last(status);
        return kv;
    }
    // The sequence; valid until the next call that changes it.
    Result<Span<Token>> try_tokens() const {
        const Token *tokens = nullptr;
        std::size_t count = 0;
        qwen_status status = qwen_session_tokens(handle(), &tokens, &count);
        if (status < 0) return Error::last(status);
        return Span<Token>(tokens, count);
    }
    Done try_set_sampling(const Sampling &sampling) {
        qwen_sampling_options raw = sampling.raw();
        return done(qwen_session_set_sampling(handle(), &raw));
    }
    // callback(done, total) returns true to go on, false to cancel. It must not throw.
    Done try_set_progress(std::function<bool(std::size_t, std::size_t)> callback) {
        auto kept = std::make_unique<Progress>(std::move(callback));
        qwen_progress_callback call = [](std::size_t done, std::size_t total, void *user) {
            return static_cast<std::int32_t>(!(*static_cast<Progress *>(user))(done, total));
        };
        qwen_status status =
            qwen_session_set_progress(handle(), *kept ? call : nullptr, kept.get());
        if (status < 0) return Error::last(status);
        progress_ = std::move(kept);
        return std::monostate();
    }
    // callback(logits, tokens) may change the logits and returns true to go on, false to
    // cancel. It must not throw. See qwen_logits_callback.
    using LogitsCallback = std::function<bool(float *logits, std::size_t count, Span<Token> tokens)>;
    Done try_set_logits_callback(LogitsCallback callback) {
        auto kept = std::make_unique<LogitsCallback>(std::move(callback));
        qwen_logits_callback call = [](float *logits, std::size_t count, const Token *tokens,
                                       std::size_t token_count, void *user) {
            auto &callback = *static_cast<LogitsCallback *>(user);
            return static_cast<std::int32_t>(
                !callback(logits, count, Span<Token>(tokens, token_count)));
        };
        qwen_status status =
            qwen_session_set_logits_callback(handle(), *kept ? call : nullptr, kept.get());
        if (status < 0) return Error::last(status);
        logits_callback_ = std::move(kept);
        return std::monostate();
    }
    // The logarithms of the probabilities of each token as the next one.
    Result<std::vector<float>> try_logprobs(Span<Token> tokens) {
        std::vector<float> found(tokens.size());
        qwen_status status =
            qwen_session_logprobs(handle(), tokens.data(), tokens.size(), found.data());
        if (status < 0) return Error::last(status);
        return found;
    }
    // The most likely next tokens.
    Result<std::vector<qwen_token_logprob>> try_top_logprobs(std::size_t count) {
        std::vector<qwen_token_logprob> top(count);
        qwen_status status = qwen_session_top_logprobs(handle(), top.data(), count);
        if (status < 0) return Error::last(status);
        return top;
    }
    // Of the token that try_next() has just chosen.
    Result<Chosen> try_chosen_logprobs(std::size_t count = 0) {
        Chosen chosen;
        chosen.top.resize(count);
        qwen_status status = qwen_session_chosen_logprobs(
            handle(), &chosen.logprob, count > 0 ? chosen.top.data() : nullptr, count);
        if (status < 0) return Error::last(status);
        return chosen;
    }
    // See qwen_session_score(). flags: QWEN_SCORE_KEEP or 0.
    Result<Score> try_score(Span<Token> tokens, std::uint32_t flags = 0) {
        Score found;
        found.logprobs.resize(tokens.size());
        qwen_score raw = QWEN_SCORE_INIT;
        qwen_status status = qwen_session_score(handle(), tokens.data(), tokens.size(), flags,
                                                found.logprobs.data(), &raw);
        if (status < 0) return Error::last(status);
        if (status == QWEN_CANCELLED) found.outcome = Outcome::cancelled;
        found.log_likelihood = raw.log_likelihood;
        found.perplexity = raw.perplexity;
        found.best_count = raw.best_count;
        return found;
    }
    // See qwen_session_embed_text(). flags: QWEN_EMBED_NORMALIZE, QWEN_TEXT_ADDED_TOKENS or 0.
    Result<std::vector<float>> try_embed_text(std::string_view text,
                                              qwen_pooling pooling = QWEN_POOLING_MEAN,
                                              std::uint32_t flags = QWEN_EMBED_NORMALIZE) {
        return detail::sized<std::vector<float>>([&](auto *to, auto room, auto *needed) {
            return qwen_session_embed_text(handle(), text.data(), text.size(), pooling, flags,
                                           to, room, needed);
        });
    }
    Done try_reset() { return done(qwen_session_reset(handle())); }

    // An independent session that stands where this one does; without its progress callback,
    // and with a new decoder for stream().
    Result<Session> try_fork(const Model &model) const {
        qwen_session *fork = nullptr;
        qwen_status status = qwen_session_fork(handle(), &fork);
        if (status < 0) return Error::last(status);
        auto decoder = StreamDecoder::make(model);
        if (!decoder) {
            qwen_session_free(fork);
            return decoder.error();
        }
        return Session(fork, std::move(*decoder));
    }
    // The name of a mark, for try_rewind().
    Result<std::uint64_t> try_mark() {
        std::uint64_t mark = 0;
        qwen_status status = qwen_session_mark(handle(), &mark);
        if (status < 0) return Error::last(status);
        return mark;
    }
    Done try_unmark(std::uint64_t mark) { return done(qwen_session_unmark(handle(), mark)); }
    Result<std::vector<qwen_mark>> try_marks() const {
        return detail::sized<std::vector<qwen_mark>>([&](auto *to, auto room, auto *needed) {
            return qwen_session_marks(handle(), to, room, needed);
        });
    }
    // flags: QWEN_REWIND_RANDOM or 0.
    Done try_rewind(std::uint64_t mark, std::uint32_t flags = 0) {
        return done(qwen_session_rewind(handle(), mark, flags));
    }
    // Gives the tokens computed again.
    Result<std::size_t> try_truncate(std::size_t position) {
        std::size_t computed = 0;
        qwen_status status = qwen_session_truncate(handle(), position, &computed);
        if (status < 0) return Error::last(status);
        return computed;
    }
    Result<Fed> try_set_tokens(Span<Token> tokens) {
        Fed fed;
        fed.total = tokens.size();
        qwen_status status =
            qwen_session_set_tokens(handle(), tokens.data(), tokens.size(), &fed.computed);
        if (status < 0) return Error::last(status);
        if (status == QWEN_CANCELLED) fed.outcome = Outcome::cancelled;
        return fed;
    }
    // What the last feed_chat() or set_tokens() did, messages left out among it.
    Result<qwen_feed_info> try_feed_info() const {
        qwen_feed_info info = QWEN_FEED_INFO_INIT;
        qwen_status status = qwen_session_get_feed_info(handle(), &info);
        if (status < 0) return Error::last(status);
        return info;
    }
    Done try_set_attachment(std::string_view data) {
        return done(qwen_session_set_attachment(handle(), data.data(), data.size()));
    }
    // Valid until the next call that changes the session.
    Result<std::string_view> try_attachment() const {
        const void *data = nullptr;
        std::size_t size = 0;
        qwen_status status = qwen_session_attachment(handle(), &data, &size);
        if (status < 0) return Error::last(status);
        return std::string_view(static_cast<const char *>(data), size);
    }
    // flags: QWEN_SAVE_WITHOUT_MARKS or 0.
    Done try_save(std::string_view file, std::uint32_t flags = 0) const {
        return done(qwen_session_save_file(handle(), file.data(), file.size(), flags));
    }
    Done try_restore(std::string_view file) {
        return done(qwen_session_restore_file(handle(), file.data(), file.size()));
    }
    Result<std::string> try_save_to_memory(std::uint32_t flags = 0) const {
        return detail::sized<std::string>([&](auto *to, auto room, auto *needed) {
            return qwen_session_save_memory(handle(), flags, to, room, needed);
        });
    }
    Done try_restore_from_memory(std::string_view data) {
        return done(qwen_session_restore_memory(handle(), data.data(), data.size()));
    }
    // Any thread, any time, while this object lives.
    void cancel() const noexcept { qwen_session_cancel(handle()); }
    // Forgets a cancel that came too late for its call. Between calls.
    void clear_cancel() noexcept { qwen_session_cancel_clear(handle()); }

    // Text of the next tokens, piece by piece: a range to be walked once. It ends at an end
    // of turn, at a limit, when cancelled, or after max_tokens.
    TextStream stream(std::size_t max_tokens = std::numeric_limits<std::size_t>::max());

#ifdef QWEN35_EXCEPTIONS
    explicit Session(const Model &model, const SessionOptions &options = {})
        : Session(make(model, options).value()) {}
    Outcome feed(Span<Token> tokens) { return try_feed(tokens).value(); }
    Outcome feed_text(std::string_view text, std::uint32_t flags = 0) {
        return try_feed_text(text, flags).value();
    }
    Fed feed_chat(std::string_view json, std::uint32_t flags = 0) {
        return try_feed_chat(json, flags).value();
    }
    Next next() { return try_next().value(); }
    void enqueue(Span<Token> tokens) { try_enqueue(tokens).value(); }
    void enqueue_text(std::string_view text, std::uint32_t flags = 0) {
        try_enqueue_text(text, flags).value();
    }
    Fed enqueue_chat(std::string_view json, std::uint32_t flags = 0) {
        return try_enqueue_chat(json, flags).value();
    }
    Next step(std::chrono::microseconds budget, std::uint32_t flags = 0) {
        return try_step(budget, flags).value();
    }
    qwen_statistics statistics() const { return try_statistics().value(); }
    Span<float> logits() { return try_logits().value(); }
    std::size_t position() const { return try_position().value(); }
    std::size_t context_limit() const { return try_context_limit().value(); }
    qwen_kv kv() const { return try_kv().value(); }
    Span<Token> tokens() const { return try_tokens().value(); }
    void set_sampling(const Sampling &sampling) { try_set_sampling(sampling).value(); }
    void set_progress(std::function<bool(std::size_t, std::size_t)> callback) {
        try_set_progress(std::move(callback)).value();
    }
    void set_logits_callback(LogitsCallback callback) {
        try_set_logits_callback(std::move(callback)).value();
    }
    std::vector<float> logprobs(Span<Token> tokens) { return try_logprobs(tokens).value(); }
    std::vector<qwen_token_logprob> top_logprobs(std::size_t count) {
        return try_top_logprobs(count).value();
    }
    Chosen chosen_logprobs(std::size_t count = 0) { return try_chosen_logprobs(count).value(); }
    Score score(Span<Token> tokens, std::uint32_t flags = 0) {
        return try_score(tokens, flags).value();
    }
    std::vector<float> embed_text(std::string_view text,
                                  qwen_pooling pooling = QWEN_POOLING_MEAN,
                                  std::uint32_t flags = QWEN_EMBED_NORMALIZE) {
        return try_embed_text(text, pooling, flags).value();
    }
    void reset() { try_reset().value(); }
    Session fork(const Model &model) const { return try_fork(model).value(); }
    std::uint64_t mark() { return try_mark().value(); }
    void unmark(std::uint64_t mark) { try_unmark(mark).value(); }
    std::vector<qwen_mark> marks() const { return try_marks().value(); }
    void rewind(std::uint64_t mark, std::uint32_t flags = 0) {
        try_rewind(mark, flags).value();
    }
    std::size_t truncate(std::size_t position) { return try_truncate(position).value(); }
    Fed set_tokens(Span<Token> tokens) { return try_set_tokens(tokens).value(); }
    qwen_feed_info feed_info() const { return try_feed_info().value(); }
    void set_attachment(std::string_view data) { try_set_attachment(data).value(); }
    std::string_view attachment() const { return try_attachment().value(); }
    void save(std::string_view file, std::uint32_t flags = 0) const {
        try_save(file, flags).value();
    }
    void restore(std::string_view file) { try_restore(file).value(); }
    std::string save_to_memory(std::uint32_t flags = 0) const {
        return try_save_to_memory(flags).value();
    }
    void restore_from_memory(std::string_view data) { try_restore_from_memory(data).value(); }
#endif

    qwen_session *handle() const noexcept { return handle_.get(); }

  private:
    friend class TextStream;
    using Progress = std::function<bool(std::size_t, std::size_t)>;
    Session(qwen_session *handle, StreamDecoder decoder)
        : decoder_(std::move(decoder)), handle_(handle) {}
    static Result<Outcome> outcome(qwen_status status) {
        if (status < 0) return Error::last(status);
        return status == QWEN_CANCELLED ? Outcome::cancelled : Outcome::complete;
    }
    StreamDecoder decoder_;
    std::unique_ptr<Progress> progress_; // outlives the handle, which calls it
    std::unique_ptr<LogitsCallback> logits_callback_; // likewise
    std::unique_ptr<qwen_session, detail::Free> handle_;
};

// Advances each session by one token, the weights read once for all: see qwen_batch_step().
// A session that failed has a negative status in its place; Error::last() speaks of the last.
inline Result<std::vector<Next>> try_batch_step(const std::vector<Session *> &sessions) {
    std::vector<qwen_session *> handles;
    for (Session *session : sessions) handles.push_back(session->handle());
    std::vector<Token> tokens(handles.size());
    std::vector<qwen_status> statuses(handles.size());
    qwen_status status =
        qwen_batch_step(handles.data(), handles.size(), tokens.data(), statuses.data());
    if (status < 0) return Error::last(status);
    std::vector<Next> results(handles.size());
    for (std::size_t i = 0; i < results.size(); i++) {
        results[i].token = tokens[i];
        results[i].status = statuses[i];
    }
    return results;
}

#ifdef QWEN35_EXCEPTIONS
inline std::vector<Next> batch_step(const std::vector<Session *> &sessions) {
    return try_batch_step(sessions).value();
}
#endif

// A range of pieces of text, made while it is walked, in whole characters. It must not outlive
// its session, nor the session move meanwhile. A failure throws qwen::Error; without
// exceptions it ends the range, and error() tells.
class TextStream {
  public:
    TextStream(Session &session, std::size_t max_tokens)
        : session_(&session), left_(max_tokens) {
        // A range that was left in the middle may have left half a character.
        static_cast<void>(session.decoder_.try_finish());
    }

    class iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = std::string_view;
        using difference_type = std::ptrdiff_t;
        using pointer = const std::string_view *;
        using reference = std::string_view;
        iterator() = default;
        explicit iterator(TextStream *stream) : stream_(stream) { ++*this; }
        std::string_view operator*() const { return stream_->piece_; }
        iterator &operator++() {
            if (!stream_->advance()) stream_ = nullptr;
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator &a, const iterator &b) {
            return a.stream_ == b.stream_;
        }
        friend bool operator!=(const iterator &a, const iterator &b) { return !(a == b); }

      private:
        TextStream *stream_ = nullptr;
    };

    iterator begin() { return iterator(this); }
    iterator end() { return iterator(); }

    // What ended it: QWEN_END_OF_TURN, QWEN_LIMIT_REACHED, QWEN_CANCELLED, or QWEN_OK after
    // max_tokens (and while it goes on).
    qwen_status status() const noexcept { return status_; }
    // Tokens made so far.
    std::size_t count() const noexcept { return count_; }
    const std::optional<Error> &error() const noexcept { return error_; }

  private:
    // The next piece that is not empty; false at the end.
    bool advance() {
        while (!ended_) {
            auto piece = step();
            if (!piece) {
                ended_ = true;
                error_ = piece.error();
#ifdef QWEN35_EXCEPTIONS
                throw *error_;
#endif
            } else if (!piece->empty()) {
                piece_ = *piece;
                return true;
            }
        }
        return false;
    }
    Result<std::string_view> step() {
        if (left_ == 0) return finish();
        auto next = session_->try_next();
        if (!next) return next.error();
        status_ = next->status;
        if (status_ != QWEN_OK) return finish();
        left_--, count_++;
        return session_->decoder_.try_push(next->token);
    }
    Result<std::string_view> finish() {
        ended_ = true;
        return session_->decoder_.try_finish();
    }
    Session *session_;
    std::size_t left_, count_ = 0;
    qwen_status status_ = QWEN_OK;
    bool ended_ = false;
    std::string_view piece_;
    std::optional<Error> error_;
};

inline TextStream Session::stream(std::size_t max_tokens) {
    return TextStream(*this, max_tokens);
}

// How a conversation is held. See qwen_conversation_options.
struct ConversationOptions {
    std::string system; // empty: none
    std::string tools;  // a JSON array; empty: none
    qwen_thinking thinking = QWEN_THINKING_DEFAULT;
    std::uint32_t thinking_budget = 0;
    std::uint32_t max_tokens = 0;
    std::vector<std::string> stop;
    std::uint32_t flags = 0; // QWEN_CHAT_AS_TRANSFORMERS or 0
};

// A piece of a reply. See qwen_piece. Its texts are valid until the next call on the
// conversation.
struct Piece {
    qwen_piece_kind kind = QWEN_PIECE_NONE;
    std::string_view text;
    std::string_view name, arguments, id, problem; // of a tool call
    bool is_whole = false;
    qwen_finish finish = QWEN_FINISH_NONE;

    bool is_thinking() const noexcept { return kind == QWEN_PIECE_THINKING; }
    bool is_text() const noexcept { return kind == QWEN_PIECE_TEXT; }
    bool is_tool_call() const noexcept { return kind == QWEN_PIECE_TOOL_CALL; }
    bool is_end() const noexcept { return kind == QWEN_PIECE_END; }
};

class Reply;

// A conversation over a session, which it keeps. See qwen_conversation.
//
//     qwen::Conversation talk(session, options);
//     talk.send_text("What is the weather in Paris?");
//     for (const qwen::Piece &piece : talk.reply()) {
//         if (piece.is_text()) std::cout << piece.text;
//         if (piece.is_tool_call()) calls.emplace_back(piece.id, piece.name, piece.arguments);
//     }
class Conversation {
  public:
    static Result<Conversation> make(Session &session, const ConversationOptions &options = {}) {
        Raw raw(options);
        qwen_conversation *handle = nullptr;
        qwen_status status = qwen_conversation_new(session.handle(), &raw.options, &handle);
        if (status < 0) return Error::last(status);
        return Conversation(handle);
    }

    Done try_configure(const ConversationOptions &options) {
        Raw raw(options);
        return done(qwen_conversation_configure(handle(), &raw.options));
    }
    // Messages are added, and answered by the next send().
    Done try_add(std::string_view json) {
        return done(qwen_conversation_add(handle(), json.data(), json.size()));
    }
    Done try_add_text(std::string_view role, std::string_view text) {
        return done(qwen_conversation_add_text(handle(), role.data(), role.size(), text.data(),
                                               text.size()));
    }
    Done try_add_tool_result(std::string_view id, std::string_view result) {
        return done(qwen_conversation_add_tool_result(handle(), id.data(), id.size(),
                                                      result.data(), result.size()));
    }
    // Starts the reply to these messages, or to those added before.
    Result<Fed> try_send(std::string_view json = {}) {
        return fed([&](auto *total, auto *computed) {
            return qwen_conversation_send(handle(), json.data(), json.size(), total, computed);
        });
    }
    Result<Fed> try_send_text(std::string_view text) {
        return fed([&](auto *total, auto *computed) {
            return qwen_conversation_send_text(handle(), text.data(), text.size(), total,
                                               computed);
        });
    }
    // Starts a reply that try_step() computes. `computed` of the result is still to be computed.
    Result<Fed> try_enqueue(std::string_view json = {}) {
        return fed([&](auto *total, auto *remaining) {
            return qwen_conversation_enqueue(handle(), json.data(), json.size(), total, remaining);
        });
    }
    Result<Fed> try_enqueue_text(std::string_view text) {
        return fed([&](auto *total, auto *remaining) {
            return qwen_conversation_enqueue_text(handle(), text.data(), text.size(), total,
                                                  remaining);
        });
    }
    Result<Fed> try_regenerate() {
        return fed([&](auto *total, auto *computed) {
            return qwen_conversation_regenerate(handle(), total, computed);
        });
    }
    // Computes now, while the user reads and types, what the next message would wait for.
    Result<Fed> try_settle() {
        return fed([&](auto *total, auto *computed) {
            return qwen_conversation_settle(handle(), total, computed);
        });
    }
    // The reply's next piece; one that is_end() when there is none.
    Result<Piece> try_next() {
        qwen_piece raw = QWEN_PIECE_INIT;
        qwen_status status = qwen_conversation_next(handle(), &raw);
        if (status < 0) return Error::last(status);
        return piece_of(raw);
    }
    // The same for about as long as the budget says: a piece of kind QWEN_PIECE_NONE when that is
    // over and there is none yet, or, with `cancelled`, when it was cancelled before all messages
    // were computed: see qwen_conversation_step().
    struct Stepped {
        Piece piece;
        bool cancelled = false;
        std::size_t remaining = 0; // tokens that are still to be computed
    };
    Result<Stepped> try_step(std::chrono::microseconds budget) {
        qwen_piece raw = QWEN_PIECE_INIT;
        Stepped stepped;
        const auto us = static_cast<std::uint64_t>(budget.count() < 0 ? 0 : budget.count());
        qwen_status status = qwen_conversation_step(handle(), us, &raw, &stepped.remaining);
        if (status < 0) return Error::last(status);
        stepped.piece = piece_of(raw);
        stepped.cancelled = status == QWEN_CANCELLED;
        return stepped;
    }
    static Piece piece_of(const qwen_piece &raw) {
        Piece piece;
        piece.kind = raw.kind;
        piece.text = std::string_view(raw.text, raw.text_length);
        piece.name = std::string_view(raw.name, raw.name_length);
        piece.arguments = std::string_view(raw.arguments, raw.arguments_length);
        piece.id = std::string_view(raw.id, raw.id_length);
        piece.problem = std::string_view(raw.problem, raw.problem_length);
        piece.is_whole = raw.is_whole != 0;
        piece.finish = raw.finish;
        return piece;
    }
    Done try_resume() { return done(qwen_conversation_resume(handle())); }
    // How many messages were taken back.
    Result<std::size_t> try_undo() {
        std::size_t removed = 0;
        qwen_status status = qwen_conversation_undo(handle(), &removed);
        if (status < 0) return Error::last(status);
        return removed;
    }
    Result<std::string> try_history() const {
        return detail::sized<std::string>([&](auto *to, auto room, auto *needed) {
            return qwen_conversation_history(handle(), to, room, needed);
        });
    }
    Done try_set_history(std::string_view json) {
        return done(qwen_conversation_set_history(handle(), json.data(), json.size()));
    }
    // With its session, also in the middle of a reply. flags: QWEN_SAVE_WITHOUT_MARKS or 0.
    Done try_save(std::string_view file, std::uint32_t flags = 0) const {
        return done(qwen_conversation_save_file(handle(), file.data(), file.size(), flags));
    }
    Done try_restore(std::string_view file) {
        return done(qwen_conversation_restore_file(handle(), file.data(), file.size()));
    }
    Result<std::string> try_save_to_memory(std::uint32_t flags = 0) const {
        return detail::sized<std::string>([&](auto *to, auto room, auto *needed) {
            return qwen_conversation_save_memory(handle(), flags, to, room, needed);
        });
    }
    Done try_restore_from_memory(std::string_view data) {
        return done(qwen_conversation_restore_memory(handle(), data.data(), data.size()));
    }
    // Any thread, any time, while this object lives.
    void cancel() const noexcept { qwen_conversation_cancel(handle()); }
    // Forgets a cancel that came too late for its call. Between calls.
    void clear_cancel() noexcept { qwen_conversation_cancel_clear(handle()); }

    // The pieces of the reply that was started: a range to be walked once.
    Reply reply();

#ifdef QWEN35_EXCEPTIONS
    explicit Conversation(Session &session, const ConversationOptions &options = {})
        : Conversation(make(session, options).value()) {}
    void configure(const ConversationOptions &options) { try_configure(options).value(); }
    void add(std::string_view json) { try_add(json).value(); }
    void add_text(std::string_view role, std::string_view text) {
        try_add_text(role, text).value();
    }
    void add_tool_result(std::string_view id, std::string_view result) {
        try_add_tool_result(id, result).value();
    }
    Fed send(std::string_view json = {}) { return try_send(json).value(); }
    Fed settle() { return try_settle().value(); }
    Fed send_text(std::string_view text) { return try_send_text(text).value(); }
    Fed enqueue(std::string_view json = {}) { return try_enqueue(json).value(); }
    Fed enqueue_text(std::string_view text) { return try_enqueue_text(text).value(); }
    Stepped step(std::chrono::microseconds budget) { return try_step(budget).value(); }
    Fed regenerate() { return try_regenerate().value(); }
    Piece next() { return try_next().value(); }
    void resume() { try_resume().value(); }
    std::size_t undo() { return try_undo().value(); }
    std::string history() const { return try_history().value(); }
    void set_history(std::string_view json) { try_set_history(json).value(); }
    void save(std::string_view file, std::uint32_t flags = 0) const {
        try_save(file, flags).value();
    }
    void restore(std::string_view file) { try_restore(file).value(); }
    std::string save_to_memory(std::uint32_t flags = 0) const {
        return try_save_to_memory(flags).value();
    }
    void restore_from_memory(std::string_view data) { try_restore_from_memory(data).value(); }
#endif

    qwen_conversation *handle() const noexcept { return handle_.get(); }

  private:
    // Options for qwen35.h, which lend from the ones given.
    struct Raw {
        explicit Raw(const ConversationOptions &from) {
            for (const std::string &stop : from.stop) {
                stops.push_back(stop.data());
                lengths.push_back(stop.size());
            }
            options.flags = from.flags;
            options.thinking = from.thinking;
            options.thinking_budget = from.thinking_budget;
            options.max_tokens = from.max_tokens;
            options.stop_count = static_cast<std::uint32_t>(stops.size());
            options.stop = stops.data();
            options.stop_lengths = lengths.data();
            if (!from.system.empty()) {
                options.system = from.system.data();
                options.system_length = from.system.size();
            }
            if (!from.tools.empty()) {
                options.tools = from.tools.data();
                options.tools_length = from.tools.size();
            }
        }
        std::vector<const char *> stops;
        std::vector<std::size_t> lengths;
        qwen_conversation_options options = QWEN_CONVERSATION_OPTIONS_INIT;
    };
    explicit Conversation(qwen_conversation *handle) : handle_(handle) {}
    template <typename Call> static Result<Fed> fed(Call call) {
        Fed fed;
        qwen_status status = call(&fed.total, &fed.computed);
        if (status < 0) return Error::last(status);
        if (status == QWEN_CANCELLED) fed.outcome = Outcome::cancelled;
        return fed;
    }
    std::unique_ptr<qwen_conversation, detail::Free> handle_;
};

// A range of the pieces of a reply, made while it is walked; the end is none of them. It must
// not outlive its conversation, nor the conversation move meanwhile. A failure throws
// qwen::Error; without exceptions it ends the range, and error() tells.
class Reply {
  public:
    explicit Reply(Conversation &conversation) : conversation_(&conversation) {}

    class iterator {
      public:
        using iterator_category = std::input_iterator_tag;
        using value_type = Piece;
        using difference_type = std::ptrdiff_t;
        using pointer = const Piece *;
        using reference = const Piece &;
        iterator() = default;
        explicit iterator(Reply *reply) : reply_(reply) { ++*this; }
        const Piece &operator*() const { return reply_->piece_; }
        const Piece *operator->() const { return &reply_->piece_; }
        iterator &operator++() {
            if (!reply_->advance()) reply_ = nullptr;
            return *this;
        }
        void operator++(int) { ++*this; }
        friend bool operator==(const iterator &a, const iterator &b) {
            return a.reply_ == b.reply_;
        }
        friend bool operator!=(const iterator &a, const iterator &b) { return !(a == b); }

      private:
        Reply *reply_ = nullptr;
    };

    iterator begin() { return iterator(this); }
    iterator end() { return iterator(); }

    // Why it ended; QWEN_FINISH_NONE before that.
    qwen_finish finish() const noexcept { return piece_.finish; }
    // The stop string that ended it, or nothing.
    std::string_view stop() const noexcept {
        return piece_.finish == QWEN_FINISH_STOP ? piece_.text : std::string_view();
    }
    const std::optional<Error> &error() const noexcept { return error_; }

  private:
    bool advance() {
        auto piece = conversation_->try_next();
        if (!piece) {
            error_ = piece.error();
            piece_ = Piece();
#ifdef QWEN35_EXCEPTIONS
            throw *error_;
#else
            return false;
#endif
        }
        piece_ = *piece;
        return !piece_.is_end();
    }
    Conversation *conversation_;
    Piece piece_;
    std::optional<Error> error_;
};

inline Reply Conversation::reply() { return Reply(*this); }

} // namespace qwen

#endif // QWEN35_HPP
