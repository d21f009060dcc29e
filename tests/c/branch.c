/* Forks, marks, reuse and saved sessions through the C ABI. Arguments: the toy model
 * (tests/support/toy.rs), an empty folder. */
#include "check.h"

enum { ROWS = 512 };

static qwen_model *model;
static int32_t prompt[300];

static qwen_session *make(const qwen_session_options *given, uint64_t seed) {
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session *session = NULL;
    if (given != NULL) {
        options = *given;
    }
    sampling.set = QWEN_SET_SEED;
    sampling.seed = seed;
    options.sampling = &sampling;
    OK(qwen_session_new(model, &options, &session));
    return session;
}

static size_t position(const qwen_session *session) {
    size_t position = 99;
    OK(qwen_session_position(session, &position));
    return position;
}

static void generate(qwen_session *session, int32_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        CHECK(qwen_session_next_token(session, &ids[i]) >= 0);
    }
}

/* Whether both stand at the same logits, bit for bit. */
static int same(qwen_session *a, qwen_session *b) {
    const float *one, *two;
    size_t count;
    OK(qwen_session_logits(a, &one, &count));
    OK(qwen_session_logits(b, &two, &count));
    return count == ROWS && memcmp(one, two, ROWS * sizeof *one) == 0;
}

static void forks(void) {
    qwen_session *session = make(NULL, 7), *forks[100];
    int32_t expected[20], got[20];
    OK(qwen_session_feed(session, prompt, 200));
    generate(session, got, 3);
    for (size_t i = 0; i < 100; i++) {
        OK(qwen_session_fork(session, &forks[i]));
        CHECK(position(forks[i]) == 203);
    }
    generate(session, expected, 20);
    for (size_t i = 0; i < 100; i++) {
        if (i % 10 == 0) {
            generate(forks[i], got, 20);
            CHECK(memcmp(expected, got, sizeof got) == 0 && same(session, forks[i]));
        }
        qwen_session_free(forks[i]);
    }
    /* A cancel of one is not a cancel of the other. */
    OK(qwen_session_fork(session, &forks[0]));
    OK(qwen_session_cancel(forks[0]));
    OK(qwen_session_feed(session, prompt, 3));
    EXPECT(QWEN_CANCELLED, qwen_session_feed(forks[0], prompt, 3));
    qwen_session_free(session);
    OK(qwen_session_feed(forks[0], prompt, 3));
    qwen_session_free(forks[0]);
    INVALID(qwen_session_fork(make(NULL, 1), NULL));
}

static void marks(void) {
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    options.mark_limit = 2;
    qwen_session *session = make(&options, 7), *plain = make(NULL, 7);
    uint64_t start, later, none = 5;
    int32_t first[10], again[10];
    size_t computed = 99, needed;
    qwen_mark list[2];
    OK(qwen_session_feed(session, prompt, 100));
    OK(qwen_session_mark(session, &start));
    generate(session, first, 10);
    OK(qwen_session_mark(session, &later));
    CHECK(start != 0 && later != start);
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_session_mark(session, &none));
    CHECK(none == 0);
    SAYS("2");
    OK(qwen_session_marks(session, NULL, 0, &needed));
    CHECK(needed == 2);
    EXPECT(QWEN_ERROR_BUFFER_TOO_SMALL, qwen_session_marks(session, list, 1, &needed));
    OK(qwen_session_marks(session, list, 2, &needed));
    CHECK(list[0].id == start && list[0].position == 100 && !list[0].automatic);
    CHECK(list[1].id == later && list[1].position == 110);

    OK(qwen_session_rewind(session, start, QWEN_REWIND_RANDOM));
    CHECK(position(session) == 100);
    generate(session, again, 10);
    CHECK(memcmp(first, again, sizeof again) == 0);
    INVALID(qwen_session_rewind(session, later, 0));
    SAYS("not held");
    INVALID(qwen_session_rewind(session, start, 0x80));
    OK(qwen_session_rewind(session, start, 0));
    OK(qwen_session_feed(plain, prompt, 100));
    CHECK(same(session, plain));
    OK(qwen_session_unmark(session, start));
    INVALID(qwen_session_unmark(session, start));

    OK(qwen_session_mark(session, &start));
    OK(qwen_session_feed(session, prompt + 100, 100));
    OK(qwen_session_truncate(session, 150, &computed));
    CHECK(computed == 50 && position(session) == 150);
    OK(qwen_session_feed(plain, prompt + 100, 50));
    CHECK(same(session, plain));
    INVALID(qwen_session_truncate(session, 151, &computed));
    CHECK(computed == 0);
    OK(qwen_session_truncate(session, 100, NULL));
    OK(qwen_session_truncate(session, 0, &computed));
    CHECK(computed == 0 && position(session) == 0);
    qwen_session_free(session);
    qwen_session_free(plain);
}

static const char ask[] =
    "[{\"role\":\"system\",\"content\":\"You are a guard of the town and say little.\"},"
    "{\"role\":\"user\",\"content\":\"Who goes there?\"}]";
static const char ask_more[] =
    "[{\"role\":\"system\",\"content\":\"You are a guard of the town and say little.\"},"
    "{\"role\":\"user\",\"content\":\"A friend.\"}]";

static void reuse(void) {
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    options.cache_namespace = 3;
    qwen_session *one = make(&options, 1), *two = make(&options, 1), *cold = make(NULL, 1);
    qwen_feed_info info = QWEN_FEED_INFO_INIT;
    qwen_prefix_cache_info cache = QWEN_PREFIX_CACHE_INFO_INIT;
    size_t total, computed;
    OK(qwen_session_get_feed_info(one, &info));
    CHECK(info.total == 0);
    OK(qwen_session_feed_chat(one, ask, QWEN_NUL, 0, &total, &computed));
    CHECK(computed == total);
    OK(qwen_session_feed_chat(two, ask_more, QWEN_NUL, 0, &total, &computed));
    OK(qwen_session_get_feed_info(two, &info));
    CHECK(info.total == total && info.computed == computed && info.cached > 10);
    CHECK(info.computed + info.cached == info.total && info.dropped_messages == 0);
    OK(qwen_session_feed_chat(cold, ask_more, QWEN_NUL, 0, &total, &computed));
    CHECK(computed == total && same(two, cold));
    OK(qwen_prefix_cache_get_info(model, &cache));
    CHECK(cache.entries > 0 && cache.bytes <= cache.limit && cache.hits > 0);
    OK(qwen_prefix_cache_clear(model, 4));
    OK(qwen_prefix_cache_get_info(model, &cache));
    CHECK(cache.entries > 0);
    OK(qwen_prefix_cache_clear(model, 0));
    OK(qwen_prefix_cache_get_info(model, &cache));
    CHECK(cache.entries == 0 && cache.bytes == 0);

    OK(qwen_session_set_tokens(one, prompt, 50, &computed));
    CHECK(computed == 50);
    OK(qwen_session_set_tokens(one, prompt, 60, &computed));
    CHECK(computed == 10 && position(one) == 60);
    INVALID(qwen_session_set_tokens(one, prompt, SIZE_MAX / 2, &computed));
    CHECK(position(one) == 60 && computed == 0);
    qwen_session_free(one);
    qwen_session_free(two);
    qwen_session_free(cold);
}

static void overflow(void) {
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    options.context_limit = 128;
    qwen_session *strict = make(&options, 1);
    char json[4096] = "[{\"role\":\"system\",\"content\":\"abc\"}";
    for (int i = 0; i < 8; i++) {
        strcat(json, ",{\"role\":\"user\",\"content\":\"a question of some length\"},"
                     "{\"role\":\"assistant\",\"content\":\"an answer\"}");
    }
    strcat(json, ",{\"role\":\"user\",\"content\":\"the last one\"}]");
    EXPECT(QWEN_ERROR_CONTEXT_OVERFLOW,
           qwen_session_feed_chat(strict, json, QWEN_NUL, 0, NULL, NULL));
    SAYS("128");
    CHECK(position(strict) == 0);
    options.overflow = QWEN_OVERFLOW_DROP_TURNS;
    options.overflow_reserve = 40;
    qwen_session *lenient = make(&options, 1);
    size_t total;
    OK(qwen_session_feed_chat(lenient, json, QWEN_NUL, 0, &total, NULL));
    qwen_feed_info info = QWEN_FEED_INFO_INIT;
    OK(qwen_session_get_feed_info(lenient, &info));
    CHECK(info.kept_messages == 1 && info.dropped_messages >= 2);
    CHECK(info.dropped_messages % 2 == 0 && total + 40 <= 128);
    options.overflow = 9;
    qwen_session *none = lenient;
    INVALID(qwen_session_new(model, &options, &none));
    SAYS("overflow");
    CHECK(none == NULL);
    qwen_session_free(strict);
    qwen_session_free(lenient);
}

static void saved(const char *folder) {
    char file[4096];
    qwen_session *one = make(NULL, 1), *two = make(NULL, 2);
    int32_t expected[20], got[20];
    size_t needed, size;
    const void *data = &needed;
    CHECK(snprintf(file, sizeof file, "%s/a.state", folder) < (int)sizeof file);
    OK(qwen_session_feed(one, prompt, 130));
    generate(one, got, 3);
    OK(qwen_session_attachment(one, &data, &size));
    CHECK(size == 0);
    OK(qwen_session_set_attachment(one, "a\0b", 3));
    OK(qwen_session_save_file(one, file, QWEN_NUL, 0));
    OK(qwen_session_save_memory(one, 0, NULL, 0, &needed));
    unsigned char *memory = malloc(needed);
    size = needed;
    EXPECT(QWEN_ERROR_BUFFER_TOO_SMALL,
           qwen_session_save_memory(one, 0, memory, needed - 1, &needed));
    CHECK(needed == size);
    OK(qwen_session_save_memory(one, 0, memory, needed, &needed));
    generate(one, expected, 20);

    OK(qwen_session_restore_file(two, file, strlen(file)));
    CHECK(position(two) == 133);
    OK(qwen_session_attachment(two, &data, &size));
    CHECK(size == 3 && memcmp(data, "a\0b", 3) == 0);
    generate(two, got, 20);
    CHECK(memcmp(expected, got, sizeof got) == 0 && same(one, two));

    OK(qwen_session_reset(two));
    OK(qwen_session_restore_memory(two, memory, needed));
    generate(two, got, 20);
    CHECK(memcmp(expected, got, sizeof got) == 0);

    /* Refused: the session goes on as if nothing had been. */
    memory[needed / 2] ^= 1;
    EXPECT(QWEN_ERROR_FORMAT, qwen_session_restore_memory(two, memory, needed));
    SAYS("damaged");
    EXPECT(QWEN_ERROR_FORMAT, qwen_session_restore_memory(two, memory, needed - 1));
    SAYS("cut off");
    EXPECT(QWEN_ERROR_FORMAT, qwen_session_restore_memory(two, NULL, 0));
    INVALID(qwen_session_restore_memory(two, NULL, 5));
    EXPECT(QWEN_ERROR_IO, qwen_session_restore_file(two, "/no/such/file", QWEN_NUL));
    SAYS("/no/such/file");
    EXPECT(QWEN_ERROR_IO, qwen_session_save_file(two, "/no/such/folder/a", QWEN_NUL, 0));
    INVALID(qwen_session_save_file(two, "", 0, 0));
    INVALID(qwen_session_save_file(two, file, QWEN_NUL, 0x80));
    CHECK(same(one, two));
    free(memory);
    qwen_session_free(one);
    qwen_session_free(two);
}

/* Formats of keys and values: each its own bits, each its own saved sessions. */
static void kv_formats(void) {
    static const qwen_kv formats[] = {QWEN_KV_FP32, QWEN_KV_FP16, QWEN_KV_INT8};
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    qwen_session *plain = make(NULL, 1);
    qwen_kv kv = 99;
    size_t sizes[3];
    OK(qwen_session_kv(plain, &kv));
    CHECK(kv == QWEN_KV_FP32); /* the toy model computes exactly */
    OK(qwen_session_feed(plain, prompt, 200));
    for (size_t i = 0; i < 3; i++) {
        options.kv = formats[i];
        qwen_session *one = make(&options, 1), *two = make(&options, 2);
        OK(qwen_session_kv(one, &kv));
        CHECK(kv == formats[i]);
        OK(qwen_session_feed(one, prompt, 200));
        CHECK(same(one, plain) == (i == 0));
        OK(qwen_session_save_memory(one, 0, NULL, 0, &sizes[i]));
        void *memory = malloc(sizes[i]);
        OK(qwen_session_save_memory(one, 0, memory, sizes[i], &sizes[i]));
        OK(qwen_session_restore_memory(two, memory, sizes[i]));
        CHECK(same(one, two));
        options.kv = formats[(i + 1) % 3];
        qwen_session *other = make(&options, 1);
        EXPECT(QWEN_ERROR_UNSUPPORTED, qwen_session_restore_memory(other, memory, sizes[i]));
        SAYS("keys and values in");
        CHECK(position(other) == 0);
        free(memory);
        qwen_session_free(one);
        qwen_session_free(two);
        qwen_session_free(other);
    }
    CHECK(sizes[0] > sizes[1] && sizes[1] > sizes[2]);
    options.kv = 4;
    qwen_session *none = plain;
    INVALID(qwen_session_new(model, &options, &none));
    SAYS("kv");
    CHECK(none == NULL);
    kv = 99;
    EXPECT(QWEN_ERROR_INVALID_HANDLE, qwen_session_kv(NULL, &kv));
    CHECK(kv == QWEN_KV_AUTO);
    INVALID(qwen_session_kv(plain, NULL));
    qwen_session_free(plain);
}

/* The first half of a character, then the process "ends", then the second half. */
static void half_a_character(void) {
    qwen_stream_decoder *before, *after;
    const char *text;
    size_t length, count;
    int32_t ids[16];
    OK(qwen_tokenize(model, "\xF0\x9F\x98\x80", QWEN_NUL, 0, ids, 16, &count));
    CHECK(count > 1);
    OK(qwen_stream_decoder_new(model, 0, &before));
    OK(qwen_stream_decoder_new(model, 0, &after));
    OK(qwen_stream_decoder_push(before, ids[0], &text, &length));
    CHECK(length == 0);
    OK(qwen_stream_decoder_resume(after, ids, 1));
    for (size_t i = 1; i < count; i++) {
        OK(qwen_stream_decoder_push(after, ids[i], &text, &length));
    }
    CHECK(length == 4 && memcmp(text, "\xF0\x9F\x98\x80", 4) == 0);
    ids[0] = ROWS;
    INVALID(qwen_stream_decoder_resume(after, ids, 1));
    OK(qwen_stream_decoder_resume(after, NULL, 0));
    OK(qwen_stream_decoder_finish(after, &text, &length));
    CHECK(length == 0);
    qwen_stream_decoder_free(before);
    qwen_stream_decoder_free(after);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    for (int i = 0; i < 300; i++) {
        prompt[i] = (i * 7919) % 500;
    }
    qwen_model_options options = QWEN_MODEL_OPTIONS_INIT;
    options.prefix_cache_bytes = 8 << 20;
    OK(qwen_model_open(argv[1], QWEN_NUL, &options, &model));
    forks();
    marks();
    reuse();
    overflow();
    saved(argv[2]);
    kv_formats();
    half_a_character();
    qwen_model_free(model);
    return 0;
}
