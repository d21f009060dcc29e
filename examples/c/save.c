/* Saves a session to a file, and goes on from the file as if nothing had happened:
 * save MODEL FILE */
#include <stdio.h>
#include <string.h>

#include "qwen35.h"

/* Six tokens more. */
static qwen_status go_on(qwen_session *session, int32_t tokens[6]) {
    qwen_status status = QWEN_OK;
    for (int i = 0; i < 6 && status >= 0; i++) status = qwen_session_next_token(session, &tokens[i]);
    return status;
}

int main(int argc, char **argv) {
    const char *file = argv[argc - 1];
    qwen_model *model = NULL;
    qwen_session *before = NULL, *after = NULL;
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    int32_t straight[6], resumed[6];
    size_t position = 0;
    qwen_status status;

    if (argc != 3) {
        fprintf(stderr, "usage: save MODEL FILE\n");
        return 2;
    }
    sampling.set = QWEN_SET_SEED;
    sampling.seed = 7; /* the random stream is saved too */
    options.sampling = &sampling;
    status = qwen_model_open(argv[1], QWEN_NUL, NULL, &model);
    if (status >= 0) status = qwen_session_new(model, &options, &before);
    if (status >= 0) status = qwen_session_feed_text(before, "Once upon a time", QWEN_NUL, 0);
    if (status >= 0) status = qwen_session_save_file(before, file, QWEN_NUL, 0);
    if (status >= 0) status = go_on(before, straight);
    /* In another process, or another day: only the model must be the same. */
    if (status >= 0) status = qwen_session_new(model, NULL, &after);
    if (status >= 0) status = qwen_session_restore_file(after, file, QWEN_NUL);
    if (status >= 0) status = qwen_session_position(after, &position);
    if (status >= 0) status = go_on(after, resumed);
    if (status < 0) {
        fprintf(stderr, "save: %s\n", qwen_last_error());
        return 1;
    }
    printf("resumed at token %zu: %s\n", position,
           memcmp(straight, resumed, sizeof straight) == 0 ? "the same tokens" : "other tokens");
    qwen_session_free(before);
    qwen_session_free(after);
    qwen_model_free(model);
    return 0;
}
