/* A model that calls functions of the program: it asks for the weather or a timer, the program
 * answers, and the model says it in its own words.
 *
 *     tools [MODEL [QUESTION]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

static const char offered[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"get_weather\","
    "  \"description\": \"Get the weather in a city.\","
    "  \"parameters\": {\"type\": \"object\", \"properties\": {\"city\": {\"type\": \"string\"}},"
    "  \"required\": [\"city\"]}}},"
    " {\"type\": \"function\", \"function\": {\"name\": \"set_timer\","
    "  \"description\": \"Set a timer.\","
    "  \"parameters\": {\"type\": \"object\", \"properties\": {\"minutes\": {\"type\": \"integer\"}},"
    "  \"required\": [\"minutes\"]}}}]";

/* What the functions of this program give back. A real one would read piece->arguments with its
 * JSON library. */
static const char *carry_out(const qwen_piece *piece) {
    if (piece->is_whole == 0 || piece->problem_length > 0) {
        return "{\"error\": \"this call is not valid\"}"; /* the model may try again */
    }
    if (strcmp(piece->name, "get_weather") == 0) {
        return "{\"temperature\": 21, \"condition\": \"sunny\"}";
    }
    return "{\"status\": \"ok\"}";
}

int main(int argc, char **argv) {
    const char *question = argc > 2 ? argv[2] : "What is the weather in Paris?";
    qwen_session *session = NULL;
    qwen_conversation *talk = NULL;
    qwen_piece piece = QWEN_PIECE_INIT;
    qwen_status status;
    host_name = "tools";

    qwen_model *model = host_open(argc > 1 ? argv[1] : host_default_model(), NULL);
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options session_options = QWEN_SESSION_OPTIONS_INIT;
    sampling.preset = QWEN_PRESET_GREEDY;
    session_options.sampling = &sampling;
    host_check(qwen_session_new(model, &session_options, &session), "make a session");
    qwen_conversation_options options = QWEN_CONVERSATION_OPTIONS_INIT;
    options.tools = offered;
    options.thinking = QWEN_THINKING_OFF;
    options.max_tokens = 200;
    host_check(qwen_conversation_new(session, &options, &talk), "make a conversation");

    host_check(qwen_conversation_add_text(talk, "user", QWEN_NUL, question, QWEN_NUL), "ask");
    for (int round = 0; round < 5; round++) {
        /* Sends what was added: the question first, then the results of the calls. */
        host_check(qwen_conversation_send(talk, NULL, 0, NULL, NULL), "send");
        /* Results are added when the reply has ended: a message would end it. */
        struct {
            char id[32];
            const char *result;
        } results[8];
        size_t calls = 0;
        while ((status = qwen_conversation_next(talk, &piece)) == QWEN_OK) {
            if (piece.kind == QWEN_PIECE_TEXT) {
                fwrite(piece.text, 1, piece.text_length, stdout);
                fflush(stdout);
            } else if (piece.kind == QWEN_PIECE_TOOL_CALL && calls < 8) {
                results[calls].result = carry_out(&piece);
                snprintf(results[calls].id, sizeof results[calls].id, "%s", piece.id);
                fprintf(stderr, "[%s %s -> %s]\n", piece.name, piece.arguments,
                        results[calls].result);
                calls++;
            }
        }
        host_check(status, "answer");
        if (piece.finish != QWEN_FINISH_TOOL_CALLS) {
            break;
        }
        for (size_t i = 0; i < calls; i++) {
            host_check(qwen_conversation_add_tool_result(talk, results[i].id, QWEN_NUL,
                                                         results[i].result, QWEN_NUL),
                       "give the result");
        }
    }
    puts("");
    qwen_conversation_free(talk);
    qwen_session_free(session);
    qwen_model_free(model);
    return 0;
}
