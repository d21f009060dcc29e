/* Token ids in, the most likely next token ids out: what to use to compare engines. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

static const char help[] =
    "usage: qwen-ids MODEL IDS N [--logits K] [--threads N] [--isa NAME]\n"
    "                [--weights NAME] [--compute NAME] [--kv NAME]\n"
    "\n"
    "Feeds IDS (with commas or white space between) and prints the N most likely next ids,\n"
    "one per line, each chosen after the one before. Tokens that end a turn do not end it.\n"
    "\n"
    "  --logits K    after each id, also the K largest logits it was chosen from, as\n"
    "                id:value, the largest first\n"
    "  --threads N   threads that compute (default: as many as this process may use)\n"
    "  --isa NAME    scalar, avx2, avx512 or auto (default)\n"
    "  --weights NAME  bf16 (as stored, default), or int8 or int4, made at open\n"
    "  --compute NAME  exact (default with bf16) or fast (default with int8 and int4)\n"
    "  --kv NAME     keys and values in fp32 (default with exact), fp16 (default with fast)\n"
    "                or int8\n"
    "  -h, --help    this text\n";

typedef struct {
    float value;
    int32_t id;
} logit;

/* The larger value first, the lower id among equals. */
static int by_value(const void *left, const void *right) {
    const logit *a = left, *b = right;
    if (a->value != b->value) {
        return a->value > b->value ? -1 : 1;
    }
    return a->id < b->id ? -1 : 1;
}

/* Adds the `k` largest of `values` to the line. */
static void add_best(host_bytes *line, const float *values, size_t count, size_t k) {
    logit *logits = malloc(count * sizeof *logits);
    if (logits == NULL) {
        host_die(HOST_FAILED, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        logits[i].value = isnan(values[i]) ? -INFINITY : values[i]; /* so that they sort */
        logits[i].id = (int32_t)i;
    }
    qsort(logits, count, sizeof *logits, by_value);
    for (size_t i = 0; i < k && i < count; i++) {
        char entry[64];
        snprintf(entry, sizeof entry, " %d:%.9g", (int)logits[i].id, (double)logits[i].value);
        host_add_text(line, entry);
    }
    free(logits);
}

int main(int argc, char **argv) {
    char *places[3] = {0};
    int placed = 0;
    size_t best = 0;
    qwen_model_options options = QWEN_MODEL_OPTIONS_INIT;
    qwen_session_options session_options = QWEN_SESSION_OPTIONS_INIT;
    host_name = "qwen-ids";
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (host_wants_help(argv[i])) {
            fputs(help, stdout);
            host_flush();
            return 0;
        } else if (strcmp(argv[i], "--logits") == 0) {
            best = (size_t)host_integer(value, "--logits", 0, INT32_MAX), i++;
        } else if (strcmp(argv[i], "--threads") == 0) {
            options.threads = (uint32_t)host_integer(value, "--threads", 1, 512), i++;
        } else if (strcmp(argv[i], "--isa") == 0) {
            options.isa = host_isa(value), i++;
        } else if (strcmp(argv[i], "--weights") == 0) {
            options.weights = host_weights(value), i++;
        } else if (strcmp(argv[i], "--compute") == 0) {
            options.compute = host_compute(value), i++;
        } else if (strcmp(argv[i], "--kv") == 0) {
            session_options.kv = host_kv(value), i++;
        } else if (argv[i][0] == '-' && argv[i][1] == '-') {
            host_die(HOST_USAGE, "unknown option %s; see --help", argv[i]);
        } else if (placed < 3) {
            places[placed++] = argv[i];
        } else {
            host_die(HOST_USAGE, "one argument too many: \"%s\"; see --help", argv[i]);
        }
    }
    if (placed != 3) {
        fputs(help, stderr);
        return HOST_USAGE;
    }
    size_t count = 0;
    int32_t *ids = host_ids(places[1], &count);
    long long wanted = host_integer(places[2], "N", 0, INT32_MAX);

    qwen_model *model = host_open(places[0], &options);
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session *session = NULL;
    sampling.preset = QWEN_PRESET_GREEDY;
    session_options.sampling = &sampling;
    host_check(qwen_session_new(model, &session_options, &session), "make a session");
    host_check(qwen_session_feed(session, ids, count), "feed IDS");

    for (long long i = 0; i < wanted; i++) {
        host_bytes line = {0};
        int32_t token = -1;
        if (best > 0) {
            const float *logits = NULL;
            size_t width = 0;
            host_check(qwen_session_logits(session, &logits, &width), "compute logits");
            add_best(&line, logits, width, best);
        }
        if (host_check(qwen_session_next_token(session, &token), "go on") == QWEN_LIMIT_REACHED) {
            host_die(HOST_FAILED, "the context is full after %lld ids", i);
        }
        printf("%d%s\n", (int)token, line.data ? line.data : "");
        host_flush();
        free(line.data);
    }
    qwen_session_free(session);
    qwen_model_free(model);
    free(ids);
    return 0;
}
