/* Ranks sentences by how likely the model finds them: rank MODEL SENTENCE... */
#include <stdio.h>
#include <stdlib.h>

#include "qwen35.h"

struct ranked {
    const char *sentence;
    double perplexity; /* as of so many equally likely words: lower is better */
};

static int better_first(const void *a, const void *b) {
    double difference = ((const struct ranked *)a)->perplexity - ((const struct ranked *)b)->perplexity;
    return (difference > 0) - (difference < 0);
}

/* Scores a sentence after its first token, which nothing predicts. */
static qwen_status score(qwen_session *session, const qwen_model *model, struct ranked *one) {
    qwen_score found = QWEN_SCORE_INIT;
    int32_t tokens[1024];
    size_t count = 0;
    qwen_status status = qwen_session_reset(session);

    if (status >= 0)
        status = qwen_tokenize(model, one->sentence, QWEN_NUL, 0, tokens, 1024, &count);
    if (status >= 0 && count > 0) status = qwen_session_feed(session, tokens, 1);
    if (status >= 0 && count > 0)
        status = qwen_session_score(session, tokens + 1, count - 1, 0, NULL, &found);
    one->perplexity = found.perplexity;
    return status;
}

int main(int argc, char **argv) {
    struct ranked all[100];
    qwen_model *model = NULL;
    qwen_session *session = NULL;
    qwen_status status;
    int count = argc - 2;

    if (count < 1 || count > 100) {
        fprintf(stderr, "usage: rank MODEL SENTENCE...\n");
        return 2;
    }
    status = qwen_model_open(argv[1], QWEN_NUL, NULL, &model);
    if (status >= 0) status = qwen_session_new(model, NULL, &session);
    for (int i = 0; i < count && status >= 0; i++) {
        all[i].sentence = argv[i + 2];
        status = score(session, model, &all[i]);
    }
    if (status < 0) {
        fprintf(stderr, "rank: %s\n", qwen_last_error());
        return 1;
    }
    qsort(all, (size_t)count, sizeof all[0], better_first);
    for (int i = 0; i < count; i++) printf("%10.1f  %s\n", all[i].perplexity, all[i].sentence);
    qwen_session_free(session);
    qwen_model_free(model);
    return 0;
}
