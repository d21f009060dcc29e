/* Completes a text: complete MODEL [TEXT [MOST_TOKENS]] */
#include <stdio.h>
#include <stdlib.h>

#include "qwen35.h"

static int fail(void) {
    fprintf(stderr, "complete: %s\n", qwen_last_error());
    return 1;
}

int main(int argc, char **argv) {
    const char *text = argc > 2 ? argv[2] : "The capital of France is";
    int most = argc > 3 ? atoi(argv[3]) : 16;
    qwen_model *model = NULL;
    qwen_session *session = NULL;
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    int32_t token, tokens[1024];
    size_t count = 0, needed;
    char *made;

    if (argc < 2 || argc > 4 || most < 1 || most > 1024) {
        fprintf(stderr, "usage: complete MODEL [TEXT [MOST_TOKENS]]\n");
        return 2;
    }
    sampling.preset = QWEN_PRESET_GREEDY;
    options.sampling = &sampling;
    if (qwen_model_open(argv[1], QWEN_NUL, NULL, &model) < 0 ||
        qwen_session_new(model, &options, &session) < 0 ||
        qwen_session_feed_text(session, text, QWEN_NUL, 0) < 0)
        return fail();
    while (count < (size_t)most) {
        qwen_status status = qwen_session_next_token(session, &token);
        if (status < 0) return fail();
        if (status != QWEN_OK) break; /* an end of turn, or the context is full */
        tokens[count++] = token;
    }
    /* Once for the size, once for the text. */
    if (qwen_detokenize(model, tokens, count, 0, NULL, 0, &needed) < 0) return fail();
    made = malloc(needed + 1);
    if (made == NULL || qwen_detokenize(model, tokens, count, 0, made, needed, &needed) < 0)
        return fail();
    printf("%s%.*s\n", text, (int)needed, made);
    free(made);
    qwen_session_free(session);
    qwen_model_free(model);
    return 0;
}
