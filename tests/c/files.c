/* A checkpoint folder that the host reads. Arguments: the toy model. */
#include "check.h"

typedef struct {
    const char *folder;
    const char *missing;  /* the file that is not there, or NULL */
    const char *broken;   /* the file that cannot be opened, or NULL */
    int fail_at;          /* the read that fails, or 0 */
    int opened, closed, reads;
} disk;

static int32_t open_file(const char *name, size_t length, void **file, uint64_t *size,
                         void *user) {
    disk *d = user;
    char path[4096];
    CHECK(strlen(name) == length && length > 0);
    if (d->missing != NULL && strcmp(name, d->missing) == 0) {
        return QWEN_FILE_MISSING;
    }
    if (d->broken != NULL && strcmp(name, d->broken) == 0) {
        return 7;
    }
    snprintf(path, sizeof path, "%s/%s", d->folder, name);
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        return QWEN_FILE_MISSING;
    }
    CHECK(fseek(stream, 0, SEEK_END) == 0);
    *size = (uint64_t)ftell(stream);
    *file = stream;
    d->opened++;
    return 0;
}

static int32_t read_file(void *file, uint64_t offset, void *buffer, size_t length, void *user) {
    disk *d = user;
    if (++d->reads == d->fail_at) {
        return 42;
    }
    CHECK(length > 0 && length <= 8 << 20);
    CHECK(fseek(file, (long)offset, SEEK_SET) == 0);
    return fread(buffer, 1, length, file) == length ? 0 : 43;
}

static void close_file(void *file, void *user) {
    ((disk *)user)->closed++;
    fclose(file);
}

static uint64_t last_done, last_total;
static int calls;

static int32_t watch(uint64_t done, uint64_t total, void *user) {
    CHECK(done <= total && done >= last_done && total > 0);
    last_done = done;
    last_total = total;
    return ++calls == *(int *)user;
}

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

int main(int argc, char **argv) {
    qwen_file_callbacks files = QWEN_FILE_CALLBACKS_INIT;
    qwen_model_options options = QWEN_MODEL_OPTIONS_INIT;
    qwen_model_info info = QWEN_MODEL_INFO_INIT, other = QWEN_MODEL_INFO_INIT;
    qwen_model *model = NULL;
    CHECK(argc == 2);
    files.open = open_file;
    files.read = read_file;
    files.close = close_file;
    OK(qwen_model_open(argv[1], QWEN_NUL, NULL, &model));
    OK(qwen_model_get_info(model, &info));
    int32_t expected = answer(model);
    qwen_model_free(model);

    disk d = {argv[1], NULL, NULL, 0, 0, 0, 0};
    OK(qwen_model_open_files(&files, &d, NULL, &model));
    CHECK(d.opened == d.closed && d.opened >= 5);
    CHECK(answer(model) == expected);
    OK(qwen_model_get_info(model, &other));
    CHECK(other.weight_bytes == info.weight_bytes && other.has_chat_template == 1);
    qwen_model_free(model);

    /* What it costs: headers are read, and nothing is mapped. */
    qwen_model_cost cost = QWEN_MODEL_COST_INIT, same = QWEN_MODEL_COST_INIT;
    disk asked = {argv[1], NULL, NULL, 0, 0, 0, 0};
    OK(qwen_model_estimate(argv[1], QWEN_NUL, NULL, 100, &cost));
    OK(qwen_model_estimate_files(&files, &asked, NULL, 100, &same));
    CHECK(asked.opened == asked.closed && asked.reads < d.reads);
    CHECK(same.mapped_bytes == 0 && cost.mapped_bytes == cost.weight_bytes);
    same.mapped_bytes = cost.mapped_bytes;
    CHECK(memcmp(&same, &cost, sizeof cost) == 0);
    int reads = asked.reads;
    for (int fail = 1; fail <= reads; fail++) {
        disk failing = {argv[1], NULL, NULL, fail, 0, 0, 0};
        EXPECT(QWEN_ERROR_IO, qwen_model_estimate_files(&files, &failing, NULL, 100, &same));
        CHECK(failing.reads == fail && failing.opened == failing.closed);
    }
    INVALID(qwen_model_estimate_files(NULL, &asked, NULL, 100, &same));
    INVALID(qwen_model_estimate_files(&files, &asked, NULL, 100, NULL));

    /* A read that fails, wherever: an error that names the file, and all is closed. */
    int all = d.reads;
    for (int fail = 1; fail <= all; fail += fail < 20 ? 1 : 17) {
        disk failing = {argv[1], NULL, NULL, fail, 0, 0, 0};
        EXPECT(QWEN_ERROR_IO, qwen_model_open_files(&files, &failing, NULL, &model));
        SAYS("42");
        CHECK(model == NULL && failing.reads == fail && failing.opened == failing.closed);
    }
    const char *needed[] = {"config.json", "tokenizer.json", "model.safetensors"};
    for (size_t i = 0; i < 3; i++) {
        disk without = {argv[1], needed[i], NULL, 0, 0, 0, 0};
        EXPECT(QWEN_ERROR_IO, qwen_model_open_files(&files, &without, NULL, &model));
        SAYS(needed[i]);
        disk broken = {argv[1], NULL, needed[i], 0, 0, 0, 0};
        EXPECT(QWEN_ERROR_IO, qwen_model_open_files(&files, &broken, NULL, &model));
        SAYS(needed[i]);
        SAYS("7");
        CHECK(without.opened == without.closed && broken.opened == broken.closed);
    }
    disk no_template = {argv[1], "chat_template.jinja", NULL, 0, 0, 0, 0};
    OK(qwen_model_open_files(&files, &no_template, NULL, &model));
    OK(qwen_model_get_info(model, &other));
    CHECK(other.has_chat_template == 0);
    qwen_model_free(model);

    /* Progress, and a cancel at each of its calls. */
    int never = 0;
    options.progress = watch;
    options.user = &never;
    calls = 0;
    last_done = 0;
    OK(qwen_model_open_files(&files, &d, &options, &model));
    CHECK(last_done == last_total && calls > 10);
    qwen_model_free(model);
    int most = calls;
    for (int stop = 1; stop <= most; stop += stop < 10 ? 1 : 13) {
        disk cancelled = {argv[1], NULL, NULL, 0, 0, 0, 0};
        options.user = &stop;
        calls = 0;
        last_done = 0;
        qwen_status status = qwen_model_open_files(&files, &cancelled, &options, &model);
        if (status == QWEN_OK && calls < stop) {
            /* While the tokenizer is waited for, time decides how often it is called. */
            qwen_model_free(model);
            break;
        }
        EXPECT(QWEN_CANCELLED, status);
        CHECK(model == NULL && cancelled.opened == cancelled.closed && calls == stop);
    }

    /* The tokenizer alone asks for no weights. */
    options.progress = NULL;
    options.flags = QWEN_MODEL_TOKENIZER_ONLY;
    disk light = {argv[1], "model.safetensors", NULL, 0, 0, 0, 0};
    OK(qwen_model_open_files(&files, &light, &options, &model));
    qwen_model_free(model);

    /* Arguments. */
    INVALID(qwen_model_open_files(NULL, &d, NULL, &model));
    INVALID(qwen_model_open_files(&files, &d, NULL, NULL));
    files.flags = 1;
    INVALID(qwen_model_open_files(&files, &d, NULL, &model));
    files.flags = 0;
    files.struct_size = 8;
    INVALID(qwen_model_open_files(&files, &d, NULL, &model));
    files.struct_size = sizeof files;
    files.read = NULL;
    INVALID(qwen_model_open_files(&files, &d, NULL, &model));
    files.read = read_file;
    files.open = NULL;
    INVALID(qwen_model_open_files(&files, &d, NULL, &model));
    return 0;
}
