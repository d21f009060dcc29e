/* Text in, token ids out, and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

static const char help[] =
    "usage: qwen-tokenize MODEL [--special] < TEXT\n"
    "       qwen-tokenize MODEL --decode < IDS\n"
    "       qwen-tokenize MODEL --chat [--special] < JSON\n"
    "\n"
    "Reads standard input byte for byte (a final line break counts) and prints the token ids\n"
    "on one line with spaces between. A folder without weights is enough.\n"
    "\n"
    "  --special   added tokens spelled in the text, such as <|im_end|>, become those\n"
    "              tokens; with --chat: as Transformers renders and encodes it\n"
    "  --decode    ids, with commas or white space between, back to text\n"
    "  --chat      an object {\"messages\": [...], \"tools\": ..., \"enable_thinking\": ...,\n"
    "              \"add_generation_prompt\": ...} or an array of messages: the ids of the\n"
    "              conversation, rendered by the model's template\n"
    "  -h, --help  this text\n";

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count + 1, size);
    if (memory == NULL) {
        host_die(HOST_FAILED, "out of memory");
    }
    return memory;
}

static void decode(const qwen_model *model, host_bytes *input) {
    size_t count = 0, size = 0;
    if (strlen(input->data) != input->length) {
        host_die(HOST_FAILED, "the input has a NUL byte in it; ids were expected");
    }
    int32_t *ids = host_ids(input->data, &count);
    host_check(qwen_detokenize(model, ids, count, 0, NULL, 0, &size), "decode");
    char *text = allocate(size, 1);
    host_check(qwen_detokenize(model, ids, count, 0, text, size, &size), "decode");
    fwrite(text, 1, size, stdout);
    free(text);
    free(ids);
}

static void encode(const qwen_model *model, const host_bytes *input, int chat, int special) {
    size_t count = 0;
    int32_t *ids = NULL;
    for (int pass = 0; pass < 2; pass++) { /* ask for the size, then for the ids */
        size_t room = count;
        ids = pass == 0 ? NULL : allocate(room, sizeof *ids);
        if (chat) {
            uint32_t flags = special ? QWEN_CHAT_AS_TRANSFORMERS : 0;
            host_check(qwen_chat_tokenize(model, input->data, input->length, flags, ids, room,
                                          &count),
                       "render the conversation");
        } else {
            uint32_t flags = special ? QWEN_TEXT_ADDED_TOKENS : 0;
            host_check(
                qwen_tokenize(model, input->data, input->length, flags, ids, room, &count),
                "tokenize the text");
        }
    }
    for (size_t i = 0; i < count; i++) {
        printf(i == 0 ? "%d" : " %d", (int)ids[i]);
    }
    putchar('\n');
    free(ids);
}

int main(int argc, char **argv) {
    const char *path = NULL;
    int special = 0, back = 0, chat = 0;
    host_name = "qwen-tokenize";
    for (int i = 1; i < argc; i++) {
        if (host_wants_help(argv[i])) {
            fputs(help, stdout);
            host_flush();
            return 0;
        } else if (strcmp(argv[i], "--special") == 0) {
            special = 1;
        } else if (strcmp(argv[i], "--decode") == 0) {
            back = 1;
        } else if (strcmp(argv[i], "--chat") == 0) {
            chat = 1;
        } else if (argv[i][0] == '-' && argv[i][1] == '-') {
            host_die(HOST_USAGE, "unknown option %s; see --help", argv[i]);
        } else if (path == NULL) {
            path = argv[i];
        } else {
            host_die(HOST_USAGE, "one argument too many: \"%s\"; see --help", argv[i]);
        }
    }
    if (path == NULL) {
        fputs(help, stderr);
        return HOST_USAGE;
    }
    if (back && (chat || special)) {
        host_die(HOST_USAGE, "--decode goes alone");
    }
    qwen_model_options options = QWEN_MODEL_OPTIONS_INIT;
    options.flags = QWEN_MODEL_TOKENIZER_ONLY;
    qwen_model *model = host_open(path, &options);
    host_bytes input = host_read_input();
    if (back) {
        decode(model, &input);
    } else {
        encode(model, &input, chat, special);
    }
    host_flush();
    free(input.data);
    qwen_model_free(model);
    return 0;
}
