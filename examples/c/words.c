/* An answer without certain words: words MODEL QUESTION WORD... */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "qwen35.h"

enum { TAIL = 16 }; /* tokens looked back at: more than a word has */

static qwen_model *model;

static struct {
    char **words;
    int count;
} banned;

/* Whether `text` holds the word, or can be its end behind `before`. */
static int completes(const char *word, const char *before, size_t length, const char *text,
                     size_t size) {
    size_t letters = strlen(word);
    for (size_t i = 0; i + letters <= size; i++) {
        if (memcmp(text + i, word, letters) == 0) return 1;
    }
    for (size_t had = 1; had < letters && had <= length; had++) {
        size_t rest = letters - had;
        if (rest <= size && memcmp(before + length - had, word, had) == 0 &&
            memcmp(text, word + had, rest) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Called before each choice: no token may be chosen that completes a word. For a large
 * vocabulary, look at each token once beforehand and keep those that a word can end in. */
static int32_t forbid(float *logits, size_t count, const int32_t *tokens, size_t token_count,
                      void *user) {
    char before[1024];
    const char *text;
    size_t length = 0, size, start = token_count > TAIL ? token_count - TAIL : 0;
    (void)user;
    if (qwen_detokenize(model, tokens + start, token_count - start, QWEN_TEXT_SKIP_SPECIAL, before,
                        sizeof before, &length) < 0)
        return 1; /* cancels */
    for (size_t token = 0; token < count; token++) {
        if (qwen_token_bytes(model, (int32_t)token, &text, &size) < 0) return 1;
        for (int i = 0; i < banned.count; i++) {
            if (completes(banned.words[i], before, length, text, size)) logits[token] = -INFINITY;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    qwen_session *session = NULL;
    qwen_conversation *talk = NULL;
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options session_options = QWEN_SESSION_OPTIONS_INIT;
    qwen_conversation_options options = QWEN_CONVERSATION_OPTIONS_INIT;
    qwen_piece piece = QWEN_PIECE_INIT;
    qwen_status status;

    if (argc < 4) {
        fprintf(stderr, "usage: words MODEL QUESTION WORD...\n");
        return 2;
    }
    banned.words = argv + 3;
    banned.count = argc - 3;
    sampling.preset = QWEN_PRESET_GREEDY;
    session_options.sampling = &sampling;
    options.thinking = QWEN_THINKING_OFF;
    options.max_tokens = 60;
    if (qwen_model_open(argv[1], QWEN_NUL, NULL, &model) < 0 ||
        qwen_session_new(model, &session_options, &session) < 0 ||
        qwen_session_set_logits_callback(session, forbid, NULL) < 0 ||
        qwen_conversation_new(session, &options, &talk) < 0 ||
        qwen_conversation_send_text(talk, argv[2], QWEN_NUL, NULL, NULL) < 0)
        goto failed;
    while ((status = qwen_conversation_next(talk, &piece)) == QWEN_OK) {
        fwrite(piece.text, 1, piece.text_length, stdout);
        fflush(stdout);
    }
    if (status < 0) goto failed;
    printf("\n");
    qwen_conversation_free(talk);
    qwen_session_free(session);
    qwen_model_free(model);
    return 0;
failed:
    fprintf(stderr, "words: %s\n", qwen_last_error());
    return 1;
}
