// Generated from include/qwen35.h by `make header`. Do not edit.
// The C interface as koffi sees it. What it means is in qwen35.h.
'use strict';

const koffi = require('koffi');

const constants = {
  QWEN_OK: 0,
  QWEN_END_OF_TURN: 1,
  QWEN_LIMIT_REACHED: 2,
  QWEN_CANCELLED: 3,
  QWEN_WORKING: 4,
  QWEN_ERROR_INVALID_ARGUMENT: -1,
  QWEN_ERROR_INVALID_HANDLE: -2,
  QWEN_ERROR_INVALID_STATE: -3,
  QWEN_ERROR_BUFFER_TOO_SMALL: -4,
  QWEN_ERROR_BUSY: -5,
  QWEN_ERROR_IO: -6,
  QWEN_ERROR_FORMAT: -7,
  QWEN_ERROR_UNSUPPORTED: -8,
  QWEN_ERROR_CONTEXT_OVERFLOW: -9,
  QWEN_ERROR_TEMPLATE: -10,
  QWEN_ERROR_NUMERIC: -11,
  QWEN_ERROR_OUT_OF_MEMORY: -12,
  QWEN_ERROR_FORKED: -13,
  QWEN_ERROR_INTERNAL: -14,
  QWEN_VERSION_MAJOR: 0,
  QWEN_VERSION_MINOR: 1,
  QWEN_VERSION_PATCH: 0,
  QWEN_ABI_VERSION: 0,
  QWEN_NUL: 0xffffffffffffffffn,
  QWEN_MODEL_TOKENIZER_ONLY: 1,
  QWEN_ISA_AUTO: 0,
  QWEN_ISA_SCALAR: 1,
  QWEN_ISA_AVX2: 2,
  QWEN_ISA_AVX512: 3,
  QWEN_WEIGHTS_STORED: 0,
  QWEN_WEIGHTS_INT8: 1,
  QWEN_WEIGHTS_INT4: 2,
  QWEN_COMPUTE_AUTO: 0,
  QWEN_COMPUTE_EXACT: 1,
  QWEN_COMPUTE_FAST: 2,
  QWEN_LOG_NOTHING: 0,
  QWEN_LOG_WARNING: 1,
  QWEN_LOG_INFO: 2,
  QWEN_LOG_DEBUG: 3,
  QWEN_FILE_MISSING: 1,
  QWEN_TEXT_ADDED_TOKENS: 1,
  QWEN_TEXT_SKIP_SPECIAL: 2,
  QWEN_TOKEN_ADDED: 1,
  QWEN_TOKEN_SPECIAL: 2,
  QWEN_TOKEN_END_OF_TURN: 4,
  QWEN_TOKEN_PADDING: 8,
  QWEN_CHAT_AS_TRANSFORMERS: 4,
  QWEN_CHAT_HISTORY: 8,
  QWEN_SET_TEMPERATURE: 1,
  QWEN_SET_TOP_K: 2,
  QWEN_SET_TOP_P: 4,
  QWEN_SET_MIN_P: 8,
  QWEN_SET_REPETITION_PENALTY: 16,
  QWEN_SET_PRESENCE_PENALTY: 32,
  QWEN_SET_FREQUENCY_PENALTY: 64,
  QWEN_SET_PENALTY_WINDOW: 128,
  QWEN_SET_SEED: 256,
  QWEN_PRESET_CHAT: 0,
  QWEN_PRESET_GREEDY: 1,
  QWEN_PRESET_THINKING: 2,
  QWEN_PRESET_PRECISE: 3,
  QWEN_KV_AUTO: 0,
  QWEN_KV_FP32: 1,
  QWEN_KV_FP16: 2,
  QWEN_KV_INT8: 3,
  QWEN_OVERFLOW_REFUSE: 0,
  QWEN_OVERFLOW_DROP_TURNS: 1,
  QWEN_REWIND_RANDOM: 1,
  QWEN_SAVE_WITHOUT_MARKS: 1,
  QWEN_STEP_INPUT: 1,
  QWEN_SCORE_KEEP: 8,
  QWEN_EMBED_NORMALIZE: 16,
  QWEN_POOLING_MEAN: 0,
  QWEN_POOLING_LAST: 1,
  QWEN_THINKING_DEFAULT: 0,
  QWEN_THINKING_ON: 1,
  QWEN_THINKING_OFF: 2,
  QWEN_PIECE_NONE: 0,
  QWEN_PIECE_THINKING: 1,
  QWEN_PIECE_TEXT: 2,
  QWEN_PIECE_TOOL_CALL: 3,
  QWEN_PIECE_END: 4,
  QWEN_FINISH_NONE: 0,
  QWEN_FINISH_END_OF_TURN: 1,
  QWEN_FINISH_TOOL_CALLS: 2,
  QWEN_FINISH_STOP: 3,
  QWEN_FINISH_LENGTH: 4,
  QWEN_FINISH_CONTEXT_FULL: 5,
  QWEN_FINISH_CANCELLED: 6,
};

// Types, in the order in which they need each other.
const structs = {};
koffi.alias('qwen_status', 'int32_t');
koffi.opaque('qwen_model');
koffi.alias('qwen_isa', 'int32_t');
koffi.alias('qwen_log_level', 'int32_t');
koffi.proto('void qwen_log_callback(qwen_log_level level, const char *message, size_t length, void *user)');
koffi.alias('qwen_weights', 'int32_t');
koffi.alias('qwen_compute', 'int32_t');
koffi.proto('int32_t qwen_open_callback(uint64_t done, uint64_t total, void *user)');
structs.qwen_model_options = koffi.struct('qwen_model_options', {
  struct_size: 'uint32_t',
  flags: 'uint32_t',
  threads: 'uint32_t',
  isa: 'qwen_isa',
  log: 'qwen_log_callback *',
  log_user: 'void *',
  log_level: 'qwen_log_level',
  reserved: 'uint32_t',
  weights: 'qwen_weights',
  compute: 'qwen_compute',
  progress: 'qwen_open_callback *',
  user: 'void *',
  prefix_cache_bytes: 'uint64_t',
});
structs.qwen_model_info = koffi.struct('qwen_model_info', {
  struct_size: 'uint32_t',
  has_weights: 'uint32_t',
  has_chat_template: 'uint32_t',
  token_count: 'uint32_t',
  vocab_size: 'uint32_t',
  context_limit: 'uint32_t',
  hidden_size: 'uint32_t',
  layer_count: 'uint32_t',
  threads: 'uint32_t',
  isa: 'qwen_isa',
  weight_bytes: 'uint64_t',
  weights: 'qwen_weights',
  compute: 'qwen_compute',
});
koffi.proto('void qwen_release_callback(void *data, size_t length, void *user)');
koffi.proto('int32_t qwen_read_callback(uint64_t offset, void *buffer, size_t length, void *user)');
koffi.proto('int32_t qwen_work_callback(uint64_t done, uint64_t total, void *user)');
koffi.proto('int32_t qwen_file_open_callback(const char *name, size_t length, void **file, uint64_t *size, void *user)');
koffi.proto('int32_t qwen_file_read_callback(void *file, uint64_t offset, void *buffer, size_t length, void *user)');
koffi.proto('void qwen_file_close_callback(void *file, void *user)');
structs.qwen_file_callbacks = koffi.struct('qwen_file_callbacks', {
  struct_size: 'uint32_t',
  flags: 'uint32_t',
  open: 'qwen_file_open_callback *',
  read: 'qwen_file_read_callback *',
  close: 'qwen_file_close_callback *',
});
structs.qwen_model_cost = koffi.struct('qwen_model_cost', {
  struct_size: 'uint32_t',
  reserved: 'uint32_t',
  weight_bytes: 'uint64_t',
  mapped_bytes: 'uint64_t',
  session_bytes: 'uint64_t',
  session_start_bytes: 'uint64_t',
  copy_bytes: 'uint64_t',
  scratch_bytes: 'uint64_t',
  kv_fp32_bytes: 'uint64_t',
  kv_fp16_bytes: 'uint64_t',
  kv_int8_bytes: 'uint64_t',
});
structs.qwen_pack_options = koffi.struct('qwen_pack_options', {
  struct_size: 'uint32_t',
  flags: 'uint32_t',
  weights: 'qwen_weights',
  threads: 'uint32_t',
});
structs.qwen_pack_info = koffi.struct('qwen_pack_info', {
  struct_size: 'uint32_t',
  reserved: 'uint32_t',
  file_bytes: 'uint64_t',
  weight_bytes: 'uint64_t',
  fingerprint: 'uint64_t',
});
koffi.opaque('qwen_stream_decoder');
koffi.alias('qwen_preset', 'int32_t');
structs.qwen_logit_bias = koffi.struct('qwen_logit_bias', {
  token: 'int32_t',
  bias: 'float',
});
structs.qwen_sampling_options = koffi.struct('qwen_sampling_options', {
  struct_size: 'uint32_t',
  set: 'uint32_t',
  preset: 'qwen_preset',
  temperature: 'float',
  top_k: 'uint32_t',
  top_p: 'float',
  min_p: 'float',
  repetition_penalty: 'float',
  presence_penalty: 'float',
  frequency_penalty: 'float',
  penalty_window: 'uint32_t',
  reserved: 'uint32_t',
  seed: 'uint64_t',
  logit_bias: 'const qwen_logit_bias *',
  logit_bias_count: 'size_t',
});
koffi.opaque('qwen_session');
koffi.alias('qwen_overflow', 'int32_t');
koffi.alias('qwen_kv', 'int32_t');
structs.qwen_session_options = koffi.struct('qwen_session_options', {
  struct_size: 'uint32_t',
  flags: 'uint32_t',
  context_limit: 'uint64_t',
  sampling: 'const qwen_sampling_options *',
  cache_namespace: 'uint64_t',
  overflow_reserve: 'uint64_t',
  overflow: 'qwen_overflow',
  mark_limit: 'uint32_t',
  kv: 'qwen_kv',
  reserved: 'uint32_t',
});
koffi.proto('int32_t qwen_progress_callback(size_t done, size_t total, void *user)');
structs.qwen_mark = koffi.struct('qwen_mark', {
  id: 'uint64_t',
  position: 'uint64_t',
  automatic: 'uint32_t',
  reserved: 'uint32_t',
});
structs.qwen_feed_info = koffi.struct('qwen_feed_info', {
  struct_size: 'uint32_t',
  reserved: 'uint32_t',
  total: 'uint64_t',
  computed: 'uint64_t',
  cached: 'uint64_t',
  dropped_messages: 'uint64_t',
  kept_messages: 'uint64_t',
  dropped_tokens: 'uint64_t',
  kept_tokens: 'uint64_t',
});
structs.qwen_prefix_cache_info = koffi.struct('qwen_prefix_cache_info', {
  struct_size: 'uint32_t',
  reserved: 'uint32_t',
  bytes: 'uint64_t',
  limit: 'uint64_t',
  entries: 'uint64_t',
  hits: 'uint64_t',
  misses: 'uint64_t',
  evictions: 'uint64_t',
});
structs.qwen_statistics = koffi.struct('qwen_statistics', {
  struct_size: 'uint32_t',
  sessions: 'uint32_t',
  input_tokens: 'uint64_t',
  output_tokens: 'uint64_t',
  reused_tokens: 'uint64_t',
  cached_tokens: 'uint64_t',
  input_us: 'uint64_t',
  output_us: 'uint64_t',
  first_token_us: 'uint64_t',
  bytes: 'uint64_t',
  input_rate: 'double',
  output_rate: 'double',
});
koffi.proto('int32_t qwen_logits_callback(float *logits, size_t count, const int32_t *tokens, size_t token_count, void *user)');
structs.qwen_token_logprob = koffi.struct('qwen_token_logprob', {
  token: 'int32_t',
  logprob: 'float',
});
structs.qwen_score = koffi.struct('qwen_score', {
  struct_size: 'uint32_t',
  best_count: 'uint32_t',
  token_count: 'uint64_t',
  log_likelihood: 'double',
  perplexity: 'double',
});
koffi.alias('qwen_pooling', 'int32_t');
koffi.opaque('qwen_conversation');
koffi.alias('qwen_thinking', 'int32_t');
structs.qwen_conversation_options = koffi.struct('qwen_conversation_options', {
  struct_size: 'uint32_t',
  flags: 'uint32_t',
  thinking: 'qwen_thinking',
  thinking_budget: 'uint32_t',
  max_tokens: 'uint32_t',
  stop_count: 'uint32_t',
  system: 'const uint8_t *',
  system_length: 'size_t',
  tools: 'const uint8_t *',
  tools_length: 'size_t',
  stop: 'const char **',
  stop_lengths: 'const size_t *',
});
koffi.alias('qwen_piece_kind', 'int32_t');
koffi.alias('qwen_finish', 'int32_t');
structs.qwen_piece = koffi.struct('qwen_piece', {
  struct_size: 'uint32_t',
  kind: 'qwen_piece_kind',
  finish: 'qwen_finish',
  is_whole: 'uint32_t',
  text: 'const uint8_t *',
  text_length: 'size_t',
  name: 'const uint8_t *',
  name_length: 'size_t',
  arguments: 'const uint8_t *',
  arguments_length: 'size_t',
  id: 'const uint8_t *',
  id_length: 'size_t',
  problem: 'const uint8_t *',
  problem_length: 'size_t',
});

const functions = {
  qwen_last_error: 'const char *qwen_last_error()',
  qwen_status_name: 'const char *qwen_status_name(qwen_status status)',
  qwen_version: 'const char *qwen_version()',
  qwen_abi_version: 'uint32_t qwen_abi_version()',
  qwen_build_info: 'const char *qwen_build_info()',
  qwen_cpu_info: 'const char *qwen_cpu_info()',
  qwen_model_options_init: 'qwen_status qwen_model_options_init(_Inout_ qwen_model_options *options, size_t size)',
  qwen_model_open: 'qwen_status qwen_model_open(const uint8_t *path, size_t path_length, const qwen_model_options *options, _Out_ qwen_model **model)',
  qwen_model_free: 'void qwen_model_free(qwen_model *model)',
  qwen_model_get_info: 'qwen_status qwen_model_get_info(const qwen_model *model, _Inout_ qwen_model_info *info)',
  qwen_model_end_tokens: 'qwen_status qwen_model_end_tokens(const qwen_model *model, _Out_ const int32_t **tokens, _Out_ size_t *count)',
  qwen_model_open_memory: 'qwen_status qwen_model_open_memory(const void *data, size_t length, qwen_release_callback *release, void *user, const qwen_model_options *options, _Out_ qwen_model **model)',
  qwen_model_open_reader: 'qwen_status qwen_model_open_reader(uint64_t size, qwen_read_callback *read, void *user, const qwen_model_options *options, _Out_ qwen_model **model)',
  qwen_model_warm_up: 'qwen_status qwen_model_warm_up(const qwen_model *model, qwen_work_callback *callback, void *user)',
  qwen_model_open_files: 'qwen_status qwen_model_open_files(const qwen_file_callbacks *files, void *user, const qwen_model_options *options, _Out_ qwen_model **model)',
  qwen_model_estimate: 'qwen_status qwen_model_estimate(const uint8_t *path, size_t path_length, const qwen_model_options *options, uint64_t context, _Inout_ qwen_model_cost *cost)',
  qwen_model_estimate_memory: 'qwen_status qwen_model_estimate_memory(const void *data, size_t length, const qwen_model_options *options, uint64_t context, _Inout_ qwen_model_cost *cost)',
  qwen_model_estimate_reader: 'qwen_status qwen_model_estimate_reader(uint64_t size, qwen_read_callback *read, void *user, const qwen_model_options *options, uint64_t context, _Inout_ qwen_model_cost *cost)',
  qwen_model_estimate_files: 'qwen_status qwen_model_estimate_files(const qwen_file_callbacks *files, void *user, const qwen_model_options *options, uint64_t context, _Inout_ qwen_model_cost *cost)',
  qwen_pack: 'qwen_status qwen_pack(const uint8_t *source, size_t source_length, const uint8_t *destination, size_t destination_length, const qwen_pack_options *options, qwen_work_callback *callback, void *user, _Inout_ qwen_pack_info *info)',
  qwen_pack_verify: 'qwen_status qwen_pack_verify(const uint8_t *path, size_t path_length, qwen_work_callback *callback, void *user)',
  qwen_tokenize: 'qwen_status qwen_tokenize(const qwen_model *model, const uint8_t *text, size_t length, uint32_t flags, _Out_ int32_t *tokens, size_t capacity, _Out_ size_t *needed)',
  qwen_detokenize: 'qwen_status qwen_detokenize(const qwen_model *model, const int32_t *tokens, size_t count, uint32_t flags, _Out_ uint8_t *text, size_t capacity, _Out_ size_t *needed)',
  qwen_token_bytes: 'qwen_status qwen_token_bytes(const qwen_model *model, int32_t token, _Out_ const void **bytes, _Out_ size_t *length)',
  qwen_token_kind: 'qwen_status qwen_token_kind(const qwen_model *model, int32_t token, _Out_ uint32_t *kind)',
  qwen_token_find: 'qwen_status qwen_token_find(const qwen_model *model, const uint8_t *spelling, size_t length, _Out_ int32_t *token)',
  qwen_stream_decoder_new: 'qwen_status qwen_stream_decoder_new(const qwen_model *model, uint32_t flags, _Out_ qwen_stream_decoder **decoder)',
  qwen_stream_decoder_free: 'void qwen_stream_decoder_free(qwen_stream_decoder *decoder)',
  qwen_stream_decoder_push: 'qwen_status qwen_stream_decoder_push(qwen_stream_decoder *decoder, int32_t token, _Out_ const void **text, _Out_ size_t *length)',
  qwen_stream_decoder_finish: 'qwen_status qwen_stream_decoder_finish(qwen_stream_decoder *decoder, _Out_ const void **text, _Out_ size_t *length)',
  qwen_stream_decoder_resume: 'qwen_status qwen_stream_decoder_resume(qwen_stream_decoder *decoder, const int32_t *tokens, size_t count)',
  qwen_chat_render: 'qwen_status qwen_chat_render(const qwen_model *model, const uint8_t *json, size_t length, uint32_t flags, _Out_ uint8_t *rendered, size_t capacity, _Out_ size_t *needed)',
  qwen_chat_tokenize: 'qwen_status qwen_chat_tokenize(const qwen_model *model, const uint8_t *json, size_t length, uint32_t flags, _Out_ int32_t *tokens, size_t capacity, _Out_ size_t *needed)',
  qwen_sampling_options_init: 'qwen_status qwen_sampling_options_init(_Inout_ qwen_sampling_options *options, size_t size)',
  qwen_session_options_init: 'qwen_status qwen_session_options_init(_Inout_ qwen_session_options *options, size_t size)',
  qwen_session_new: 'qwen_status qwen_session_new(const qwen_model *model, const qwen_session_options *options, _Out_ qwen_session **session)',
  qwen_session_free: 'void qwen_session_free(qwen_session *session)',
  qwen_session_next_token: 'qwen_status qwen_session_next_token(qwen_session *session, _Out_ int32_t *token)',
  qwen_session_logits: 'qwen_status qwen_session_logits(qwen_session *session, _Out_ const float **logits, _Out_ size_t *count)',
  qwen_session_position: 'qwen_status qwen_session_position(const qwen_session *session, _Out_ size_t *position)',
  qwen_session_context_limit: 'qwen_status qwen_session_context_limit(const qwen_session *session, _Out_ size_t *limit)',
  qwen_session_kv: 'qwen_status qwen_session_kv(const qwen_session *session, _Out_ qwen_kv *kv)',
  qwen_session_tokens: 'qwen_status qwen_session_tokens(const qwen_session *session, _Out_ const int32_t **tokens, _Out_ size_t *count)',
  qwen_session_set_sampling: 'qwen_status qwen_session_set_sampling(qwen_session *session, const qwen_sampling_options *options)',
  qwen_session_set_progress: 'qwen_status qwen_session_set_progress(qwen_session *session, qwen_progress_callback *callback, void *user)',
  qwen_session_reset: 'qwen_status qwen_session_reset(qwen_session *session)',
  qwen_session_cancel: 'qwen_status qwen_session_cancel(const qwen_session *session)',
  qwen_session_cancel_clear: 'qwen_status qwen_session_cancel_clear(qwen_session *session)',
  qwen_session_feed: 'qwen_status qwen_session_feed(qwen_session *session, const int32_t *tokens, size_t count)',
  qwen_session_feed_text: 'qwen_status qwen_session_feed_text(qwen_session *session, const uint8_t *text, size_t length, uint32_t flags)',
  qwen_session_feed_chat: 'qwen_status qwen_session_feed_chat(qwen_session *session, const uint8_t *json, size_t length, uint32_t flags, _Out_ size_t *total, _Out_ size_t *computed)',
  qwen_session_enqueue: 'qwen_status qwen_session_enqueue(qwen_session *session, const int32_t *tokens, size_t count)',
  qwen_session_enqueue_text: 'qwen_status qwen_session_enqueue_text(qwen_session *session, const uint8_t *text, size_t length, uint32_t flags)',
  qwen_session_enqueue_chat: 'qwen_status qwen_session_enqueue_chat(qwen_session *session, const uint8_t *json, size_t length, uint32_t flags, _Out_ size_t *total, _Out_ size_t *remaining)',
  qwen_session_fork: 'qwen_status qwen_session_fork(const qwen_session *session, _Out_ qwen_session **fork)',
  qwen_session_mark: 'qwen_status qwen_session_mark(qwen_session *session, _Out_ uint64_t *mark)',
  qwen_session_unmark: 'qwen_status qwen_session_unmark(qwen_session *session, uint64_t mark)',
  qwen_session_marks: 'qwen_status qwen_session_marks(const qwen_session *session, _Inout_ qwen_mark *marks, size_t capacity, _Out_ size_t *needed)',
  qwen_session_rewind: 'qwen_status qwen_session_rewind(qwen_session *session, uint64_t mark, uint32_t flags)',
  qwen_session_truncate: 'qwen_status qwen_session_truncate(qwen_session *session, size_t position, _Out_ size_t *computed)',
  qwen_session_set_tokens: 'qwen_status qwen_session_set_tokens(qwen_session *session, const int32_t *tokens, size_t count, _Out_ size_t *computed)',
  qwen_session_get_feed_info: 'qwen_status qwen_session_get_feed_info(const qwen_session *session, _Inout_ qwen_feed_info *info)',
  qwen_prefix_cache_get_info: 'qwen_status qwen_prefix_cache_get_info(const qwen_model *model, _Inout_ qwen_prefix_cache_info *info)',
  qwen_prefix_cache_clear: 'qwen_status qwen_prefix_cache_clear(const qwen_model *model, uint64_t cache_namespace)',
  qwen_session_set_attachment: 'qwen_status qwen_session_set_attachment(qwen_session *session, const void *data, size_t size)',
  qwen_session_attachment: 'qwen_status qwen_session_attachment(const qwen_session *session, _Out_ const void **data, _Out_ size_t *size)',
  qwen_session_save_file: 'qwen_status qwen_session_save_file(const qwen_session *session, const uint8_t *file, size_t file_length, uint32_t flags)',
  qwen_session_restore_file: 'qwen_status qwen_session_restore_file(qwen_session *session, const uint8_t *file, size_t file_length)',
  qwen_session_save_memory: 'qwen_status qwen_session_save_memory(const qwen_session *session, uint32_t flags, void *data, size_t capacity, _Out_ size_t *needed)',
  qwen_session_restore_memory: 'qwen_status qwen_session_restore_memory(qwen_session *session, const void *data, size_t size)',
  qwen_session_step: 'qwen_status qwen_session_step(qwen_session *session, uint64_t budget_us, uint32_t flags, _Out_ int32_t *token, _Out_ size_t *remaining)',
  qwen_batch_step: 'qwen_status qwen_batch_step(qwen_session **sessions, size_t count, _Out_ int32_t *tokens, _Out_ qwen_status *statuses)',
  qwen_session_get_statistics: 'qwen_status qwen_session_get_statistics(const qwen_session *session, _Inout_ qwen_statistics *statistics)',
  qwen_model_get_statistics: 'qwen_status qwen_model_get_statistics(const qwen_model *model, _Inout_ qwen_statistics *statistics)',
  qwen_session_set_logits_callback: 'qwen_status qwen_session_set_logits_callback(qwen_session *session, qwen_logits_callback *callback, void *user)',
  qwen_session_logprobs: 'qwen_status qwen_session_logprobs(qwen_session *session, const int32_t *tokens, size_t count, _Out_ float *logprobs)',
  qwen_session_top_logprobs: 'qwen_status qwen_session_top_logprobs(qwen_session *session, _Inout_ qwen_token_logprob *top, size_t count)',
  qwen_session_chosen_logprobs: 'qwen_status qwen_session_chosen_logprobs(qwen_session *session, _Out_ float *logprob, _Inout_ qwen_token_logprob *top, size_t count)',
  qwen_session_score: 'qwen_status qwen_session_score(qwen_session *session, const int32_t *tokens, size_t count, uint32_t flags, _Out_ float *logprobs, _Inout_ qwen_score *score)',
  qwen_session_score_text: 'qwen_status qwen_session_score_text(qwen_session *session, const uint8_t *text, size_t length, uint32_t flags, _Inout_ qwen_score *score)',
  qwen_session_embed: 'qwen_status qwen_session_embed(qwen_session *session, const int32_t *tokens, size_t count, qwen_pooling pooling, uint32_t flags, _Out_ float *embedding, size_t capacity, _Out_ size_t *needed)',
  qwen_session_embed_text: 'qwen_status qwen_session_embed_text(qwen_session *session, const uint8_t *text, size_t length, qwen_pooling pooling, uint32_t flags, _Out_ float *embedding, size_t capacity, _Out_ size_t *needed)',
  qwen_conversation_options_init: 'qwen_status qwen_conversation_options_init(_Inout_ qwen_conversation_options *options, size_t size)',
  qwen_conversation_new: 'qwen_status qwen_conversation_new(qwen_session *session, const qwen_conversation_options *options, _Out_ qwen_conversation **conversation)',
  qwen_conversation_free: 'void qwen_conversation_free(qwen_conversation *conversation)',
  qwen_conversation_configure: 'qwen_status qwen_conversation_configure(qwen_conversation *conversation, const qwen_conversation_options *options)',
  qwen_conversation_add: 'qwen_status qwen_conversation_add(qwen_conversation *conversation, const uint8_t *json, size_t length)',
  qwen_conversation_add_text: 'qwen_status qwen_conversation_add_text(qwen_conversation *conversation, const uint8_t *role, size_t role_length, const uint8_t *text, size_t length)',
  qwen_conversation_add_tool_result: 'qwen_status qwen_conversation_add_tool_result(qwen_conversation *conversation, const uint8_t *id, size_t id_length, const uint8_t *result, size_t length)',
  qwen_conversation_history: 'qwen_status qwen_conversation_history(const qwen_conversation *conversation, _Out_ uint8_t *json, size_t capacity, _Out_ size_t *needed)',
  qwen_conversation_set_history: 'qwen_status qwen_conversation_set_history(qwen_conversation *conversation, const uint8_t *json, size_t length)',
  qwen_conversation_cancel: 'qwen_status qwen_conversation_cancel(const qwen_conversation *conversation)',
  qwen_conversation_cancel_clear: 'qwen_status qwen_conversation_cancel_clear(qwen_conversation *conversation)',
  qwen_conversation_send: 'qwen_status qwen_conversation_send(qwen_conversation *conversation, const uint8_t *json, size_t length, _Out_ size_t *total, _Out_ size_t *computed)',
  qwen_conversation_send_text: 'qwen_status qwen_conversation_send_text(qwen_conversation *conversation, const uint8_t *text, size_t length, _Out_ size_t *total, _Out_ size_t *computed)',
  qwen_conversation_regenerate: 'qwen_status qwen_conversation_regenerate(qwen_conversation *conversation, _Out_ size_t *total, _Out_ size_t *computed)',
  qwen_conversation_settle: 'qwen_status qwen_conversation_settle(qwen_conversation *conversation, _Out_ size_t *total, _Out_ size_t *computed)',
  qwen_conversation_resume: 'qwen_status qwen_conversation_resume(qwen_conversation *conversation)',
  qwen_conversation_undo: 'qwen_status qwen_conversation_undo(qwen_conversation *conversation, _Out_ size_t *removed)',
  qwen_conversation_next: 'qwen_status qwen_conversation_next(qwen_conversation *conversation, _Inout_ qwen_piece *piece)',
  qwen_conversation_enqueue: 'qwen_status qwen_conversation_enqueue(qwen_conversation *conversation, const uint8_t *json, size_t length, _Out_ size_t *total, _Out_ size_t *remaining)',
  qwen_conversation_enqueue_text: 'qwen_status qwen_conversation_enqueue_text(qwen_conversation *conversation, const uint8_t *text, size_t length, _Out_ size_t *total, _Out_ size_t *remaining)',
  qwen_conversation_step: 'qwen_status qwen_conversation_step(qwen_conversation *conversation, uint64_t budget_us, _Inout_ qwen_piece *piece, _Out_ size_t *remaining)',
  qwen_conversation_save_file: 'qwen_status qwen_conversation_save_file(const qwen_conversation *conversation, const uint8_t *file, size_t file_length, uint32_t flags)',
  qwen_conversation_restore_file: 'qwen_status qwen_conversation_restore_file(qwen_conversation *conversation, const uint8_t *file, size_t file_length)',
  qwen_conversation_save_memory: 'qwen_status qwen_conversation_save_memory(const qwen_conversation *conversation, uint32_t flags, void *data, size_t capacity, _Out_ size_t *needed)',
  qwen_conversation_restore_memory: 'qwen_status qwen_conversation_restore_memory(qwen_conversation *conversation, const void *data, size_t size)',
};

// Opens the library and binds every function.
function load(path) {
  const library = koffi.load(path);
  const bound = {};
  for (const name of Object.keys(functions)) bound[name] = library.func(functions[name]);
  return bound;
}

module.exports = { constants, structs, load };
