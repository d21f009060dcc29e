/* The smallest program that talks: a question in, the answer as it is made. */
#include <stdio.h>
#include "qwen35.h"

int main(int argc, char **argv) {
    qwen_model *model = NULL;
    qwen_session *session = NULL;
    qwen_conversation *chat = NULL;
    qwen_piece piece = QWEN_PIECE_INIT;
    if (argc != 2 || qwen_model_open(argv[1], QWEN_NUL, NULL, &model) != QWEN_OK ||
        qwen_session_new(model, NULL, &session) != QWEN_OK ||
        qwen_conversation_new(session, NULL, &chat) != QWEN_OK ||
        qwen_conversation_send_text(chat, "Hello! Who are you?", QWEN_NUL, NULL, NULL) != QWEN_OK) {
        fprintf(stderr, "error: %s\n", argc == 2 ? qwen_last_error() : "usage: hello MODEL");
        return 1;
    }
    while (qwen_conversation_next(chat, &piece) == QWEN_OK) {
        fwrite(piece.text, 1, piece.text_length, stdout);
        fflush(stdout);
    }
    puts("");
    qwen_conversation_free(chat);
    qwen_session_free(session);
    qwen_model_free(model);
    return 0;
}
