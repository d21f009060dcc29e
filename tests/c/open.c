/* Packed files; opening from memory and through reads; costs; warming up; messages.
 * Arguments: the toy model, a folder to write in. */
#include "check.h"

typedef struct {
    char *bytes;
    size_t size;
} contents;

static contents read_file(const char *path) {
    contents file = {NULL, 0};
    FILE *stream = fopen(path, "rb");
    CHECK(stream != NULL && fseek(stream, 0, SEEK_END) == 0);
    file.size = (size_t)ftell(stream);
    rewind(stream);
    file.bytes = malloc(file.size);
    CHECK(file.bytes != NULL && fread(file.bytes, 1, file.size, stream) == file.size);
    fclose(stream);
    return file;
}

static void write_file(const char *path, const char *bytes, size_t size) {
    FILE *stream = fopen(path, "wb");
    CHECK(stream != NULL && fwrite(bytes, 1, size, stream) == size && fclose(stream) == 0);
}

/* The next token that the model chooses greedily. */
static int32_t answer(qwen_model *model) {
    qwen_session *session = NULL;
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    int32_t ids[] = {1, 2, 3, 4, 5}, token = -1;
    sampling.preset = QWEN_PRESET_GREEDY;
    options.sampling = &sampling;
    OK(qwen_session_new(model, &options, &session));
    OK(qwen_session_feed(session, ids, 5));
    CHECK(qwen_session_next_token(session, &token) >= 0);
    qwen_session_free(session);
    return token;
}

static uint64_t last_done, last_total;
static int calls;

static int32_t watch(uint64_t done, uint64_t total, void *user) {
    CHECK(done <= total && done >= last_done);
    last_done = done;
    last_total = total;
    calls++;
    return user != NULL && calls == *(int *)user;
}

static void expect_release(void *data, size_t length, void *user) {
    (void)data;
    (void)length;
    ++*(int *)user;
}

typedef struct {
    contents file;
    int fail_at; /* the call that fails, or 0 */
    int calls;
} reader;

static int32_t read_part(uint64_t offset, void *buffer, size_t length, void *user) {
    reader *from = user;
    if (++from->calls == from->fail_at) {
        return 42;
    }
    CHECK(offset + length <= from->file.size);
    memcpy(buffer, from->file.bytes + offset, length);
    return 0;
}

static char messages[4096];

static void keep_message(qwen_log_level level, const char *message, size_t length, void *user) {
    CHECK(user == messages && level >= QWEN_LOG_WARNING && level <= QWEN_LOG_DEBUG);
    CHECK(strlen(message) == length && strchr(message, '\n') == NULL);
    snprintf(messages + strlen(messages), sizeof messages - strlen(messages), "%d %s\n",
             (int)level, message);
}

/* Lends `size` bytes from `skip` after a multiple of 64 on. */
static qwen_status open_lent(const contents *file, size_t skip, size_t size, char **memory,
                             int *released, qwen_model **model) {
    *memory = malloc(size + skip + 64);
    CHECK(*memory != NULL);
    char *aligned = *memory + (64 - (uintptr_t)*memory % 64) % 64 + skip;
    memcpy(aligned, file->bytes, size);
    *released = 0;
    return qwen_model_open_memory(aligned, size, expect_release, released, NULL, model);
}

static void from_memory(const contents *file, int32_t expected) {
    qwen_model *model = NULL;
    qwen_session *session = NULL;
    int released = 0;
    char *memory = NULL;

    OK(open_lent(file, 0, file->size, &memory, &released, &model));
    CHECK(released == 0 && answer(model) == expected);
    OK(qwen_session_new(model, NULL, &session));
    qwen_model_free(model);
    CHECK(released == 0); /* the session keeps it */
    qwen_session_free(session);
    CHECK(released == 1);
    free(memory);

    /* Not aligned: copied, and given back at once. */
    OK(open_lent(file, 1, file->size, &memory, &released, &model));
    CHECK(released == 1);
    free(memory);
    CHECK(answer(model) == expected);
    qwen_model_free(model);
    CHECK(released == 1);

    /* Truncated, damaged, foreign, nothing: refused, and given back. */
    const size_t cuts[] = {0, 1, 8, 127, 128, 4096, file->size / 2, file->size - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        for (size_t skip = 0; skip < 2; skip++) {
            EXPECT(QWEN_ERROR_FORMAT,
                   open_lent(file, skip, cuts[i], &memory, &released, &model));
            CHECK(released == 1 && model == NULL);
            free(memory);
        }
    }
    released = 0;
    INVALID(qwen_model_open_memory(NULL, 5, expect_release, &released, NULL, &model));
    CHECK(released == 1);
    INVALID(qwen_model_open_memory(file->bytes, SIZE_MAX, expect_release, &released, NULL, &model));
    CHECK(released == 2);
    INVALID(qwen_model_open_memory(file->bytes, file->size, expect_release, &released, NULL, NULL));
    CHECK(released == 3);
    qwen_model_options options = QWEN_MODEL_OPTIONS_INIT;
    options.isa = 99;
    INVALID(qwen_model_open_memory(file->bytes, file->size, expect_release, &released, &options,
                                   &model));
    CHECK(released == 4 && model == NULL);
    OK(qwen_model_open_memory(file->bytes, file->size, NULL, NULL, NULL, &model));
    CHECK(answer(model) == expected);
    qwen_model_free(model);
}

static void from_reader(const contents *file, int32_t expected) {
    qwen_model *model = NULL;
    reader from = {*file, 0, 0};
    OK(qwen_model_open_reader(file->size, read_part, &from, NULL, &model));
    CHECK(answer(model) == expected);
    qwen_model_free(model);
    int all = from.calls;
    CHECK(all >= 3);
    for (int fail = 1; fail <= all; fail++) {
        reader failing = {*file, fail, 0};
        EXPECT(QWEN_ERROR_IO,
               qwen_model_open_reader(file->size, read_part, &failing, NULL, &model));
        SAYS("42");
        CHECK(model == NULL && failing.calls == fail);
    }
    reader short_file = {*file, 0, 0};
    EXPECT(QWEN_ERROR_FORMAT,
           qwen_model_open_reader(file->size - 1, read_part, &short_file, NULL, &model));
    SAYS("cut off");
    CHECK(short_file.calls == 1);
    EXPECT(QWEN_ERROR_FORMAT,
           qwen_model_open_reader(0, read_part, &short_file, NULL, &model));
    INVALID(qwen_model_open_reader(file->size, NULL, NULL, NULL, &model));
    INVALID(qwen_model_open_reader(file->size, read_part, &from, NULL, NULL));
}

/* What it costs, before it is opened in these ways: the same, and nothing is mapped. */
static void costs_of_packed(const char *path, const contents *file) {
    qwen_model_cost cost = QWEN_MODEL_COST_INIT, other = QWEN_MODEL_COST_INIT;
    OK(qwen_model_estimate(path, QWEN_NUL, NULL, 100, &cost));
    CHECK(cost.weight_bytes > 0 && cost.mapped_bytes == cost.weight_bytes);
    cost.mapped_bytes = 0;
    OK(qwen_model_estimate_memory(file->bytes, file->size, NULL, 100, &other));
    CHECK(memcmp(&cost, &other, sizeof cost) == 0);
    memset(&other.reserved, 1, sizeof other - sizeof other.struct_size);
    reader from = {*file, 0, 0};
    OK(qwen_model_estimate_reader(file->size, read_part, &from, NULL, 100, &other));
    CHECK(memcmp(&cost, &other, sizeof cost) == 0);
    for (int fail = 1; fail <= from.calls; fail++) {
        reader failing = {*file, fail, 0};
        EXPECT(QWEN_ERROR_IO, qwen_model_estimate_reader(file->size, read_part, &failing, NULL,
                                                         100, &other));
        SAYS("42");
    }
    const size_t cuts[] = {0, 1, 8, 127, 128, 4096, file->size / 2, file->size - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        EXPECT(QWEN_ERROR_FORMAT,
               qwen_model_estimate_memory(file->bytes, cuts[i], NULL, 100, &other));
        from.calls = 0;
        EXPECT(QWEN_ERROR_FORMAT, qwen_model_estimate_reader(cuts[i], read_part, &from, NULL, 100,
                                                             &other));
    }
    INVALID(qwen_model_estimate_memory(NULL, 5, NULL, 100, &other));
    INVALID(qwen_model_estimate_memory(file->bytes, file->size, NULL, 100, NULL));
    INVALID(qwen_model_estimate_reader(file->size, NULL, NULL, NULL, 100, &other));
    INVALID(qwen_model_estimate_reader(file->size, read_part, &from, NULL, 100, NULL));
}

static void costs_and_warming(const char *path) {
    qwen_model *model = NULL;
    qwen_model_cost cost = QWEN_MODEL_COST_INIT, small = QWEN_MODEL_COST_INIT;
    qwen_model_info info = QWEN_MODEL_INFO_INIT;
    OK(qwen_model_estimate(path, QWEN_NUL, NULL, 1000, &cost));
    OK(qwen_model_estimate(path, QWEN_NUL, NULL, 10, &small));
    OK(qwen_model_open(path, QWEN_NUL, NULL, &model));
    OK(qwen_model_get_info(model, &info));
    CHECK(cost.weight_bytes == info.weight_bytes && cost.mapped_bytes == info.weight_bytes);
    CHECK(cost.session_bytes > small.session_bytes && small.session_bytes > cost.copy_bytes);
    CHECK(small.session_start_bytes == cost.session_start_bytes && cost.scratch_bytes > 0);
    CHECK(cost.kv_fp32_bytes == 2 * cost.kv_fp16_bytes);
    CHECK(cost.kv_int8_bytes < cost.kv_fp16_bytes && 2 * cost.kv_int8_bytes > cost.kv_fp16_bytes);
    CHECK(cost.session_bytes ==
          cost.session_start_bytes + cost.kv_fp32_bytes + 1000 * sizeof(int32_t));
    qwen_model_options fast = QWEN_MODEL_OPTIONS_INIT;
    fast.compute = QWEN_COMPUTE_FAST;
    OK(qwen_model_estimate(path, QWEN_NUL, &fast, 1000, &small));
    CHECK(cost.session_bytes - small.session_bytes == cost.kv_fp32_bytes - cost.kv_fp16_bytes);
    INVALID(qwen_model_estimate(path, QWEN_NUL, NULL, 0, NULL));
    cost.struct_size = 3;
    INVALID(qwen_model_estimate(path, QWEN_NUL, NULL, 0, &cost));
    EXPECT(QWEN_ERROR_IO, qwen_model_estimate("/no/such", QWEN_NUL, NULL, 0, &small));

    int stop = 2;
    last_done = last_total = 0;
    calls = 0;
    EXPECT(QWEN_CANCELLED, qwen_model_warm_up(model, watch, &stop));
    last_done = 0;
    OK(qwen_model_warm_up(model, watch, NULL));
    CHECK(last_total == info.layer_count + 1 && last_done == last_total);
    OK(qwen_model_warm_up(model, NULL, NULL));
    qwen_model_free(model);
    EXPECT(QWEN_ERROR_INVALID_HANDLE, qwen_model_warm_up(NULL, NULL, NULL));
}

static void told(const char *path) {
    qwen_model *model = NULL;
    qwen_model_options options = QWEN_MODEL_OPTIONS_INIT;
    options.log = keep_message;
    options.log_user = messages;
    OK(qwen_model_open(path, QWEN_NUL, &options, &model)); /* silent by default */
    qwen_model_free(model);
    CHECK(messages[0] == '\0');
    options.log_level = QWEN_LOG_INFO;
    OK(qwen_model_open(path, QWEN_NUL, &options, &model));
    CHECK(strstr(messages, "2 opened ") != NULL && strstr(messages, "threads") != NULL);
    CHECK(strstr(messages, "\n3 ") == NULL);
    OK(qwen_model_warm_up(model, NULL, NULL));
    CHECK(strstr(messages, "2 warmed up") != NULL);
    qwen_model_free(model);
    options.log_level = QWEN_LOG_DEBUG;
    OK(qwen_model_open(path, QWEN_NUL, &options, &model));
    CHECK(strstr(messages, "3 ") != NULL);
    qwen_model_free(model);
    options.log_level = 9;
    INVALID(qwen_model_open(path, QWEN_NUL, &options, &model));
    SAYS("log_level");
    options.log_level = QWEN_LOG_INFO;
    options.log = NULL;
    INVALID(qwen_model_open(path, QWEN_NUL, &options, &model));
}

int main(int argc, char **argv) {
    char path[4096], other[4096];
    qwen_model *model = NULL;
    qwen_model_info info = QWEN_MODEL_INFO_INIT;
    qwen_pack_info made = QWEN_PACK_INFO_INIT;
    CHECK(argc == 3);
    snprintf(path, sizeof path, "%s/toy.qwen", argv[2]);
    snprintf(other, sizeof other, "%s/other.qwen", argv[2]);
    OK(qwen_model_open(argv[1], QWEN_NUL, NULL, &model));
    OK(qwen_model_get_info(model, &info));
    int32_t expected = answer(model);
    qwen_model_free(model);

    /* Packing: progress, cancel, and what it makes. */
    int stop = 3;
    EXPECT(QWEN_CANCELLED, qwen_pack(argv[1], QWEN_NUL, path, QWEN_NUL, NULL, watch, &stop, &made));
    EXPECT(QWEN_ERROR_IO, qwen_model_open(path, QWEN_NUL, NULL, &model));
    calls = 0;
    last_done = 0;
    OK(qwen_pack(argv[1], QWEN_NUL, path, QWEN_NUL, NULL, watch, NULL, &made));
    CHECK(calls > 10 && last_done == last_total);
    contents file = read_file(path);
    CHECK(made.file_bytes == file.size && made.weight_bytes == info.weight_bytes);
    CHECK(made.fingerprint != 0);
    last_done = 0;
    OK(qwen_pack_verify(path, QWEN_NUL, watch, NULL));
    CHECK(last_done == last_total);
    OK(qwen_model_open(path, QWEN_NUL, NULL, &model));
    CHECK(answer(model) == expected);
    qwen_model_free(model);
    INVALID(qwen_pack(NULL, 0, path, QWEN_NUL, NULL, NULL, NULL, NULL));
    INVALID(qwen_pack(argv[1], QWEN_NUL, "", 0, NULL, NULL, NULL, NULL));
    EXPECT(QWEN_ERROR_IO, qwen_pack("/no/such", QWEN_NUL, path, QWEN_NUL, NULL, NULL, NULL, NULL));
    EXPECT(QWEN_ERROR_IO, qwen_pack(argv[1], QWEN_NUL, "/no/such/x", QWEN_NUL, NULL, NULL, NULL, NULL));
    made.struct_size = 4;
    INVALID(qwen_pack(argv[1], QWEN_NUL, other, QWEN_NUL, NULL, NULL, NULL, &made));
    made.struct_size = sizeof made;

    /* Quantized, ahead of time and when it is opened: the same. */
    for (int32_t format = QWEN_WEIGHTS_INT8; format <= QWEN_WEIGHTS_INT4; format++) {
        qwen_pack_options packing = QWEN_PACK_OPTIONS_INIT;
        qwen_model_options opening = QWEN_MODEL_OPTIONS_INIT;
        qwen_model_cost folder_cost = QWEN_MODEL_COST_INIT, file_cost = QWEN_MODEL_COST_INIT;
        packing.weights = opening.weights = format;
        OK(qwen_pack(argv[1], QWEN_NUL, other, QWEN_NUL, &packing, NULL, NULL, &made));
        OK(qwen_pack_verify(other, QWEN_NUL, NULL, NULL));
        OK(qwen_model_open(argv[1], QWEN_NUL, &opening, &model));
        int32_t quantized = answer(model);
        qwen_model_free(model);
        OK(qwen_model_open(other, QWEN_NUL, NULL, &model));
        CHECK(answer(model) == quantized);
        OK(qwen_model_get_info(model, &info));
        CHECK(info.weights == format && info.compute == QWEN_COMPUTE_FAST);
        CHECK(info.weight_bytes == made.weight_bytes);
        qwen_model_free(model);
        OK(qwen_model_estimate(argv[1], QWEN_NUL, &opening, 10, &folder_cost));
        OK(qwen_model_estimate(other, QWEN_NUL, NULL, 10, &file_cost));
        CHECK(file_cost.weight_bytes == made.weight_bytes);
        CHECK(folder_cost.weight_bytes == made.weight_bytes && folder_cost.mapped_bytes == 0);
        opening.weights = format == QWEN_WEIGHTS_INT8 ? QWEN_WEIGHTS_INT4 : QWEN_WEIGHTS_INT8;
        EXPECT(QWEN_ERROR_UNSUPPORTED, qwen_model_open(other, QWEN_NUL, &opening, &model));
        SAYS("is asked for");
    }

    /* A file that is damaged in its last weight opens; the check of everything finds it. */
    contents bad = read_file(path);
    size_t table = 0;
    for (int i = 7; i >= 0; i--) {
        table = table << 8 | (unsigned char)bad.bytes[24 + i];
    }
    bad.bytes[table - 64] ^= 1;
    write_file(other, bad.bytes, bad.size);
    EXPECT(QWEN_ERROR_FORMAT, qwen_pack_verify(other, QWEN_NUL, NULL, NULL));
    SAYS("other.qwen");
    bad.bytes[8] = 99;
    write_file(other, bad.bytes, bad.size);
    EXPECT(QWEN_ERROR_UNSUPPORTED, qwen_model_open(other, QWEN_NUL, NULL, &model));
    SAYS("version 99");
    free(bad.bytes);

    /* The tokenizer alone. */
    qwen_model_options options = QWEN_MODEL_OPTIONS_INIT;
    options.flags = QWEN_MODEL_TOKENIZER_ONLY;
    OK(qwen_model_open(path, QWEN_NUL, &options, &model));
    OK(qwen_model_get_info(model, &info));
    CHECK(info.has_weights == 0 && info.has_chat_template == 1);
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_model_warm_up(model, NULL, NULL));
    qwen_model_free(model);

    from_memory(&file, expected);
    from_reader(&file, expected);
    costs_of_packed(path, &file);
    costs_and_warming(path);
    costs_and_warming(argv[1]);
    told(path);
    free(file.bytes);
    return 0;
}
