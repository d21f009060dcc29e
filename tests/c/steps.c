/* Sessions in steps, in batches, and in numbers. Argument: the toy model. */
#include "check.h"

enum { BATCH = 5, MADE = 8 };

static qwen_model *model;
static int32_t prompt[300];

static qwen_session *make(uint64_t limit) {
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    qwen_session *session = NULL;
    sampling.preset = QWEN_PRESET_GREEDY;
    options.sampling = &sampling;
    options.context_limit = limit;
    OK(qwen_session_new(model, &options, &session));
    return session;
}

static void alone(size_t length, int32_t *made) {
    qwen_session *session = make(0);
    OK(qwen_session_feed(session, prompt, length));
    for (int i = 0; i < MADE; i++) {
        CHECK(qwen_session_next_token(session, &made[i]) >= 0);
    }
    qwen_session_free(session);
}

/* Steps of `budget` until a token comes; counts the others. */
static int32_t step(qwen_session *session, uint64_t budget, size_t *working) {
    int32_t token;
    size_t remaining, before = SIZE_MAX;
    qwen_status status;
    while ((status = qwen_session_step(session, budget, 0, &token, &remaining)) ==
           QWEN_WORKING) {
        CHECK(token == -1 && remaining <= before);
        before = remaining;
        ++*working;
    }
    CHECK(status == QWEN_OK || status == QWEN_END_OF_TURN);
    CHECK(token >= 0 && remaining == 1);
    return token;
}

static void steps(void) {
    int32_t expected[MADE], token = 5;
    size_t count = 0, working = 0;
    alone(300, expected);
    qwen_session *session = make(0);
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_session_step(session, 1000, 0, &token, NULL));
    CHECK(token == -1);
    INVALID(qwen_session_step(session, 1000, 2, &token, NULL));
    INVALID(qwen_session_step(session, 1000, 0, NULL, NULL));
    OK(qwen_session_enqueue(session, prompt, 100));
    OK(qwen_session_enqueue(session, prompt + 100, 200));
    OK(qwen_session_position(session, &count));
    CHECK(count == 300);
    for (int i = 0; i < MADE; i++) {
        CHECK(step(session, i % 2 ? 0 : 100, &working) == expected[i]);
    }
    CHECK(working > MADE);

    /* Input alone; text; a cancel drops what is not computed. */
    int32_t last = -1;
    OK(qwen_session_enqueue_text(session, "more", 4, 0));
    while (qwen_session_step(session, 0, QWEN_STEP_INPUT, &last, &count) == QWEN_WORKING) {
        CHECK(last == -1);
    }
    CHECK(count == 0 && last == -1);
    size_t before, after;
    OK(qwen_session_position(session, &before));
    OK(qwen_session_enqueue(session, prompt, 300));
    EXPECT(QWEN_WORKING, qwen_session_step(session, 0, 0, &token, NULL));
    OK(qwen_session_cancel(session));
    EXPECT(QWEN_CANCELLED, qwen_session_step(session, 0, 0, &token, NULL));
    OK(qwen_session_position(session, &after));
    CHECK(after == before);
    CHECK(step(session, UINT64_MAX, &working) >= 0);
    qwen_session_free(session);
}

/* A conversation in steps: the answer of one that was fed, and the next turn reuses it. */
static void conversation(void) {
    static const char first[] = "[{\"role\":\"user\",\"content\":\"Hello there\"}]";
    static const char second[] =
        "[{\"role\":\"user\",\"content\":\"Hello there\"},{\"role\":\"assistant\","
        "\"content\":\"Hi\"},{\"role\":\"user\",\"content\":\"And?\"}]";
    qwen_session *fed = make(0), *stepped = make(0);
    size_t total, computed, queued, remaining, working = 0;
    int32_t token;
    OK(qwen_session_feed_chat(fed, first, QWEN_NUL, 0, &total, &computed));
    OK(qwen_session_enqueue_chat(stepped, first, QWEN_NUL, 0, &queued, &remaining));
    CHECK(queued == total && remaining == total && computed == total);
    for (int i = 0; i < 3; i++) {
        CHECK(qwen_session_next_token(fed, &token) >= 0);
        CHECK(step(stepped, 0, &working) == token);
    }
    OK(qwen_session_feed_chat(fed, second, QWEN_NUL, 0, &total, &computed));
    OK(qwen_session_enqueue_chat(stepped, second, QWEN_NUL, 0, &queued, &remaining));
    CHECK(queued == total && remaining == computed && computed < total);
    CHECK(qwen_session_next_token(fed, &token) >= 0);
    CHECK(step(stepped, 200, &working) == token);
    INVALID(qwen_session_enqueue_chat(stepped, "nonsense", QWEN_NUL, 0, NULL, NULL));
    qwen_session_free(fed);
    qwen_session_free(stepped);
}

static void batches(void) {
    static const size_t lengths[BATCH] = {3, 40, 100, 200, 300};
    int32_t expected[BATCH][MADE], tokens[BATCH + 4];
    qwen_status statuses[BATCH + 4];
    qwen_session *sessions[BATCH + 4];
    for (int n = 0; n < BATCH; n++) {
        alone(lengths[n], expected[n]);
        sessions[n] = make(0);
        if (n % 2) {
            OK(qwen_session_feed(sessions[n], prompt, lengths[n]));
        } else {
            OK(qwen_session_enqueue(sessions[n], prompt, lengths[n]));
        }
    }
    /* Beside them: one twice, one that is empty, one at its limit, NULL. */
    sessions[BATCH] = sessions[1];
    sessions[BATCH + 1] = make(0);
    sessions[BATCH + 2] = make(10);
    OK(qwen_session_feed(sessions[BATCH + 2], prompt, 10));
    sessions[BATCH + 3] = NULL;
    for (int i = 0; i < MADE; i++) {
        OK(qwen_batch_step((qwen_session *const *)sessions, BATCH + 4, tokens, statuses));
        for (int n = 0; n < BATCH; n++) {
            CHECK(statuses[n] == QWEN_OK || statuses[n] == QWEN_END_OF_TURN);
            CHECK(tokens[n] == expected[n][i]);
        }
        CHECK(statuses[BATCH] == QWEN_ERROR_BUSY && tokens[BATCH] == -1);
        CHECK(statuses[BATCH + 1] == QWEN_ERROR_INVALID_STATE && tokens[BATCH + 1] == -1);
        CHECK(statuses[BATCH + 2] == QWEN_LIMIT_REACHED && tokens[BATCH + 2] == -1);
        CHECK(statuses[BATCH + 3] == QWEN_ERROR_INVALID_HANDLE && tokens[BATCH + 3] == -1);
    }
    /* A cancelled one does not disturb the others. */
    OK(qwen_session_cancel(sessions[0]));
    OK(qwen_batch_step((qwen_session *const *)sessions, BATCH, tokens, statuses));
    CHECK(statuses[0] == QWEN_CANCELLED && tokens[0] == -1);
    CHECK(statuses[1] >= 0 && tokens[1] >= 0);

    OK(qwen_batch_step(NULL, 0, NULL, NULL));
    INVALID(qwen_batch_step(NULL, 1, tokens, statuses));
    INVALID(qwen_batch_step((qwen_session *const *)sessions, 1, NULL, statuses));
    INVALID(qwen_batch_step((qwen_session *const *)sessions, 1, tokens, NULL));
    for (int n = 0; n < BATCH + 3; n++) {
        if (n != BATCH) qwen_session_free(sessions[n]);
    }
}

static void numbers(void) {
    qwen_statistics before = QWEN_STATISTICS_INIT, all = QWEN_STATISTICS_INIT;
    qwen_statistics of = QWEN_STATISTICS_INIT;
    OK(qwen_model_get_statistics(model, &before));
    CHECK(before.sessions == 0 && before.bytes == 0 && before.input_tokens > 0);
    qwen_session *session = make(0);
    OK(qwen_session_get_statistics(session, &of));
    CHECK(of.sessions == 1 && of.input_tokens == 0 && of.output_tokens == 0 && of.bytes > 0);
    CHECK(of.input_rate == 0 && of.output_rate == 0 && of.first_token_us == 0);
    int32_t token;
    OK(qwen_session_feed(session, prompt, 200));
    for (int i = 0; i < MADE; i++) {
        CHECK(qwen_session_next_token(session, &token) >= 0);
    }
    OK(qwen_session_get_statistics(session, &of));
    CHECK(of.input_tokens == 200 && of.output_tokens == MADE && of.first_token_us > 0);
    CHECK(of.input_us > 0 && of.output_us > 0 && of.input_rate > 0 && of.output_rate > 0);
    OK(qwen_model_get_statistics(model, &all));
    CHECK(all.sessions == 1 && all.bytes == of.bytes);
    CHECK(all.input_tokens == before.input_tokens + 200);
    CHECK(all.output_tokens == before.output_tokens + MADE);
    qwen_session_free(session);
    OK(qwen_model_get_statistics(model, &all));
    CHECK(all.sessions == 0 && all.bytes == 0);
    of.struct_size = 7;
    INVALID(qwen_model_get_statistics(model, &of));
    INVALID(qwen_model_get_statistics(model, NULL));
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    for (int i = 0; i < 300; i++) {
        prompt[i] = (i * 7919) % 500;
    }
    OK(qwen_model_open(argv[1], QWEN_NUL, NULL, &model));
    steps();
    conversation();
    batches();
    numbers();
    qwen_model_free(model);
    return 0;
}
