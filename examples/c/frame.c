/* A loop of frames that never waits for the model; its worst frame is printed:
 * frame MODEL [MICROSECONDS_PER_FRAME] */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "qwen35.h"

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

int main(int argc, char **argv) {
    const char *chat = "{\"messages\": [{\"role\": \"user\", \"content\": \"What is the capital of "
                       "France?\"}], \"enable_thinking\": false}";
    long budget = argc > 2 ? atol(argv[2]) : 4000;
    qwen_model *model = NULL;
    qwen_session *session = NULL;
    qwen_stream_decoder *decoder = NULL;
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    int32_t tokens[1024], token;
    size_t count = 0, length;
    const char *text;
    double worst = 0;
    int frames = 0;
    qwen_status status;

    if (argc < 2 || argc > 3 || budget < 0) {
        fprintf(stderr, "usage: frame MODEL [MICROSECONDS_PER_FRAME]\n");
        return 2;
    }
    sampling.preset = QWEN_PRESET_GREEDY;
    options.sampling = &sampling;
    status = qwen_model_open(argv[1], QWEN_NUL, NULL, &model);
    if (status >= 0) status = qwen_session_new(model, &options, &session);
    if (status >= 0)
        status = qwen_stream_decoder_new(model, QWEN_TEXT_SKIP_SPECIAL, &decoder);
    if (status >= 0)
        status = qwen_chat_tokenize(model, chat, QWEN_NUL, 0, tokens, 1024, &count);
    if (status >= 0) status = qwen_session_enqueue(session, tokens, count); /* at once */
    for (; status >= 0 && status != QWEN_END_OF_TURN && frames < 100000; frames++) {
        double start = now(), took;
        /* ... the rest of the frame: input, simulation, drawing ... */
        status = qwen_session_step(session, (uint64_t)budget, 0, &token, NULL);
        if (status == QWEN_OK &&
            (status = qwen_stream_decoder_push(decoder, token, &text, &length)) >= 0)
            printf("%.*s", (int)length, text);
        if (status == QWEN_LIMIT_REACHED) break;
        took = now() - start;
        if (took > worst) worst = took;
    }
    if (status < 0) {
        fprintf(stderr, "frame: %s\n", qwen_last_error());
        return 1;
    }
    printf("\n");
    fprintf(stderr, "[%d frames, the worst took %.1f ms]\n", frames, worst);
    qwen_stream_decoder_free(decoder);
    qwen_session_free(session);
    qwen_model_free(model);
    return 0;
}
