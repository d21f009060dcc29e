/* Text and tokens through the C ABI. Argument: the toy model (tests/support/toy.rs). */
#include "check.h"

enum { PADDING = 508, ROWS = 512, IM_END = 505, THINK = 506 };

static const qwen_model *model;

static size_t tokenize(const char *text, size_t length, uint32_t flags, int32_t *ids) {
    size_t needed = 99;
    OK(qwen_tokenize(model, text, length, flags, ids, 64, &needed));
    return needed;
}

static void round_trip(const char *text, size_t length) {
    int32_t ids[64];
    char back[256];
    size_t size = 0, count = tokenize(text, length, 0, ids);
    OK(qwen_detokenize(model, ids, count, 0, back, sizeof back, &size));
    CHECK(size == length && memcmp(back, text, length) == 0);

    /* One by one: whole characters, and the same in the end. */
    qwen_stream_decoder *decoder = NULL;
    char streamed[256];
    size_t at = 0;
    OK(qwen_stream_decoder_new(model, 0, &decoder));
    for (size_t i = 0; i <= count; i++) {
        const char *piece = NULL;
        if (i < count) {
            OK(qwen_stream_decoder_push(decoder, ids[i], &piece, &size));
        } else {
            OK(qwen_stream_decoder_finish(decoder, &piece, &size));
            CHECK(size == 0);
        }
        CHECK(size == 0 || ((unsigned char)piece[0] & 0xC0) != 0x80); /* starts a character */
        size_t needed;
        OK(qwen_tokenize(model, piece, size, 0, NULL, 0, &needed)); /* is UTF-8 */
        CHECK(at + size <= sizeof streamed);
        memcpy(streamed + at, piece, size);
        at += size;
    }
    CHECK(at == length && memcmp(streamed, text, length) == 0);
    qwen_stream_decoder_free(decoder);
}

static void bad_utf8(const char *bytes, size_t length, const char *where) {
    int32_t ids[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    size_t needed = 99;
    INVALID(qwen_tokenize(model, bytes, length, 0, ids, 8, &needed));
    SAYS("UTF-8");
    SAYS(where);
    CHECK(ids[0] == 7 && needed == 0);
}

static void text_in(void) {
    int32_t ids[64], other[64];
    size_t needed = 99;
    round_trip("hello", 5);
    round_trip(" a ,b: ' x    .\t\n ", 18);
    round_trip("ab\0cd", 5);
    round_trip("\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7 \xF0\x9F\x87\xAF\xF0\x9F\x87\xB5 "
               "\xEB\x98\xBB \xF0\xA0\xAE\xB7 \xEF\xB7\xBD \xC3\xA9",
               37);
    CHECK(tokenize("ab\0cd", 5, 0, ids) != tokenize("ab", 2, 0, other));
    CHECK(tokenize("hello\0more", QWEN_NUL, 0, ids) == tokenize("hello", 5, 0, other));

    /* Nothing in, nothing out. */
    CHECK(tokenize(NULL, 0, 0, ids) == 0);
    CHECK(tokenize("", 0, 0, ids) == 0);
    CHECK(tokenize("", QWEN_NUL, 0, ids) == 0);
    OK(qwen_tokenize(model, "", 0, 0, NULL, 0, &needed));

    /* Spellings of added tokens are text unless asked for. */
    CHECK(tokenize("<|im_end|>", 10, 0, ids) > 1);
    CHECK(tokenize("<|im_end|>", 10, QWEN_TEXT_ADDED_TOKENS, ids) == 1 && ids[0] == IM_END);
    INVALID(qwen_tokenize(model, "a", 1, QWEN_TEXT_SKIP_SPECIAL, ids, 64, &needed));
    SAYS("flags");

    /* Two calls: the size, then the contents; a small buffer stays as it was. */
    OK(qwen_tokenize(model, "a-b-c", 5, 0, NULL, 0, &needed));
    CHECK(needed == 5);
    memset(ids, 0x55, sizeof ids);
    EXPECT(QWEN_ERROR_BUFFER_TOO_SMALL,
           qwen_tokenize(model, "a-b-c", 5, 0, ids, needed - 1, &needed));
    CHECK(needed == 5 && ids[0] == 0x55555555);
    INVALID(qwen_tokenize(model, "a-b-c", 5, 0, NULL, 3, &needed));
    OK(qwen_tokenize(model, "a-b-c", 5, 0, ids, needed, &needed));

    bad_utf8("\xE2\x80", 2, "byte 0");
    bad_utf8("\xED\xA0\x80", 3, "byte 0");
    bad_utf8("\xF4\x90\x80\x80", 4, "byte 0");
    bad_utf8("\xC0\xAF", 2, "byte 0");
    bad_utf8("\xFF", 1, "byte 0");
    bad_utf8("a\x80"
             "b",
             3, "byte 1");
    bad_utf8("ab\xF0\x9F\x98", 5, "byte 2");
    bad_utf8("ab\xF0\x9F\x98", QWEN_NUL, "byte 2");
}

static void text_out(void) {
    static const int32_t bad[] = {-1, ROWS, INT32_MAX, INT32_MIN};
    char text[32];
    const char *bytes = "";
    size_t needed = 99;
    int32_t id;
    uint32_t kind;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int32_t ids[] = {1, bad[i]};
        memset(text, 7, sizeof text);
        INVALID(qwen_detokenize(model, ids, 2, 0, text, sizeof text, &needed));
        CHECK(needed == 0 && text[0] == 7);
        INVALID(qwen_token_bytes(model, bad[i], &bytes, &needed));
        INVALID(qwen_token_kind(model, bad[i], &kind));
    }
    for (id = PADDING; id < ROWS; id++) {
        OK(qwen_detokenize(model, &id, 1, 0, text, sizeof text, &needed));
        CHECK(needed == 0);
        OK(qwen_token_bytes(model, id, &bytes, &needed));
        CHECK(needed == 0);
        OK(qwen_token_kind(model, id, &kind));
        CHECK(kind == QWEN_TOKEN_PADDING);
    }
    OK(qwen_detokenize(model, NULL, 0, 0, NULL, 0, &needed));
    INVALID(qwen_detokenize(model, NULL, 1, 0, NULL, 0, &needed));

    /* Special tokens can be left out; added ones that are not special stay. */
    int32_t mixed[] = {THINK, IM_END};
    OK(qwen_detokenize(model, mixed, 2, 0, text, sizeof text, &needed));
    CHECK(needed == 17 && memcmp(text, "<think><|im_end|>", 17) == 0);
    OK(qwen_detokenize(model, mixed, 2, QWEN_TEXT_SKIP_SPECIAL, text, sizeof text, &needed));
    CHECK(needed == 7 && memcmp(text, "<think>", 7) == 0);
    OK(qwen_token_kind(model, IM_END, &kind));
    CHECK(kind == (QWEN_TOKEN_ADDED | QWEN_TOKEN_SPECIAL | QWEN_TOKEN_END_OF_TURN));
    OK(qwen_token_kind(model, THINK, &kind));
    CHECK(kind == QWEN_TOKEN_ADDED);
    OK(qwen_token_kind(model, 0, &kind));
    CHECK(kind == 0);
    OK(qwen_token_find(model, "<think>", QWEN_NUL, &id));
    CHECK(id == THINK);
    OK(qwen_token_find(model, "<nothing>", QWEN_NUL, &id));
    CHECK(id == -1);
    OK(qwen_token_bytes(model, THINK, &bytes, &needed));
    CHECK(needed == 7 && memcmp(bytes, "<think>", 7) == 0);
}

/* Bytes that are no text come out as U+FFFD, in time and once. */
static void broken_stream(void) {
    static const char replacement[] = "\xEF\xBF\xBD";
    qwen_stream_decoder *decoder = NULL;
    const char *piece;
    size_t size;
    int32_t id[4];
    OK(qwen_stream_decoder_new(model, 0, &decoder));
    /* Ids of single bytes: of the text of a character that has no token. */
    CHECK(tokenize("\xF0\x9F\x98\x80", 4, 0, id) == 4);
    OK(qwen_stream_decoder_push(decoder, id[2], &piece, &size)); /* 0x98 starts nothing */
    CHECK(size == 3 && memcmp(piece, replacement, 3) == 0);
    for (int i = 0; i < 3; i++) {
        OK(qwen_stream_decoder_push(decoder, id[i], &piece, &size));
        CHECK(size == 0);
    }
    INVALID(qwen_stream_decoder_push(decoder, -1, &piece, &size)); /* holds on */
    OK(qwen_stream_decoder_push(decoder, id[3], &piece, &size));
    CHECK(size == 4 && memcmp(piece, "\xF0\x9F\x98\x80", 4) == 0);
    OK(qwen_stream_decoder_push(decoder, id[0], &piece, &size));
    CHECK(size == 0);
    OK(qwen_stream_decoder_finish(decoder, &piece, &size)); /* cut off */
    CHECK(size == 3 && memcmp(piece, replacement, 3) == 0);
    OK(qwen_stream_decoder_finish(decoder, &piece, &size));
    CHECK(size == 0);
    qwen_stream_decoder_free(decoder);
}

int main(int argc, char **argv) {
    qwen_model_options options = QWEN_MODEL_OPTIONS_INIT;
    qwen_model *opened = NULL;
    CHECK(argc == 2);
    OK(qwen_model_open(argv[1], QWEN_NUL, &options, &opened));
    model = opened;
    text_in();
    text_out();
    broken_stream();
    qwen_model_free(opened);

    /* Without weights: the same, but no sessions. */
    options.flags = QWEN_MODEL_TOKENIZER_ONLY;
    OK(qwen_model_open(argv[1], QWEN_NUL, &options, &opened));
    model = opened;
    text_in();
    qwen_model_info info = QWEN_MODEL_INFO_INIT;
    OK(qwen_model_get_info(model, &info));
    CHECK(!info.has_weights && info.has_chat_template && info.token_count == PADDING);
    CHECK(info.vocab_size == 0 && info.weight_bytes == 0);
    qwen_session *session = NULL;
    EXPECT(QWEN_ERROR_INVALID_STATE, qwen_session_new(model, NULL, &session));
    CHECK(session == NULL);
    qwen_model_free(opened);
    return 0;
}
