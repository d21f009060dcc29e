/* The smallest program that talks: a question in, the answer as it is made. */
#include <stdio.h>
#include "qwen35.h"

int main(int argc, char **argv) {
    const char *chat = "[{\"role\": \"user\", \"content\": \"Hello! Who are you?\"}]", *text;
    qwen_model *model = NULL;
    qwen_session *session = NULL;
    qwen_stream_decoder *decoder = NULL;
    int32_t token;
    size_t length;
    if (argc != 2 || qwen_model_open(argv[1], QWEN_NUL, NULL, &model) != QWEN_OK ||
        qwen_session_new(model, NULL, &session) != QWEN_OK ||
        qwen_stream_decoder_new(model, QWEN_TEXT_SKIP_SPECIAL, &decoder) != QWEN_OK ||
        qwen_session_feed_chat(session, chat, QWEN_NUL, 0, NULL, NULL) != QWEN_OK) {
        fprintf(stderr, "error: %s\n", argc == 2 ? qwen_last_error() : "usage: hello MODEL");
        return 1;
    }
    for (int i = 0; i < 100 && qwen_session_next_token(session, &token) == QWEN_OK; i++) {
        qwen_stream_decoder_push(decoder, token, &text, &length);
        fwrite(text, 1, length, stdout);
        fflush(stdout);
    }
    qwen_stream_decoder_free(decoder);
    qwen_session_free(session);
    qwen_model_free(model);
    puts("");
    return 0;
}
