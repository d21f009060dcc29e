/* Conversations through the C ABI. Arguments: the demo model, a folder to write in. Replies are
 * written by a logits callback that forces each token, so that what becomes of them is known. */
#include <math.h>

#include "check.h"

static qwen_model *model;

/* The tokens of the next reply; at their end the turn ends. */
static int32_t script[512], end_token;
static size_t script_length, script_next;

static int32_t write_script(float *logits, size_t count, const int32_t *tokens,
                            size_t token_count, void *user) {
    int32_t token = script_next < script_length ? script[script_next++] : end_token;
    CHECK(user == &script && token_count > 0 && tokens[token_count - 1] >= 0);
    for (size_t i = 0; i < count; i++) {
        logits[i] = (int32_t)i == token ? 0.0f : -INFINITY;
    }
    return 0;
}

static void reply_with(const char *text) {
    OK(qwen_tokenize(model, text, QWEN_NUL, QWEN_TEXT_ADDED_TOKENS, script, 512, &script_length));
    script_next = 0;
}

static qwen_session *make_session(void) {
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    qwen_session *session = NULL;
    sampling.preset = QWEN_PRESET_GREEDY;
    options.sampling = &sampling;
    OK(qwen_session_new(model, &options, &session));
    OK(qwen_session_set_logits_callback(session, write_script, &script));
    return session;
}

static char thoughts[4096], text[4096], call[4096];
static int calls;

static void append(char *to, const qwen_piece *piece) {
    CHECK(strlen(piece->text) == piece->text_length && piece->text_length > 0);
    CHECK(strlen(to) + piece->text_length < 4096);
    strcat(to, piece->text);
}

/* Reads a reply to its end; the last piece. */
static qwen_piece read_reply(qwen_conversation *talk, qwen_status expected) {
    qwen_piece piece = QWEN_PIECE_INIT, again = QWEN_PIECE_INIT;
    qwen_status status;
    thoughts[0] = text[0] = call[0] = '\0';
    calls = 0;
    while ((status = qwen_conversation_next(talk, &piece)) == QWEN_OK) {
        CHECK(piece.finish == QWEN_FINISH_NONE);
        switch (piece.kind) {
        case QWEN_PIECE_THINKING:
            append(thoughts, &piece);
            break;
        case QWEN_PIECE_TEXT:
            append(text, &piece);
            break;
        default:
            CHECK(piece.kind == QWEN_PIECE_TOOL_CALL);
            calls++;
            snprintf(call, sizeof call, "%s %s %s [%s] %u", piece.id, piece.name,
                     piece.arguments, piece.problem, piece.is_whole);
            CHECK(piece.text_length > 0);
        }
    }
    EXPECT(expected, status);
    CHECK(piece.kind == QWEN_PIECE_END && piece.name == NULL && piece.is_whole == 0);
    EXPECT(status, qwen_conversation_next(talk, &again));
    CHECK(again.finish == piece.finish && again.kind == QWEN_PIECE_END);
    return again; /* what it lends is what the last call lends */
}

static void get_history(const qwen_conversation *talk, char *json, size_t capacity) {
    size_t needed;
    OK(qwen_conversation_history(talk, NULL, 0, &needed));
    CHECK(needed < capacity);
    EXPECT(QWEN_ERROR_BUFFER_TOO_SMALL, qwen_conversation_history(talk, json, 3, &needed));
    OK(qwen_conversation_history(talk, json, capacity, &needed));
    json[needed] = '\0';
}

static void turns(void) {
    qwen_session *session = make_session();
    qwen_conversation *talk = NULL;
    qwen_conversation_options options = QWEN_CONVERSATION_OPTIONS_INIT;
    qwen_piece piece = QWEN_PIECE_INIT;
    size_t total, computed, before;
    char json[4096];
    options.system = "Be brief.";
    options.thinking = QWEN_THINKING_ON;
    OK(qwen_conversation_new(session, &options, &talk));
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_conversation_next(talk, &piece));
    CHECK(piece.kind == QWEN_PIECE_NONE && piece.text == NULL);
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_conversation_regenerate(talk, NULL, NULL));
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_conversation_resume(talk));

    reply_with("Hm.\n</think>\n\nHello \xF0\x9F\x98\x80!");
    OK(qwen_conversation_send_text(talk, "Hi", QWEN_NUL, &total, &computed));
    CHECK(total == computed && total > 10);
    piece = read_reply(talk, QWEN_END_OF_TURN);
    CHECK(piece.finish == QWEN_FINISH_END_OF_TURN);
    CHECK(strcmp(thoughts, "Hm.") == 0 && strcmp(text, "Hello \xF0\x9F\x98\x80!") == 0);

    /* The second turn costs what is new. */
    before = total;
    reply_with("</think>\n\nYes.");
    OK(qwen_conversation_send(talk, "{\"role\":\"user\",\"content\":\"Well?\"}", QWEN_NUL, &total,
                              &computed));
    CHECK(computed < total && computed <= total - before + 8);
    read_reply(talk, QWEN_END_OF_TURN);
    CHECK(strcmp(thoughts, "") == 0 && strcmp(text, "Yes.") == 0);

    /* Out and in. */
    get_history(talk, json, sizeof json);
    CHECK(strstr(json, "\"content\": \"Be brief.\"") && strstr(json, "\"Hm.\""));
    qwen_conversation *copy = NULL;
    OK(qwen_conversation_new(session, NULL, &copy));
    OK(qwen_conversation_set_history(copy, json, QWEN_NUL));
    char again[4096];
    get_history(copy, again, sizeof again);
    CHECK(strcmp(json, again) == 0);
    INVALID(qwen_conversation_set_history(copy, "[{]", QWEN_NUL));
    get_history(copy, again, sizeof again);
    CHECK(strcmp(json, again) == 0);

    /* Both use the session in turn; it outlives its handle. */
    qwen_session_free(session);
    EXPECT(QWEN_ERROR_INVALID_HANDLE, qwen_session_reset(session));
    reply_with("Again.");
    OK(qwen_conversation_undo(copy, &before));
    CHECK(before == 2);
    OK(qwen_conversation_send_text(copy, "Well?", 5, NULL, NULL));
    read_reply(copy, QWEN_END_OF_TURN);
    CHECK(strcmp(text, "Again.") == 0);
    reply_with("</think>\n\nOther.");
    OK(qwen_conversation_regenerate(talk, NULL, NULL));
    read_reply(talk, QWEN_END_OF_TURN);
    CHECK(strcmp(text, "Other.") == 0);

    /* Cancelled before it begins: nothing was said. */
    OK(qwen_conversation_cancel(talk));
    EXPECT(QWEN_CANCELLED, qwen_conversation_send_text(talk, "More?", 5, NULL, NULL));
    reply_with("</think>\n\na b c");
    OK(qwen_conversation_send_text(talk, "More?", 5, NULL, NULL));
    OK(qwen_conversation_cancel(talk));
    piece = read_reply(talk, QWEN_CANCELLED);
    CHECK(piece.finish == QWEN_FINISH_CANCELLED);
    OK(qwen_conversation_resume(talk));
    read_reply(talk, QWEN_END_OF_TURN);
    CHECK(strcmp(text, "a b c") == 0);

    /* Settled, the next turn computes nothing of the reply. */
    OK(qwen_conversation_cancel(talk));
    EXPECT(QWEN_CANCELLED, qwen_conversation_settle(talk, &total, &computed));
    OK(qwen_conversation_cancel(talk));
    OK(qwen_conversation_cancel_clear(talk));
    OK(qwen_conversation_settle(talk, &total, &computed));
    CHECK(total > 20 && computed > 3 && computed < 20);
    OK(qwen_conversation_settle(talk, &total, &computed));
    CHECK(total > 20 && computed == 0);
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_conversation_resume(talk));
    size_t settled = total;
    OK(qwen_conversation_send_text(talk, "On?", 3, &total, &computed));
    CHECK(computed == total - settled);
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_conversation_settle(talk, NULL, NULL));
    EXPECT(QWEN_ERROR_INVALID_HANDLE, qwen_conversation_settle(NULL, NULL, NULL));
    EXPECT(QWEN_ERROR_INVALID_HANDLE, qwen_conversation_cancel_clear(NULL));
    qwen_conversation_free(copy);
    qwen_conversation_free(talk);
    EXPECT(QWEN_ERROR_INVALID_HANDLE, qwen_conversation_undo(talk, NULL));
    qwen_conversation_free(NULL);
}

static void tools(void) {
    static const char offered[] =
        "[{\"type\":\"function\",\"function\":{\"name\":\"add\",\"parameters\":{\"type\":"
        "\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"number\"}}}}}]";
    qwen_session *session = make_session();
    qwen_conversation *talk = NULL;
    qwen_conversation_options options = QWEN_CONVERSATION_OPTIONS_INIT;
    options.thinking = QWEN_THINKING_OFF;
    options.tools = offered;
    options.tools_length = sizeof offered - 1;
    OK(qwen_conversation_new(session, &options, &talk));
    reply_with("<tool_call>\n<function=add>\n<parameter=a>\n2\n</parameter>\n<parameter=b>\n0.5\n"
               "</parameter>\n</function>\n</tool_call>");
    OK(qwen_conversation_add_text(talk, "user", 4, "2 + 0.5?", QWEN_NUL));
    OK(qwen_conversation_send(talk, NULL, 0, NULL, NULL));
    qwen_piece piece = read_reply(talk, QWEN_END_OF_TURN);
    CHECK(piece.finish == QWEN_FINISH_TOOL_CALLS && calls == 1);
    CHECK(strcmp(call, "call_0 add {\"a\": 2, \"b\": 0.5} [] 1") == 0);
    reply_with("2.5");
    OK(qwen_conversation_add_tool_result(talk, "call_0", QWEN_NUL, "2.5", 3));
    OK(qwen_conversation_send(talk, NULL, 0, NULL, NULL));
    read_reply(talk, QWEN_END_OF_TURN);
    CHECK(strcmp(text, "2.5") == 0 && calls == 0);

    /* A call that does not fit, and one that is cut. */
    reply_with("<tool_call>\n<function=sub>\n<parameter=a>\n2");
    OK(qwen_conversation_send_text(talk, "2 - 1?", QWEN_NUL, NULL, NULL));
    read_reply(talk, QWEN_END_OF_TURN);
    CHECK(calls == 1 && strstr(call, "call_1 sub {\"a\": \"2\"} [") == call);
    CHECK(strstr(call, "the reply ends inside the call") && strstr(call, "\"sub\""));
    CHECK(call[strlen(call) - 1] == '0');
    qwen_conversation_free(talk);
    qwen_session_free(session);
}

static void limits(void) {
    static const char *const stops[] = {"END", "\xF0\x9F\x98\x80" "x"};
    static const size_t lengths[] = {3, 5};
    qwen_session *session = make_session();
    qwen_conversation *talk = NULL;
    qwen_conversation_options options = QWEN_CONVERSATION_OPTIONS_INIT;
    qwen_piece piece;
    options.thinking = QWEN_THINKING_OFF;
    options.stop = stops;
    options.stop_count = 2;
    OK(qwen_conversation_new(session, &options, &talk));
    reply_with("one \xF0\x9F\x98\x80 EN EN");
    OK(qwen_conversation_send_text(talk, "Go", 2, NULL, NULL));
    piece = read_reply(talk, QWEN_END_OF_TURN);
    CHECK(strcmp(text, "one \xF0\x9F\x98\x80 EN EN") == 0 && piece.text == NULL);
    options.stop_lengths = lengths;
    OK(qwen_conversation_configure(talk, &options));
    reply_with("two EN\xF0\x9F\x98\x80y EEND more");
    OK(qwen_conversation_send_text(talk, "Go", 2, NULL, NULL));
    piece = read_reply(talk, QWEN_END_OF_TURN);
    CHECK(strcmp(text, "two EN\xF0\x9F\x98\x80y E") == 0);
    CHECK(piece.finish == QWEN_FINISH_STOP && strcmp(piece.text, "END") == 0);

    /* Length, in the middle of a character too. */
    options.stop_count = 0;
    options.max_tokens = 1;
    OK(qwen_conversation_configure(talk, &options));
    reply_with("\xE8\xAA\x9E!");
    OK(qwen_conversation_send_text(talk, "Go", 2, NULL, NULL));
    char all[64] = "";
    do {
        piece = read_reply(talk, QWEN_LIMIT_REACHED);
        CHECK(piece.finish == QWEN_FINISH_LENGTH);
        strcat(all, text);
        OK(qwen_conversation_resume(talk));
    } while (script_next < script_length);
    read_reply(talk, QWEN_END_OF_TURN);
    CHECK(strcmp(all, "\xE8\xAA\x9E!") == 0);

    /* A budget of thoughts. */
    options.max_tokens = 0;
    options.thinking = QWEN_THINKING_ON;
    options.thinking_budget = 2;
    OK(qwen_conversation_configure(talk, &options));
    reply_with("so so");
    OK(qwen_conversation_send_text(talk, "Go", 2, NULL, NULL));
    size_t begun = script_next;
    read_reply(talk, QWEN_END_OF_TURN);
    CHECK(begun == 0 && thoughts[0] != '\0' && strlen(thoughts) + strlen(text) == 5);

    /* Options that cannot be. */
    options.thinking = 7;
    INVALID(qwen_conversation_configure(talk, &options));
    SAYS("thinking");
    options.thinking = 0;
    options.flags = 0x80;
    INVALID(qwen_conversation_configure(talk, &options));
    options.flags = 0;
    options.tools = "{}";
    INVALID(qwen_conversation_configure(talk, &options));
    SAYS("tools");
    options.tools = NULL;
    options.tools_length = 2;
    INVALID(qwen_conversation_configure(talk, &options));
    options.tools_length = 0;
    options.system = "\xFF";
    INVALID(qwen_conversation_configure(talk, &options));
    options.system = NULL;
    static const char *const empty[] = {""};
    options.stop = empty;
    options.stop_count = 1;
    options.stop_lengths = NULL;
    INVALID(qwen_conversation_configure(talk, &options));
    SAYS("stop");
    qwen_conversation_free(talk);
    qwen_session_free(session);
}

/* A frame at a time: the same pieces, and a cancel before all messages are computed. */
static void steps(void) {
    qwen_session *session = make_session();
    qwen_conversation *talk = NULL;
    qwen_conversation_options options = QWEN_CONVERSATION_OPTIONS_INIT;
    qwen_piece piece = QWEN_PIECE_INIT;
    qwen_status status;
    size_t total, remaining, before;
    int frames = 0;
    options.thinking = QWEN_THINKING_ON;
    OK(qwen_conversation_new(session, &options, &talk));
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_conversation_step(talk, 1000, &piece, &remaining));
    CHECK(piece.kind == QWEN_PIECE_NONE && remaining == 0);

    reply_with("Hm.\n</think>\n\nHello \xF0\x9F\x98\x80!");
    OK(qwen_conversation_enqueue_text(talk, "Hi", QWEN_NUL, &total, &before));
    CHECK(total == before && total > 10);
    thoughts[0] = text[0] = '\0';
    while ((status = qwen_conversation_step(talk, 0, &piece, &remaining)) == QWEN_OK ||
           status == QWEN_WORKING) {
        CHECK(remaining <= before);
        before = remaining > 0 ? remaining : 1; /* from then on, the newest token at most */
        frames++;
        CHECK((status == QWEN_WORKING) == (piece.kind == QWEN_PIECE_NONE));
        if (piece.kind == QWEN_PIECE_THINKING) append(thoughts, &piece);
        if (piece.kind == QWEN_PIECE_TEXT) append(text, &piece);
    }
    EXPECT(QWEN_END_OF_TURN, status);
    CHECK(piece.kind == QWEN_PIECE_END && frames > 100);
    CHECK(strcmp(thoughts, "Hm.") == 0 && strcmp(text, "Hello \xF0\x9F\x98\x80!") == 0);

    OK(qwen_conversation_enqueue(talk, "{\"role\":\"user\",\"content\":\"And now?\"}", QWEN_NUL,
                                 NULL, NULL));
    EXPECT(QWEN_WORKING, qwen_conversation_step(talk, 0, &piece, NULL));
    OK(qwen_conversation_cancel(talk));
    EXPECT(QWEN_CANCELLED, qwen_conversation_step(talk, 1000000, &piece, NULL));
    CHECK(piece.kind == QWEN_PIECE_NONE);
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_conversation_step(talk, 0, &piece, NULL));
    reply_with("</think>\n\nYes.");
    OK(qwen_conversation_enqueue(talk, NULL, 0, NULL, NULL));
    read_reply(talk, QWEN_END_OF_TURN); /* waiting for what was queued */
    CHECK(strcmp(text, "Yes.") == 0);
    INVALID(qwen_conversation_enqueue(talk, "[", QWEN_NUL, NULL, NULL));
    INVALID(qwen_conversation_enqueue_text(talk, "\xFF", 1, NULL, NULL));
    qwen_conversation_free(talk);
    qwen_session_free(session);
}

/* In the middle of a reply, to memory and to a file, and on in another conversation. */
static void saved(const char *folder) {
    qwen_session *session = make_session(), *other_session = make_session();
    qwen_conversation *talk = NULL, *other = NULL;
    qwen_conversation_options options = QWEN_CONVERSATION_OPTIONS_INIT;
    qwen_piece piece = QWEN_PIECE_INIT;
    char file[4096], thought[sizeof thoughts];
    size_t size = 0, needed = 0;
    snprintf(file, sizeof file, "%s/talk.state", folder);
    options.thinking = QWEN_THINKING_ON;
    OK(qwen_conversation_new(session, &options, &talk));
    OK(qwen_conversation_new(other_session, NULL, &other));
    reply_with("Hm.\n</think>\n\nHello \xF0\x9F\x98\x80!");
    OK(qwen_conversation_send_text(talk, "Hi", QWEN_NUL, NULL, NULL));
    OK(qwen_conversation_next(talk, &piece));
    CHECK(piece.kind == QWEN_PIECE_THINKING);

    OK(qwen_conversation_save_memory(talk, 0, NULL, 0, &size)); /* how large? */
    char *state = malloc(size);
    CHECK(size > 1000 && state != NULL);
    EXPECT(QWEN_ERROR_BUFFER_TOO_SMALL,
           qwen_conversation_save_memory(talk, 0, state, size - 1, &needed));
    OK(qwen_conversation_save_memory(talk, 0, state, size, &needed));
    CHECK(needed == size);
    OK(qwen_conversation_save_file(talk, file, QWEN_NUL, QWEN_SAVE_WITHOUT_MARKS));
    size_t next = script_next;
    read_reply(talk, QWEN_END_OF_TURN);
    CHECK(strcmp(text, "Hello \xF0\x9F\x98\x80!") == 0);

    memcpy(thought, thoughts, sizeof thought);
    for (int from_file = 0; from_file < 2; from_file++) {
        if (from_file) {
            OK(qwen_conversation_restore_file(other, file, QWEN_NUL));
        } else {
            OK(qwen_conversation_restore_memory(other, state, size));
        }
        script_next = next;
        read_reply(other, QWEN_END_OF_TURN);
        CHECK(strcmp(thoughts, thought) == 0);
        CHECK(strcmp(text, "Hello \xF0\x9F\x98\x80!") == 0);
    }

    state[size / 2] ^= 1;
    EXPECT(QWEN_ERROR_FORMAT, qwen_conversation_restore_memory(other, state, size));
    EXPECT(QWEN_ERROR_FORMAT, qwen_conversation_restore_memory(other, state, 20));
    SAYS("cut off");
    EXPECT(QWEN_ERROR_FORMAT, qwen_session_restore_file(session, file, QWEN_NUL));
    SAYS("saved conversation");
    EXPECT(QWEN_ERROR_IO, qwen_conversation_restore_file(other, "/no/such/file", QWEN_NUL));
    EXPECT(QWEN_ERROR_IO, qwen_conversation_save_file(other, "/no/such/file", QWEN_NUL, 0));
    INVALID(qwen_conversation_save_file(talk, "", 0, 0));
    INVALID(qwen_conversation_save_file(talk, file, QWEN_NUL, 0x40));
    INVALID(qwen_conversation_save_memory(talk, 0, state, size, NULL));
    INVALID(qwen_conversation_restore_memory(other, NULL, 7));
    EXPECT(QWEN_ERROR_INVALID_HANDLE, qwen_conversation_save_file(NULL, file, QWEN_NUL, 0));
    read_reply(other, QWEN_END_OF_TURN); /* it has ended, and stays so */
    remove(file);
    free(state);
    qwen_conversation_free(talk);
    qwen_conversation_free(other);
    qwen_session_free(session);
    qwen_session_free(other_session);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    OK(qwen_model_open(argv[1], QWEN_NUL, NULL, &model));
    OK(qwen_token_find(model, "<|im_end|>", QWEN_NUL, &end_token));
    turns();
    tools();
    limits();
    steps();
    saved(argv[2]);
    qwen_model_free(model);
    return 0;
}
