/* A conversation of two turns, its answers shown while they are made: stream MODEL */
#include <stdio.h>
#include <string.h>

#include "qwen35.h"

static qwen_model *model;
static qwen_session *session;
static qwen_stream_decoder *decoder;

/* Shows the answer to a conversation; 0 on success. `answer` gets its text as well. */
static int show(const char *chat, char *answer, size_t room) {
    const char *piece;
    size_t length, used = 0, total, computed;
    int32_t token;
    qwen_status status;

    if (qwen_session_feed_chat(session, chat, QWEN_NUL, 0, &total, &computed) < 0) return -1;
    for (int i = 0; i < 60; i++) {
        status = qwen_session_next_token(session, &token);
        if (status < 0) return -1;
        if (status != QWEN_OK) break; /* QWEN_END_OF_TURN, or the context is full */
        /* Whole characters only: the decoder holds the bytes of unfinished ones back. */
        if (qwen_stream_decoder_push(decoder, token, &piece, &length) < 0) return -1;
        fwrite(piece, 1, length, stdout);
        fflush(stdout);
        if (used + length < room) memcpy(answer + used, piece, length), used += length;
    }
    answer[used] = '\0';
    if (qwen_stream_decoder_finish(decoder, &piece, &length) < 0) return -1;
    printf("%.*s\n", (int)length, piece);
    fprintf(stderr, "[%zu of %zu prompt tokens computed]\n", computed, total);
    return 0;
}

int main(int argc, char **argv) {
    /* Real programs build the JSON with a library, which also escapes what users write. */
    const char *first = "{\"role\": \"user\", \"content\": \"My name is Ada.\"}";
    char chat[2048], answer[1024];
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;

    if (argc != 2) {
        fprintf(stderr, "usage: stream MODEL\n");
        return 2;
    }
    sampling.set = QWEN_SET_SEED; /* the same answers each time */
    sampling.seed = 1;
    options.sampling = &sampling;
    if (qwen_model_open(argv[1], QWEN_NUL, NULL, &model) < 0 ||
        qwen_session_new(model, &options, &session) < 0 ||
        qwen_stream_decoder_new(model, QWEN_TEXT_SKIP_SPECIAL, &decoder) < 0)
        goto failed;
    snprintf(chat, sizeof chat, "{\"messages\": [%s], \"enable_thinking\": false}", first);
    if (show(chat, answer, sizeof answer) != 0) goto failed;
    for (char *c = answer; *c != '\0'; c++)
        if (*c == '"' || *c == '\\' || *c == '\n') *c = ' ';
    /* All messages so far: the session computes only what is new. */
    snprintf(chat, sizeof chat,
             "{\"messages\": [%s, {\"role\": \"assistant\", \"content\": \"%s\"}, "
             "{\"role\": \"user\", \"content\": \"What is my name?\"}], "
             "\"enable_thinking\": false}",
             first, answer);
    if (show(chat, answer, sizeof answer) != 0) goto failed;
    qwen_stream_decoder_free(decoder);
    qwen_session_free(session);
    qwen_model_free(model);
    return 0;
failed:
    fprintf(stderr, "stream: %s\n", qwen_last_error());
    return 1;
}
