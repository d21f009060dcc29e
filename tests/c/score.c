/* Probabilities, embeddings and the logits callback through the C ABI. Argument: the toy model
 * (tests/support/toy.rs). The numbers themselves are compared in tests/judge.rs. */
#include <math.h>

#include "check.h"

enum { ROWS = 512, TOKENS = 508, HIDDEN_MOST = 1024 };

static qwen_model *model;
static int32_t prompt[40];

static qwen_session *make(void) {
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    qwen_session *session = NULL;
    sampling.preset = QWEN_PRESET_GREEDY;
    options.sampling = &sampling;
    OK(qwen_session_new(model, &options, &session));
    return session;
}

static void probabilities(void) {
    qwen_session *session = make();
    int32_t all[ROWS], token;
    float each[ROWS], one[20], chosen;
    qwen_token_logprob top[600];
    qwen_score score = QWEN_SCORE_INIT;
    size_t position;
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_session_logprobs(session, prompt, 1, each));
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_session_score(session, prompt, 1, 0, NULL, &score));
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_session_chosen_logprobs(session, &chosen, NULL, 0));
    OK(qwen_session_feed(session, prompt, 20));

    /* They are a distribution, and in order. */
    double sum = 0;
    for (int32_t i = 0; i < ROWS; i++) {
        all[i] = i;
    }
    OK(qwen_session_logprobs(session, all, ROWS, each));
    OK(qwen_session_top_logprobs(session, top, 600));
    for (int i = 0; i < ROWS; i++) {
        sum += exp((double)each[i]);
        CHECK(top[i].logprob == each[top[i].token]);
        CHECK(i == 0 || top[i].logprob <= top[i - 1].logprob);
    }
    CHECK(fabs(sum - 1) < 1e-5);
    CHECK(top[ROWS].token == -1 && top[599].token == -1);
    INVALID(qwen_session_logprobs(session, (int32_t[]){ROWS}, 1, each));
    INVALID(qwen_session_logprobs(session, prompt, 2, NULL));
    INVALID(qwen_session_top_logprobs(session, NULL, 3));
    OK(qwen_session_top_logprobs(session, NULL, 0));

    /* The token that is chosen is the first of them. */
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_session_chosen_logprobs(session, &chosen, NULL, 0));
    CHECK(qwen_session_next_token(session, &token) >= 0);
    OK(qwen_session_chosen_logprobs(session, &chosen, top, 2));
    CHECK(top[0].token == token && chosen == top[0].logprob);

    /* A text scores what its tokens do one by one, and leaves the session as it was. */
    double total = 0;
    OK(qwen_session_score(session, prompt + 20, 20, 0, one, &score));
    OK(qwen_session_position(session, &position));
    CHECK(position == 21 && score.token_count == 20);
    for (int i = 0; i < 20; i++) {
        float alone;
        OK(qwen_session_logprobs(session, prompt + 20 + i, 1, &alone));
        CHECK(alone == one[i]);
        total += (double)alone;
        OK(qwen_session_feed(session, prompt + 20 + i, 1));
    }
    CHECK(fabs(score.log_likelihood - total) < 1e-9);
    CHECK(fabs(score.perplexity - exp(-total / 20)) < 1e-6 * score.perplexity);
    OK(qwen_session_score_text(session, "ab", 2, QWEN_SCORE_KEEP, &score));
    OK(qwen_session_position(session, &position));
    CHECK(score.token_count == 1 && position == 42);
    OK(qwen_session_score(session, NULL, 0, 0, NULL, &score));
    CHECK(score.token_count == 0 && score.log_likelihood == 0 && score.perplexity == 1);
    INVALID(qwen_session_score(session, prompt, 1, 1, NULL, NULL));
    score.struct_size = 3;
    INVALID(qwen_session_score(session, prompt, 1, QWEN_SCORE_KEEP, NULL, &score));
    OK(qwen_session_position(session, &position));
    CHECK(position == 42);
    qwen_session_free(session);
}

static void embeddings(void) {
    qwen_session *session = make();
    float mean[HIDDEN_MOST], last[HIDDEN_MOST], text[HIDDEN_MOST];
    size_t size, position;
    double length = 0;
    qwen_model_info info = QWEN_MODEL_INFO_INIT;
    OK(qwen_model_get_info(model, &info));
    OK(qwen_session_embed(session, prompt, 40, QWEN_POOLING_MEAN, 0, NULL, 0, &size));
    CHECK(size == info.hidden_size && size <= HIDDEN_MOST);
    EXPECT(QWEN_ERROR_BUFFER_TOO_SMALL,
           qwen_session_embed(session, prompt, 40, QWEN_POOLING_MEAN, 0, mean, size - 1, &size));
    OK(qwen_session_embed(session, prompt, 40, QWEN_POOLING_MEAN, QWEN_EMBED_NORMALIZE, mean,
                          HIDDEN_MOST, &size));
    for (size_t i = 0; i < size; i++) {
        length += (double)mean[i] * (double)mean[i];
    }
    CHECK(fabs(length - 1) < 1e-5);
    OK(qwen_session_embed(session, prompt, 1, QWEN_POOLING_LAST, 0, last, HIDDEN_MOST, &size));
    OK(qwen_session_embed(session, prompt, 1, QWEN_POOLING_MEAN, 0, mean, HIDDEN_MOST, &size));
    CHECK(memcmp(mean, last, size * sizeof *mean) == 0);
    OK(qwen_session_embed_text(session, "hello", QWEN_NUL, QWEN_POOLING_LAST, 0, text,
                               HIDDEN_MOST, &size));
    CHECK(memcmp(text, last, size * sizeof *text) != 0);
    INVALID(qwen_session_embed_text(session, "", 0, QWEN_POOLING_LAST, 0, text, HIDDEN_MOST, &size));
    INVALID(qwen_session_embed(session, prompt, 1, 9, 0, text, HIDDEN_MOST, &size));
    INVALID(qwen_session_embed(session, prompt, 1, 0, 1, text, HIDDEN_MOST, &size));
    OK(qwen_session_position(session, &position));
    CHECK(position == 0);
    qwen_session_free(session);
}

static int32_t ban(float *logits, size_t count, const int32_t *tokens, size_t token_count,
                   void *user) {
    int32_t *banned = user;
    CHECK(count == TOKENS && token_count >= 20 && memcmp(tokens, prompt, sizeof *tokens * 20) == 0);
    logits[*banned] = -INFINITY;
    return *banned == 7;
}

static void callback(void) {
    qwen_session *session = make();
    qwen_token_logprob top[2];
    int32_t token, banned;
    OK(qwen_session_feed(session, prompt, 20));
    OK(qwen_session_top_logprobs(session, top, 2));
    banned = top[0].token;
    OK(qwen_session_set_logits_callback(session, ban, &banned));
    CHECK(qwen_session_next_token(session, &token) >= 0);
    CHECK(token == top[1].token);
    banned = 7;
    EXPECT(QWEN_CANCELLED, qwen_session_next_token(session, &token));
    CHECK(token == -1);
    OK(qwen_session_set_logits_callback(session, NULL, NULL));
    CHECK(qwen_session_next_token(session, &token) >= 0);
    qwen_session_free(session);
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    OK(qwen_model_open(argv[1], QWEN_NUL, NULL, &model));
    for (int i = 0; i < 40; i++) {
        prompt[i] = (i * 7919 + 3) % 250;
    }
    probabilities();
    embeddings();
    callback();
    qwen_model_free(model);
    return 0;
}
