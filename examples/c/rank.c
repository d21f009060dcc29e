/* Ranks sentences by how likely the model finds them: rank MODEL SENTENCE... */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "qwen35.h"

/* The mean log-probability of the tokens after the first, which nothing predicts; NAN on a
 * failure. */
static double score(const qwen_model *model, const char *sentence) {
    qwen_session *session = NULL;
    int32_t tokens[1024];
    size_t count = 0, vocabulary = 0;
    const float *logits = NULL;
    double sum = NAN;

    if (qwen_session_new(model, NULL, &session) < 0 ||
        qwen_tokenize(model, sentence, QWEN_NUL, 0, tokens, 1024, &count) < 0)
        goto done;
    sum = 0;
    for (size_t i = 0; i + 1 < count; i++) {
        float most = -INFINITY;
        double all = 0;
        if (qwen_session_feed(session, &tokens[i], 1) < 0 ||
            qwen_session_logits(session, &logits, &vocabulary) < 0) {
            sum = NAN;
            break;
        }
        for (size_t id = 0; id < vocabulary; id++)
            if (logits[id] > most) most = logits[id];
        for (size_t id = 0; id < vocabulary; id++) all += exp((double)(logits[id] - most));
        sum += (double)(logits[tokens[i + 1]] - most) - log(all);
    }
    if (count > 1) sum /= (double)(count - 1);
done:
    qwen_session_free(session);
    return sum;
}

struct ranked {
    const char *sentence;
    double score;
};

static int better_first(const void *a, const void *b) {
    double difference = ((const struct ranked *)b)->score - ((const struct ranked *)a)->score;
    return (difference > 0) - (difference < 0);
}

int main(int argc, char **argv) {
    struct ranked all[100];
    qwen_model *model = NULL;
    int count = argc - 2;

    if (count < 1 || count > 100) {
        fprintf(stderr, "usage: rank MODEL SENTENCE...\n");
        return 2;
    }
    if (qwen_model_open(argv[1], QWEN_NUL, NULL, &model) < 0) {
        fprintf(stderr, "rank: %s\n", qwen_last_error());
        return 1;
    }
    for (int i = 0; i < count; i++) {
        all[i].sentence = argv[i + 2];
        all[i].score = score(model, argv[i + 2]);
        if (isnan(all[i].score)) {
            fprintf(stderr, "rank: %s\n", qwen_last_error());
            return 1;
        }
    }
    qsort(all, (size_t)count, sizeof all[0], better_first);
    for (int i = 0; i < count; i++) printf("%8.3f  %s\n", all[i].score, all[i].sentence);
    qwen_model_free(model);
    return 0;
}
