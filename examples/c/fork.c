/* Many characters from one system prompt, which is computed once: fork MODEL */
#include <stdio.h>

#include "qwen35.h"

static const char *const questions[] = {
    "What is the capital of France?",
    "What is the capital of Italy?",
    "What is the capital of Spain?",
};

/* Says what a character answers; the session is this character's own. */
static qwen_status answer(const qwen_model *model, qwen_session *session, const char *question) {
    char chat[1024], text[512];
    int32_t tokens[60], token;
    size_t count = 0, total, computed, needed;
    qwen_status status;

    snprintf(chat, sizeof chat,
             "{\"messages\": [{\"role\": \"system\", \"content\": \"You are a helpful guide.\"},"
             " {\"role\": \"user\", \"content\": \"%s\"}], \"enable_thinking\": false}",
             question);
    status = qwen_session_feed_chat(session, chat, QWEN_NUL, 0, &total, &computed);
    while (status == QWEN_OK && count < 60) {
        status = qwen_session_next_token(session, &token);
        if (status == QWEN_OK) tokens[count++] = token;
    }
    if (status >= 0)
        status = qwen_detokenize(model, tokens, count, 0, text, sizeof text, &needed);
    if (status >= 0) {
        printf("%.*s\n", (int)needed, text);
        fprintf(stderr, "[%zu of %zu tokens computed]\n", computed, total);
    }
    return status;
}

int main(int argc, char **argv) {
    /* Without a prompt for the answer: the beginning that all share. */
    const char *shared = "{\"messages\": [{\"role\": \"system\", \"content\": \"You are a helpful "
                         "guide.\"}, {\"role\": \"user\", \"content\": \"\"}],"
                         " \"enable_thinking\": false, \"add_generation_prompt\": false}";
    qwen_model *model = NULL;
    qwen_session *first = NULL;
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    int32_t tokens[512];
    size_t count = 0;
    qwen_status status;

    if (argc != 2) {
        fprintf(stderr, "usage: fork MODEL\n");
        return 2;
    }
    sampling.preset = QWEN_PRESET_GREEDY;
    options.sampling = &sampling;
    status = qwen_model_open(argv[1], QWEN_NUL, NULL, &model);
    if (status >= 0) status = qwen_session_new(model, &options, &first);
    if (status >= 0)
        status = qwen_chat_tokenize(model, shared, QWEN_NUL, 0, tokens, 512, &count);
    /* Up to the user's text: the template closes the message with two tokens. */
    if (status >= 0) status = qwen_session_feed(first, tokens, count > 2 ? count - 2 : count);
    for (int i = 0; i < 3 && status >= 0; i++) {
        qwen_session *character = NULL;
        status = qwen_session_fork(first, &character); /* shares what is computed */
        if (status >= 0) status = answer(model, character, questions[i]);
        qwen_session_free(character);
    }
    if (status < 0) {
        fprintf(stderr, "fork: %s\n", qwen_last_error());
        return 1;
    }
    qwen_session_free(first);
    qwen_model_free(model);
    return 0;
}
