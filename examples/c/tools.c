/* A model that calls functions of the program: tools MODEL [QUESTION] */
#include <stdio.h>
#include <string.h>

#include "qwen35.h"

static const char offered[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\","
    "  \"description\": \"Get the weather in a city.\","
    "  \"parameters\": {\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\"}},"
    "  \"required\": [\"city\"]}}},"
    " {\"type\": \"function\", \"function\": {\"name\": \"set_timer\","
    "  \"description\": \"Set a timer.\","
    "  \"parameters\": {\"type\": \"object\", \"properties\": {\"minutes\": {\"type\": \"integer\"}},"
    "  \"required\": [\"minutes\"]}}}]";

/* What the program's functions give back. A real one reads `arguments` with its JSON library:
 * numbers and booleans are what the schema says. */
static const char *carry_out(const qwen_piece *call) {
    /* Not whole: cut by a limit. A problem: an unknown tool, a parameter that does not fit. */
    if (!call->is_whole || call->problem_length > 0) return "{\"error\": \"not a valid call\"}";
    if (strcmp(call->name, "get_weather") == 0) {
        return "{\"temperature\": 21, \"condition\": \"sunny\"}";
    }
    return "{\"status\": \"ok\"}";
}

/* Shows a reply; the results of its calls, if it has any, go into `results`. */
static qwen_status show(qwen_conversation *talk, qwen_piece *piece, const char **results,
                        size_t *calls) {
    qwen_status status;
    *calls = 0;
    while ((status = qwen_conversation_next(talk, piece)) == QWEN_OK) {
        if (piece->kind == QWEN_PIECE_TEXT) {
            fwrite(piece->text, 1, piece->text_length, stdout);
            fflush(stdout);
        } else if (piece->kind == QWEN_PIECE_TOOL_CALL && *calls < 8) {
            results[*calls] = carry_out(piece);
            printf("[%s %s: %s]\n", piece->name, piece->arguments, results[*calls]);
            ++*calls;
        }
    }
    return status;
}

int main(int argc, char **argv) {
    const char *question = argc > 2 ? argv[2] : "What is the weather in Paris?", *results[8];
    qwen_model *model = NULL;
    qwen_session *session = NULL;
    qwen_conversation *talk = NULL;
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options session_options = QWEN_SESSION_OPTIONS_INIT;
    qwen_conversation_options options = QWEN_CONVERSATION_OPTIONS_INIT;
    qwen_piece piece = QWEN_PIECE_INIT;
    size_t calls;

    if (argc < 2) {
        fprintf(stderr, "usage: tools MODEL [QUESTION]\n");
        return 2;
    }
    sampling.preset = QWEN_PRESET_GREEDY;
    session_options.sampling = &sampling;
    options.tools = offered;
    options.thinking = QWEN_THINKING_OFF;
    options.max_tokens = 200;
    if (qwen_model_open(argv[1], QWEN_NUL, NULL, &model) < 0 ||
        qwen_session_new(model, &session_options, &session) < 0 ||
        qwen_conversation_new(session, &options, &talk) < 0 ||
        qwen_conversation_add_text(talk, "user", QWEN_NUL, question, QWEN_NUL) < 0)
        goto failed;
    /* The question first, then the results, until the model needs no more of them. */
    for (int round = 0; round < 5; round++) {
        if (qwen_conversation_send(talk, NULL, 0, NULL, NULL) < 0 ||
            show(talk, &piece, results, &calls) < 0)
            goto failed;
        if (piece.finish != QWEN_FINISH_TOOL_CALLS) break;
        /* In the order of the calls; when all are there, the next round sends them. */
        for (size_t i = 0; i < calls; i++) {
            if (qwen_conversation_add_tool_result(talk, NULL, 0, results[i], QWEN_NUL) < 0)
                goto failed;
        }
    }
    printf("\n");
    qwen_conversation_free(talk);
    qwen_session_free(session);
    qwen_model_free(model);
    return 0;
failed:
    fprintf(stderr, "tools: %s\n", qwen_last_error());
    return 1;
}
