/* Versions and macros, as the C compiler computes them, against the library's own. */
#include <stddef.h>

#include "check.h"

#define OFFSET(type, field, at) CHECK(offsetof(type, field) == (at))

int main(void) {
    char version[64];
    snprintf(version, sizeof version, "%d.%d.%d", QWEN_VERSION_MAJOR, QWEN_VERSION_MINOR,
             QWEN_VERSION_PATCH);
    CHECK(strcmp(version, qwen_version()) == 0);
    CHECK(qwen_abi_version() == QWEN_ABI_VERSION);
    CHECK(strstr(qwen_build_info(), version) != NULL);
    CHECK(strstr(qwen_cpu_info(), "scalar") != NULL);
    CHECK(qwen_cpu_info() == qwen_cpu_info());
    CHECK(strcmp(qwen_last_error(), "") == 0);
    CHECK(strcmp(qwen_status_name(QWEN_ERROR_IO), "QWEN_ERROR_IO") == 0);
    CHECK(strcmp(qwen_status_name(12345), "unknown status") == 0);

    /* The layout that bindings in other languages rely on. */
    CHECK(sizeof(qwen_model_options) == 72);
    OFFSET(qwen_model_options, flags, 4);
    OFFSET(qwen_model_options, threads, 8);
    OFFSET(qwen_model_options, isa, 12);
    OFFSET(qwen_model_options, log, 16);
    OFFSET(qwen_model_options, log_level, 32);
    CHECK(sizeof(qwen_model_cost) == 80);
    OFFSET(qwen_model_cost, kv_fp32_bytes, 56);
    CHECK(sizeof(qwen_pack_info) == 32);
    OFFSET(qwen_model_options, weights, 40);
    OFFSET(qwen_model_options, compute, 44);
    OFFSET(qwen_model_options, progress, 48);
    OFFSET(qwen_model_options, user, 56);
    OFFSET(qwen_model_options, prefix_cache_bytes, 64);
    CHECK(sizeof(qwen_model_info) == 56);
    OFFSET(qwen_model_info, weight_bytes, 40);
    OFFSET(qwen_model_info, weights, 48);
    OFFSET(qwen_model_info, compute, 52);
    CHECK(sizeof(qwen_logit_bias) == 8);
    CHECK(sizeof(qwen_sampling_options) == 72);
    OFFSET(qwen_sampling_options, temperature, 12);
    OFFSET(qwen_sampling_options, seed, 48);
    OFFSET(qwen_sampling_options, logit_bias, 56);
    CHECK(sizeof(qwen_token_logprob) == 8);
    CHECK(sizeof(qwen_score) == 32);
    CHECK(sizeof(qwen_conversation_options) == 72);
    OFFSET(qwen_conversation_options, system, 24);
    OFFSET(qwen_conversation_options, stop_lengths, 64);
    CHECK(sizeof(qwen_piece) == 96);
    OFFSET(qwen_piece, text, 16);
    OFFSET(qwen_piece, problem_length, 88);
    CHECK(sizeof(qwen_session_options) == 56);
    OFFSET(qwen_session_options, cache_namespace, 24);
    OFFSET(qwen_session_options, overflow_reserve, 32);
    OFFSET(qwen_session_options, overflow, 40);
    OFFSET(qwen_session_options, kv, 48);
    OFFSET(qwen_session_options, mark_limit, 44);
    CHECK(sizeof(qwen_mark) == 24 && sizeof(qwen_feed_info) == 64);
    CHECK(sizeof(qwen_prefix_cache_info) == 56);
    OFFSET(qwen_session_options, context_limit, 8);
    OFFSET(qwen_session_options, sampling, 16);

    /* The macros are what the functions make. */
    qwen_model_options a = QWEN_MODEL_OPTIONS_INIT, a2;
    memset(&a2, 0xFF, sizeof a2);
    OK(qwen_model_options_init(&a2, sizeof a2));
    CHECK(memcmp(&a, &a2, sizeof a) == 0);
    qwen_sampling_options b = QWEN_SAMPLING_OPTIONS_INIT, b2;
    memset(&b2, 0xFF, sizeof b2);
    OK(qwen_sampling_options_init(&b2, sizeof b2));
    CHECK(memcmp(&b, &b2, sizeof b) == 0);
    qwen_session_options c = QWEN_SESSION_OPTIONS_INIT, c2;
    memset(&c2, 0xFF, sizeof c2);
    OK(qwen_session_options_init(&c2, sizeof c2));
    CHECK(memcmp(&c, &c2, sizeof c) == 0);
    INVALID(qwen_model_options_init(NULL, sizeof a));
    INVALID(qwen_model_options_init(&a, 3));
    INVALID(qwen_model_options_init(&a, SIZE_MAX));
    return 0;
}
