/* A loop of frames, in which a character of a game answers while the game goes on. No frame
 * waits for the model; the worst one is printed: frame MODEL [MICROSECONDS_PER_FRAME] */
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

/* What the game shows of a reply; 0 when it has ended. */
static int show(const qwen_piece *piece) {
    switch (piece->kind) {
    case QWEN_PIECE_TEXT: /* whole characters: it can be drawn as it is */
        printf("%.*s", (int)piece->text_length, piece->text);
        return 1;
    case QWEN_PIECE_THINKING: /* a game shows that the character thinks, not what */
    case QWEN_PIECE_TOOL_CALL: /* there are none: no tools were offered */
        return 1;
    default:
        return 0;
    }
}

int main(int argc, char **argv) {
    long budget = argc > 2 ? atol(argv[2]) : 4000;
    qwen_model *model = NULL;
    qwen_session *session = NULL;
    qwen_conversation *talk = NULL;
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    qwen_conversation_options character = QWEN_CONVERSATION_OPTIONS_INIT;
    qwen_piece piece = QWEN_PIECE_INIT;
    size_t remaining = 0;
    double worst = 0;
    int frames = 0, reading = 0, talking = 1;
    qwen_status status;

    if (argc < 2 || argc > 3 || budget < 0) {
        fprintf(stderr, "usage: frame MODEL [MICROSECONDS_PER_FRAME]\n");
        return 2;
    }
    sampling.preset = QWEN_PRESET_GREEDY;
    options.sampling = &sampling;
    character.thinking = QWEN_THINKING_OFF;
    character.max_tokens = 100;
    status = qwen_model_open(argv[1], QWEN_NUL, NULL, &model);
    if (status >= 0) status = qwen_session_new(model, &options, &session);
    if (status >= 0) status = qwen_conversation_new(session, &character, &talk);
    /* The player has asked something. This computes nothing. */
    if (status >= 0)
        status = qwen_conversation_enqueue_text(talk, "What is the capital of France?", QWEN_NUL,
                                                NULL, &remaining);
    while (status >= 0 && talking && frames < 100000) {
        double start = now(), took;
        /* ... the rest of the frame: input, simulation, drawing ... */
        status = qwen_conversation_step(talk, (uint64_t)budget, &piece, &remaining);
        if (status >= 0 && status != QWEN_WORKING) talking = show(&piece);
        if (status == QWEN_WORKING && remaining > 1) reading++; /* a bar could show how far */
        took = now() - start;
        if (took > worst) worst = took;
        frames++;
    }
    if (status < 0) {
        fprintf(stderr, "frame: %s\n", qwen_last_error());
        return 1;
    }
    printf("\n");
    fprintf(stderr, "[%d frames, the worst took %.1f ms; %d of them read the question]\n", frames,
            worst, reading);
    qwen_conversation_free(talk);
    qwen_session_free(session);
    qwen_model_free(model);
    return 0;
}
