/* Handles used wrongly: always a status. Arguments: the toy model, a folder to make models in. */
#include <sys/stat.h>

#include "check.h"

#define STALE(call)                                                                            \
    do {                                                                                       \
        EXPECT(QWEN_ERROR_INVALID_HANDLE, call);                                               \
        SAYS("handle");                                                                        \
    } while (0)

int main(int argc, char **argv) {
    qwen_model *model = NULL, *other = NULL;
    qwen_session *session = NULL;
    qwen_stream_decoder *decoder = NULL;
    const char *text;
    size_t number;
    int32_t token = 1, ids[] = {1, 2, 3};
    CHECK(argc == 3);

    qwen_model_free(NULL);
    qwen_session_free(NULL);
    qwen_stream_decoder_free(NULL);

    /* Sessions and decoders keep the model open. */
    OK(qwen_model_open(argv[1], QWEN_NUL, NULL, &model));
    OK(qwen_session_new(model, NULL, &session));
    OK(qwen_stream_decoder_new(model, 0, &decoder));
    qwen_model_free(model);
    OK(qwen_session_feed(session, ids, 3));
    CHECK(qwen_session_next_token(session, &token) >= 0);
    OK(qwen_stream_decoder_push(decoder, token, &text, &number));
    qwen_session_free(session);

    /* Freed once; used, and freed again, afterwards. */
    STALE(qwen_tokenize(model, "a", 1, 0, NULL, 0, &number));
    STALE(qwen_session_new(model, NULL, &session));
    CHECK(session == NULL);
    qwen_model_free(model);
    OK(qwen_model_open(argv[1], QWEN_NUL, NULL, &other));
    CHECK(other != model);
    STALE(qwen_tokenize(model, "a", 1, 0, NULL, 0, &number));
    OK(qwen_session_new(other, NULL, &session));

    /* Of another kind. */
    STALE(qwen_session_feed((qwen_session *)other, ids, 3));
    STALE(qwen_session_cancel((qwen_session *)decoder));
    STALE(qwen_tokenize((qwen_model *)session, "a", 1, 0, NULL, 0, &number));
    STALE(qwen_stream_decoder_push((qwen_stream_decoder *)session, 1, &text, &number));
    qwen_model_free((qwen_model *)session);
    qwen_session_free((qwen_session *)other);
    OK(qwen_session_feed(session, ids, 3));
    static uint64_t nonsense[32];
    STALE(qwen_session_reset((qwen_session *)nonsense));
    STALE(qwen_session_reset((qwen_session *)((char *)nonsense + 1)));

    qwen_session_free(session);
    STALE(qwen_session_feed(session, ids, 3));
    STALE(qwen_session_position(session, &number));
    STALE(qwen_session_cancel(session));
    qwen_session_free(session);
    qwen_stream_decoder_free(decoder);
    STALE(qwen_stream_decoder_finish(decoder, &text, &number));
    qwen_stream_decoder_free(decoder);
    qwen_model_free(other);

    /* Options that cannot be. */
    qwen_model_options options = QWEN_MODEL_OPTIONS_INIT;
    options.struct_size = 3;
    INVALID(qwen_model_open(argv[1], QWEN_NUL, &options, &model));
    SAYS("struct_size");
    CHECK(model == NULL);
    options.struct_size = 0xCCCCCCCC;
    INVALID(qwen_model_open(argv[1], QWEN_NUL, &options, &model));
    options.struct_size = sizeof options;
    options.isa = 99;
    INVALID(qwen_model_open(argv[1], QWEN_NUL, &options, &model));
    SAYS("isa");
    options.isa = QWEN_ISA_AUTO;
    options.flags = 0x80;
    INVALID(qwen_model_open(argv[1], QWEN_NUL, &options, &model));
    options.flags = 0;
    options.threads = 1000000000;
    INVALID(qwen_model_open(argv[1], QWEN_NUL, &options, &model));
    SAYS("threads");
    struct {
        qwen_model_options known;
        uint64_t unknown;
    } newer = {QWEN_MODEL_OPTIONS_INIT, 0};
    newer.known.struct_size = sizeof newer;
    OK(qwen_model_open(argv[1], QWEN_NUL, &newer.known, &model));
    qwen_model_free(model);
    newer.unknown = 1;
    EXPECT(QWEN_ERROR_UNSUPPORTED, qwen_model_open(argv[1], QWEN_NUL, &newer.known, &model));

    /* Paths that are none, and paths of any bytes. */
    INVALID(qwen_model_open("", 0, NULL, &model));
    INVALID(qwen_model_open("a\0b", 3, NULL, &model));
    EXPECT(QWEN_ERROR_IO, qwen_model_open("/no/such/model", QWEN_NUL, NULL, &model));
    SAYS("/no/such/model");
    EXPECT(QWEN_ERROR_IO, qwen_model_open("/no/\xFF\xFE", QWEN_NUL, NULL, &model));
    EXPECT(QWEN_ERROR_IO, qwen_model_open(argv[2], QWEN_NUL, NULL, &model));
    char path[4096];
    snprintf(path, sizeof path, "%s/ \xFF\xFE\n\xC3\xA9 %%20", argv[2]);
    CHECK(mkdir(path, 0777) == 0);
    snprintf(path, sizeof path, "cp '%s'/* '%s/ \xFF\xFE\n\xC3\xA9 %%20'", argv[1], argv[2]);
    CHECK(system(path) == 0);
    snprintf(path, sizeof path, "%s/./ \xFF\xFE\n\xC3\xA9 %%20/", argv[2]);
    OK(qwen_model_open(path, QWEN_NUL, NULL, &model));
    qwen_model_free(model);
    return 0;
}
