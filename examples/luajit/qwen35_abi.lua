-- Generated from include/qwen35.h by `make header`. Do not edit.
-- The C interface as LuaJIT's ffi sees it. What it means is in qwen35.h.
local ffi = require("ffi")

ffi.cdef[[
typedef int32_t qwen_status;
const char *qwen_last_error(void);
const char *qwen_status_name(qwen_status status);
const char *qwen_version(void);
uint32_t qwen_abi_version(void);
const char *qwen_build_info(void);
const char *qwen_cpu_info(void);
typedef struct qwen_model qwen_model;
typedef int32_t qwen_isa;
typedef int32_t qwen_log_level;
typedef void (*qwen_log_callback)(qwen_log_level level,
                                  const char *message,
                                  size_t length,
                                  void *user);
typedef int32_t qwen_weights;
typedef int32_t qwen_compute;
typedef int32_t (*qwen_open_callback)(uint64_t done, uint64_t total, void *user);
typedef struct {
    uint32_t struct_size;
    uint32_t flags;
    uint32_t threads;
    qwen_isa isa;
    qwen_log_callback log;
    void *log_user;
    qwen_log_level log_level;
    uint32_t reserved;
    qwen_weights weights;
    qwen_compute compute;
    qwen_open_callback progress;
    void *user;
    uint64_t prefix_cache_bytes;
} qwen_model_options;
typedef struct {
    uint32_t struct_size;
    uint32_t has_weights;
    uint32_t has_chat_template;
    uint32_t token_count;
    uint32_t vocab_size;
    uint32_t context_limit;
    uint32_t hidden_size;
    uint32_t layer_count;
    uint32_t threads;
    qwen_isa isa;
    uint64_t weight_bytes;
    qwen_weights weights;
    qwen_compute compute;
} qwen_model_info;
qwen_status qwen_model_options_init(qwen_model_options *options, size_t size);
qwen_status qwen_model_open(const char *path,
                            size_t path_length,
                            const qwen_model_options *options,
                            qwen_model **model);
void qwen_model_free(qwen_model *model);
qwen_status qwen_model_get_info(const qwen_model *model, qwen_model_info *info);
qwen_status qwen_model_end_tokens(const qwen_model *model,
                                  const int32_t **tokens,
                                  size_t *count);
typedef void (*qwen_release_callback)(void *data, size_t length, void *user);
typedef int32_t (*qwen_read_callback)(uint64_t offset,
                                      void *buffer,
                                      size_t length,
                                      void *user);
typedef int32_t (*qwen_work_callback)(uint64_t done, uint64_t total, void *user);
qwen_status qwen_model_open_memory(const void *data,
                                   size_t length,
                                   qwen_release_callback release,
                                   void *user,
                                   const qwen_model_options *options,
                                   qwen_model **model);
qwen_status qwen_model_open_reader(uint64_t size,
                                   qwen_read_callback read,
                                   void *user,
                                   const qwen_model_options *options,
                                   qwen_model **model);
qwen_status qwen_model_warm_up(const qwen_model *model,
                               qwen_work_callback callback,
                               void *user);
typedef int32_t (*qwen_file_open_callback)(const char *name,
                                           size_t length,
                                           void **file,
                                           uint64_t *size,
                                           void *user);
typedef int32_t (*qwen_file_read_callback)(void *file,
                                           uint64_t offset,
                                           void *buffer,
                                           size_t length,
                                           void *user);
typedef void (*qwen_file_close_callback)(void *file, void *user);
typedef struct {
    uint32_t struct_size;
    uint32_t flags;
    qwen_file_open_callback open;
    qwen_file_read_callback read;
    qwen_file_close_callback close;
} qwen_file_callbacks;
qwen_status qwen_model_open_files(const qwen_file_callbacks *files,
                                  void *user,
                                  const qwen_model_options *options,
                                  qwen_model **model);
typedef struct {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t weight_bytes;
    uint64_t mapped_bytes;
    uint64_t session_bytes;
    uint64_t session_start_bytes;
    uint64_t copy_bytes;
    uint64_t scratch_bytes;
    uint64_t kv_fp32_bytes;
    uint64_t kv_fp16_bytes;
    uint64_t kv_int8_bytes;
} qwen_model_cost;
qwen_status qwen_model_estimate(const char *path,
                                size_t path_length,
                                const qwen_model_options *options,
                                uint64_t context,
                                qwen_model_cost *cost);
qwen_status qwen_model_estimate_memory(const void *data,
                                       size_t length,
                                       const qwen_model_options *options,
                                       uint64_t context,
                                       qwen_model_cost *cost);
qwen_status qwen_model_estimate_reader(uint64_t size,
                                       qwen_read_callback read,
                                       void *user,
                                       const qwen_model_options *options,
                                       uint64_t context,
                                       qwen_model_cost *cost);
qwen_status qwen_model_estimate_files(const qwen_file_callbacks *files,
                                      void *user,
                                      const qwen_model_options *options,
                                      uint64_t context,
                                      qwen_model_cost *cost);
typedef struct {
    uint32_t struct_size;
    uint32_t flags;
    qwen_weights weights;
    uint32_t threads;
} qwen_pack_options;
typedef struct {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t file_bytes;
    uint64_t weight_bytes;
    uint64_t fingerprint;
} qwen_pack_info;
qwen_status qwen_pack(const char *source,
                      size_t source_length,
                      const char *destination,
                      size_t destination_length,
                      const qwen_pack_options *options,
                      qwen_work_callback callback,
                      void *user,
                      qwen_pack_info *info);
qwen_status qwen_pack_verify(const char *path,
                             size_t path_length,
                             qwen_work_callback callback,
                             void *user);
qwen_status qwen_tokenize(const qwen_model *model,
                          const char *text,
                          size_t length,
                          uint32_t flags,
                          int32_t *tokens,
                          size_t capacity,
                          size_t *needed);
qwen_status qwen_detokenize(const qwen_model *model,
                            const int32_t *tokens,
                            size_t count,
                            uint32_t flags,
                            char *text,
                            size_t capacity,
                            size_t *needed);
qwen_status qwen_token_bytes(const qwen_model *model,
                             int32_t token,
                             const char **bytes,
                             size_t *length);
qwen_status qwen_token_kind(const qwen_model *model, int32_t token, uint32_t *kind);
qwen_status qwen_token_find(const qwen_model *model,
                            const char *spelling,
                            size_t length,
                            int32_t *token);
typedef struct qwen_stream_decoder qwen_stream_decoder;
qwen_status qwen_stream_decoder_new(const qwen_model *model,
                                    uint32_t flags,
                                    qwen_stream_decoder **decoder);
void qwen_stream_decoder_free(qwen_stream_decoder *decoder);
qwen_status qwen_stream_decoder_push(qwen_stream_decoder *decoder,
                                     int32_t token,
                                     const char **text,
                                     size_t *length);
qwen_status qwen_stream_decoder_finish(qwen_stream_decoder *decoder,
                                       const char **text,
                                       size_t *length);
qwen_status qwen_stream_decoder_resume(qwen_stream_decoder *decoder,
                                       const int32_t *tokens,
                                       size_t count);
qwen_status qwen_chat_render(const qwen_model *model,
                             const char *json,
                             size_t length,
                             uint32_t flags,
                             char *rendered,
                             size_t capacity,
                             size_t *needed);
qwen_status qwen_chat_tokenize(const qwen_model *model,
                               const char *json,
                               size_t length,
                               uint32_t flags,
                               int32_t *tokens,
                               size_t capacity,
                               size_t *needed);
typedef int32_t qwen_preset;
typedef struct {
    int32_t token;
    float bias;
} qwen_logit_bias;
typedef struct {
    uint32_t struct_size;
    uint32_t set;
    qwen_preset preset;
    float temperature;
    uint32_t top_k;
    float top_p;
    float min_p;
    float repetition_penalty;
    float presence_penalty;
    float frequency_penalty;
    uint32_t penalty_window;
    uint32_t reserved;
    uint64_t seed;
    const qwen_logit_bias *logit_bias;
    size_t logit_bias_count;
} qwen_sampling_options;
qwen_status qwen_sampling_options_init(qwen_sampling_options *options, size_t size);
typedef struct qwen_session qwen_session;
typedef int32_t qwen_overflow;
typedef int32_t qwen_kv;
typedef struct {
    uint32_t struct_size;
    uint32_t flags;
    uint64_t context_limit;
    const qwen_sampling_options *sampling;
    uint64_t cache_namespace;
    uint64_t overflow_reserve;
    qwen_overflow overflow;
    uint32_t mark_limit;
    qwen_kv kv;
    uint32_t reserved;
} qwen_session_options;
typedef int32_t (*qwen_progress_callback)(size_t done, size_t total, void *user);
qwen_status qwen_session_options_init(qwen_session_options *options, size_t size);
qwen_status qwen_session_new(const qwen_model *model,
                             const qwen_session_options *options,
                             qwen_session **session);
void qwen_session_free(qwen_session *session);
qwen_status qwen_session_next_token(qwen_session *session, int32_t *token);
qwen_status qwen_session_logits(qwen_session *session, const float **logits, size_t *count);
qwen_status qwen_session_position(const qwen_session *session, size_t *position);
qwen_status qwen_session_context_limit(const qwen_session *session, size_t *limit);
qwen_status qwen_session_kv(const qwen_session *session, qwen_kv *kv);
qwen_status qwen_session_tokens(const qwen_session *session,
                                const int32_t **tokens,
                                size_t *count);
qwen_status qwen_session_set_sampling(qwen_session *session,
                                      const qwen_sampling_options *options);
qwen_status qwen_session_set_progress(qwen_session *session,
                                      qwen_progress_callback callback,
                                      void *user);
qwen_status qwen_session_reset(qwen_session *session);
qwen_status qwen_session_cancel(const qwen_session *session);
qwen_status qwen_session_cancel_clear(qwen_session *session);
qwen_status qwen_session_feed(qwen_session *session,
                              const int32_t *tokens,
                              size_t count);
qwen_status qwen_session_feed_text(qwen_session *session,
                                   const char *text,
                                   size_t length,
                                   uint32_t flags);
qwen_status qwen_session_feed_chat(qwen_session *session,
                                   const char *json,
                                   size_t length,
                                   uint32_t flags,
                                   size_t *total,
                                   size_t *computed);
qwen_status qwen_session_enqueue(qwen_session *session,
                                 const int32_t *tokens,
                                 size_t count);
qwen_status qwen_session_enqueue_text(qwen_session *session,
                                      const char *text,
                                      size_t length,
                                      uint32_t flags);
qwen_status qwen_session_enqueue_chat(qwen_session *session,
                                      const char *json,
                                      size_t length,
                                      uint32_t flags,
                                      size_t *total,
                                      size_t *remaining);
typedef struct {
    uint64_t id;
    uint64_t position;
    uint32_t automatic;
    uint32_t reserved;
} qwen_mark;
qwen_status qwen_session_fork(const qwen_session *session, qwen_session **fork);
qwen_status qwen_session_mark(qwen_session *session,
                              uint64_t *mark);
qwen_status qwen_session_unmark(qwen_session *session, uint64_t mark);
qwen_status qwen_session_marks(const qwen_session *session,
                               qwen_mark *marks,
                               size_t capacity,
                               size_t *needed);
qwen_status qwen_session_rewind(qwen_session *session,
                                uint64_t mark,
                                uint32_t flags);
qwen_status qwen_session_truncate(qwen_session *session, size_t position, size_t *computed);
typedef struct {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t total;
    uint64_t computed;
    uint64_t cached;
    uint64_t dropped_messages;
    uint64_t kept_messages;
    uint64_t dropped_tokens;
    uint64_t kept_tokens;
} qwen_feed_info;
typedef struct {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t bytes;
    uint64_t limit;
    uint64_t entries;
    uint64_t hits;
    uint64_t misses;
    uint64_t evictions;
} qwen_prefix_cache_info;
qwen_status qwen_session_set_tokens(qwen_session *session,
                                    const int32_t *tokens,
                                    size_t count,
                                    size_t *computed);
qwen_status qwen_session_get_feed_info(const qwen_session *session, qwen_feed_info *info);
qwen_status qwen_prefix_cache_get_info(const qwen_model *model,
                                       qwen_prefix_cache_info *info);
qwen_status qwen_prefix_cache_clear(const qwen_model *model, uint64_t cache_namespace);
qwen_status qwen_session_set_attachment(qwen_session *session,
                                        const void *data,
                                        size_t size);
qwen_status qwen_session_attachment(const qwen_session *session,
                                    const void **data,
                                    size_t *size);
qwen_status qwen_session_save_file(const qwen_session *session,
                                   const char *file,
                                   size_t file_length,
                                   uint32_t flags);
qwen_status qwen_session_restore_file(qwen_session *session,
                                      const char *file,
                                      size_t file_length);
qwen_status qwen_session_save_memory(const qwen_session *session,
                                     uint32_t flags,
                                     void *data,
                                     size_t capacity,
                                     size_t *needed);
qwen_status qwen_session_restore_memory(qwen_session *session,
                                        const void *data,
                                        size_t size);
qwen_status qwen_session_step(qwen_session *session,
                              uint64_t budget_us,
                              uint32_t flags,
                              int32_t *token,
                              size_t *remaining);
qwen_status qwen_batch_step(qwen_session *const *sessions,
                            size_t count,
                            int32_t *tokens,
                            qwen_status *statuses);
typedef struct {
    uint32_t struct_size;
    uint32_t sessions;
    uint64_t input_tokens;
    uint64_t output_tokens;
    uint64_t reused_tokens;
    uint64_t cached_tokens;
    uint64_t input_us;
    uint64_t output_us;
    uint64_t first_token_us;
    uint64_t bytes;
    double input_rate;
    double output_rate;
} qwen_statistics;
qwen_status qwen_session_get_statistics(const qwen_session *session,
                                        qwen_statistics *statistics);
qwen_status qwen_model_get_statistics(const qwen_model *model, qwen_statistics *statistics);
typedef int32_t (*qwen_logits_callback)(float *logits,
                                        size_t count,
                                        const int32_t *tokens,
                                        size_t token_count,
                                        void *user);
qwen_status qwen_session_set_logits_callback(qwen_session *session,
                                             qwen_logits_callback callback,
                                             void *user);
typedef struct {
    int32_t token;
    float logprob;
} qwen_token_logprob;
typedef struct {
    uint32_t struct_size;
    uint32_t best_count;
    uint64_t token_count;
    double log_likelihood;
    double perplexity;
} qwen_score;
typedef int32_t qwen_pooling;
qwen_status qwen_session_logprobs(qwen_session *session,
                                  const int32_t *tokens,
                                  size_t count,
                                  float *logprobs);
qwen_status qwen_session_top_logprobs(qwen_session *session,
                                      qwen_token_logprob *top,
                                      size_t count);
qwen_status qwen_session_chosen_logprobs(qwen_session *session,
                                         float *logprob,
                                         qwen_token_logprob *top,
                                         size_t count);
qwen_status qwen_session_score(qwen_session *session,
                               const int32_t *tokens,
                               size_t count,
                               uint32_t flags,
                               float *logprobs,
                               qwen_score *score);
qwen_status qwen_session_score_text(qwen_session *session,
                                    const char *text,
                                    size_t length,
                                    uint32_t flags,
                                    qwen_score *score);
qwen_status qwen_session_embed(qwen_session *session,
                               const int32_t *tokens,
                               size_t count,
                               qwen_pooling pooling,
                               uint32_t flags,
                               float *embedding,
                               size_t capacity,
                               size_t *needed);
qwen_status qwen_session_embed_text(qwen_session *session,
                                    const char *text,
                                    size_t length,
                                    qwen_pooling pooling,
                                    uint32_t flags,
                                    float *embedding,
                                    size_t capacity,
                                    size_t *needed);
typedef struct qwen_conversation qwen_conversation;
typedef int32_t qwen_thinking;
typedef struct {
    uint32_t struct_size;
    uint32_t flags;
    qwen_thinking thinking;
    uint32_t thinking_budget;
    uint32_t max_tokens;
    uint32_t stop_count;
    const char *system;
    size_t system_length;
    const char *tools;
    size_t tools_length;
    const char *const *stop;
    const size_t *stop_lengths;
} qwen_conversation_options;
qwen_status qwen_conversation_options_init(qwen_conversation_options *options, size_t size);
qwen_status qwen_conversation_new(qwen_session *session,
                                  const qwen_conversation_options *options,
                                  qwen_conversation **conversation);
void qwen_conversation_free(qwen_conversation *conversation);
qwen_status qwen_conversation_configure(qwen_conversation *conversation,
                                        const qwen_conversation_options *options);
qwen_status qwen_conversation_add(qwen_conversation *conversation,
                                  const char *json,
                                  size_t length);
qwen_status qwen_conversation_add_text(qwen_conversation *conversation,
                                       const char *role,
                                       size_t role_length,
                                       const char *text,
                                       size_t length);
qwen_status qwen_conversation_add_tool_result(qwen_conversation *conversation,
                                              const char *id,
                                              size_t id_length,
                                              const char *result,
                                              size_t length);
qwen_status qwen_conversation_history(const qwen_conversation *conversation,
                                      char *json,
                                      size_t capacity,
                                      size_t *needed);
qwen_status qwen_conversation_set_history(qwen_conversation *conversation,
                                          const char *json,
                                          size_t length);
qwen_status qwen_conversation_cancel(const qwen_conversation *conversation);
qwen_status qwen_conversation_cancel_clear(qwen_conversation *conversation);
qwen_status qwen_conversation_send(qwen_conversation *conversation,
                                   const char *json,
                                   size_t length,
                                   size_t *total,
                                   size_t *computed);
qwen_status qwen_conversation_send_text(qwen_conversation *conversation,
                                        const char *text,
                                        size_t length,
                                        size_t *total,
                                        size_t *computed);
qwen_status qwen_conversation_regenerate(qwen_conversation *conversation,
                                         size_t *total,
                                         size_t *computed);
qwen_status qwen_conversation_settle(qwen_conversation *conversation,
                                     size_t *total,
                                     size_t *computed);
qwen_status qwen_conversation_resume(qwen_conversation *conversation);
qwen_status qwen_conversation_undo(qwen_conversation *conversation, size_t *removed);
typedef int32_t qwen_piece_kind;
typedef int32_t qwen_finish;
typedef struct {
    uint32_t struct_size;
    qwen_piece_kind kind;
    qwen_finish finish;
    uint32_t is_whole;
    const char *text;
    size_t text_length;
    const char *name;
    size_t name_length;
    const char *arguments;
    size_t arguments_length;
    const char *id;
    size_t id_length;
    const char *problem;
    size_t problem_length;
} qwen_piece;
qwen_status qwen_conversation_next(qwen_conversation *conversation, qwen_piece *piece);
qwen_status qwen_conversation_enqueue(qwen_conversation *conversation,
                                      const char *json,
                                      size_t length,
                                      size_t *total,
                                      size_t *remaining);
qwen_status qwen_conversation_enqueue_text(qwen_conversation *conversation,
                                           const char *text,
                                           size_t length,
                                           size_t *total,
                                           size_t *remaining);
qwen_status qwen_conversation_step(qwen_conversation *conversation,
                                   uint64_t budget_us,
                                   qwen_piece *piece,
                                   size_t *remaining);
qwen_status qwen_conversation_save_file(const qwen_conversation *conversation,
                                        const char *file,
                                        size_t file_length,
                                        uint32_t flags);
qwen_status qwen_conversation_restore_file(qwen_conversation *conversation,
                                           const char *file,
                                           size_t file_length);
qwen_status qwen_conversation_save_memory(const qwen_conversation *conversation,
                                          uint32_t flags,
                                          void *data,
                                          size_t capacity,
                                          size_t *needed);
qwen_status qwen_conversation_restore_memory(qwen_conversation *conversation,
                                             const void *data,
                                             size_t size);
]]

local abi = {}

abi.constants = {
    QWEN_OK = 0,
    QWEN_END_OF_TURN = 1,
    QWEN_LIMIT_REACHED = 2,
    QWEN_CANCELLED = 3,
    QWEN_WORKING = 4,
    QWEN_ERROR_INVALID_ARGUMENT = -1,
    QWEN_ERROR_INVALID_HANDLE = -2,
    QWEN_ERROR_INVALID_STATE = -3,
    QWEN_ERROR_BUFFER_TOO_SMALL = -4,
    QWEN_ERROR_BUSY = -5,
    QWEN_ERROR_IO = -6,
    QWEN_ERROR_FORMAT = -7,
    QWEN_ERROR_UNSUPPORTED = -8,
    QWEN_ERROR_CONTEXT_OVERFLOW = -9,
    QWEN_ERROR_TEMPLATE = -10,
    QWEN_ERROR_NUMERIC = -11,
    QWEN_ERROR_OUT_OF_MEMORY = -12,
    QWEN_ERROR_FORKED = -13,
    QWEN_ERROR_INTERNAL = -14,
    QWEN_VERSION_MAJOR = 0,
    QWEN_VERSION_MINOR = 1,
    QWEN_VERSION_PATCH = 0,
    QWEN_ABI_VERSION = 0,
    QWEN_NUL = 0xffffffffffffffffULL,
    QWEN_MODEL_TOKENIZER_ONLY = 1,
    QWEN_ISA_AUTO = 0,
    QWEN_ISA_SCALAR = 1,
    QWEN_ISA_AVX2 = 2,
    QWEN_ISA_AVX512 = 3,
    QWEN_WEIGHTS_STORED = 0,
    QWEN_WEIGHTS_INT8 = 1,
    QWEN_WEIGHTS_INT4 = 2,
    QWEN_COMPUTE_AUTO = 0,
    QWEN_COMPUTE_EXACT = 1,
    QWEN_COMPUTE_FAST = 2,
    QWEN_LOG_NOTHING = 0,
    QWEN_LOG_WARNING = 1,
    QWEN_LOG_INFO = 2,
    QWEN_LOG_DEBUG = 3,
    QWEN_FILE_MISSING = 1,
    QWEN_TEXT_ADDED_TOKENS = 1,
    QWEN_TEXT_SKIP_SPECIAL = 2,
    QWEN_TOKEN_ADDED = 1,
    QWEN_TOKEN_SPECIAL = 2,
    QWEN_TOKEN_END_OF_TURN = 4,
    QWEN_TOKEN_PADDING = 8,
    QWEN_CHAT_AS_TRANSFORMERS = 4,
    QWEN_CHAT_HISTORY = 8,
    QWEN_SET_TEMPERATURE = 1,
    QWEN_SET_TOP_K = 2,
    QWEN_SET_TOP_P = 4,
    QWEN_SET_MIN_P = 8,
    QWEN_SET_REPETITION_PENALTY = 16,
    QWEN_SET_PRESENCE_PENALTY = 32,
    QWEN_SET_FREQUENCY_PENALTY = 64,
    QWEN_SET_PENALTY_WINDOW = 128,
    QWEN_SET_SEED = 256,
    QWEN_PRESET_CHAT = 0,
    QWEN_PRESET_GREEDY = 1,
    QWEN_PRESET_THINKING = 2,
    QWEN_PRESET_PRECISE = 3,
    QWEN_KV_AUTO = 0,
    QWEN_KV_FP32 = 1,
    QWEN_KV_FP16 = 2,
    QWEN_KV_INT8 = 3,
    QWEN_OVERFLOW_REFUSE = 0,
    QWEN_OVERFLOW_DROP_TURNS = 1,
    QWEN_REWIND_RANDOM = 1,
    QWEN_SAVE_WITHOUT_MARKS = 1,
    QWEN_STEP_INPUT = 1,
    QWEN_SCORE_KEEP = 8,
    QWEN_EMBED_NORMALIZE = 16,
    QWEN_POOLING_MEAN = 0,
    QWEN_POOLING_LAST = 1,
    QWEN_THINKING_DEFAULT = 0,
    QWEN_THINKING_ON = 1,
    QWEN_THINKING_OFF = 2,
    QWEN_PIECE_NONE = 0,
    QWEN_PIECE_THINKING = 1,
    QWEN_PIECE_TEXT = 2,
    QWEN_PIECE_TOOL_CALL = 3,
    QWEN_PIECE_END = 4,
    QWEN_FINISH_NONE = 0,
    QWEN_FINISH_END_OF_TURN = 1,
    QWEN_FINISH_TOOL_CALLS = 2,
    QWEN_FINISH_STOP = 3,
    QWEN_FINISH_LENGTH = 4,
    QWEN_FINISH_CONTEXT_FULL = 5,
    QWEN_FINISH_CANCELLED = 6,
}

-- The fields of each struct, in order.
abi.structs = {
    qwen_model_options = {"struct_size", "flags", "threads", "isa", "log", "log_user", "log_level", "reserved", "weights", "compute", "progress", "user", "prefix_cache_bytes"},
    qwen_model_info = {"struct_size", "has_weights", "has_chat_template", "token_count", "vocab_size", "context_limit", "hidden_size", "layer_count", "threads", "isa", "weight_bytes", "weights", "compute"},
    qwen_file_callbacks = {"struct_size", "flags", "open", "read", "close"},
    qwen_model_cost = {"struct_size", "reserved", "weight_bytes", "mapped_bytes", "session_bytes", "session_start_bytes", "copy_bytes", "scratch_bytes", "kv_fp32_bytes", "kv_fp16_bytes", "kv_int8_bytes"},
    qwen_pack_options = {"struct_size", "flags", "weights", "threads"},
    qwen_pack_info = {"struct_size", "reserved", "file_bytes", "weight_bytes", "fingerprint"},
    qwen_logit_bias = {"token", "bias"},
    qwen_sampling_options = {"struct_size", "set", "preset", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty", "penalty_window", "reserved", "seed", "logit_bias", "logit_bias_count"},
    qwen_session_options = {"struct_size", "flags", "context_limit", "sampling", "cache_namespace", "overflow_reserve", "overflow", "mark_limit", "kv", "reserved"},
    qwen_mark = {"id", "position", "automatic", "reserved"},
    qwen_feed_info = {"struct_size", "reserved", "total", "computed", "cached", "dropped_messages", "kept_messages", "dropped_tokens", "kept_tokens"},
    qwen_prefix_cache_info = {"struct_size", "reserved", "bytes", "limit", "entries", "hits", "misses", "evictions"},
    qwen_statistics = {"struct_size", "sessions", "input_tokens", "output_tokens", "reused_tokens", "cached_tokens", "input_us", "output_us", "first_token_us", "bytes", "input_rate", "output_rate"},
    qwen_token_logprob = {"token", "logprob"},
    qwen_score = {"struct_size", "best_count", "token_count", "log_likelihood", "perplexity"},
    qwen_conversation_options = {"struct_size", "flags", "thinking", "thinking_budget", "max_tokens", "stop_count", "system", "system_length", "tools", "tools_length", "stop", "stop_lengths"},
    qwen_piece = {"struct_size", "kind", "finish", "is_whole", "text", "text_length", "name", "name_length", "arguments", "arguments_length", "id", "id_length", "problem", "problem_length"},
}

return abi
