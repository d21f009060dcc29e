/* Two threads, two sessions, one model: threads MODEL. Needs POSIX threads. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>

#include "qwen35.h"

static qwen_model *model; /* any number of threads may use it at once */

struct job {
    const char *chat;
    char answer[512];
    char error[512];
};

static void *work(void *argument) {
    struct job *job = argument;
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    qwen_session *session = NULL; /* used by one thread at a time */
    int32_t tokens[60], token;
    size_t count = 0, needed = 0;
    qwen_status status;

    sampling.preset = QWEN_PRESET_GREEDY;
    options.sampling = &sampling;
    status = qwen_session_new(model, &options, &session);
    if (status >= 0)
        status = qwen_session_feed_chat(session, job->chat, QWEN_NUL, 0, NULL, NULL);
    while (status == QWEN_OK && count < 60) {
        status = qwen_session_next_token(session, &token);
        if (status == QWEN_OK) tokens[count++] = token;
    }
    if (status >= 0)
        status = qwen_detokenize(model, tokens, count, 0, job->answer, sizeof job->answer - 1,
                                 &needed);
    /* The message belongs to this thread: take it along. */
    if (status < 0)
        snprintf(job->error, sizeof job->error, "%s", qwen_last_error());
    else
        job->answer[needed] = '\0';
    qwen_session_free(session);
    return NULL;
}

int main(int argc, char **argv) {
    struct job jobs[2] = {
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"What is the capital of France?\"}],"
         " \"enable_thinking\": false}", "", ""},
        {"{\"messages\": [{\"role\": \"user\", \"content\": \"What is the capital of Italy?\"}],"
         " \"enable_thinking\": false}", "", ""},
    };
    pthread_t threads[2];

    if (argc != 2) {
        fprintf(stderr, "usage: threads MODEL\n");
        return 2;
    }
    if (qwen_model_open(argv[1], QWEN_NUL, NULL, &model) < 0) {
        fprintf(stderr, "threads: %s\n", qwen_last_error());
        return 1;
    }
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, work, &jobs[i]) != 0) return 1;
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        if (jobs[i].error[0] != '\0') {
            fprintf(stderr, "threads: %s\n", jobs[i].error);
            return 1;
        }
        printf("%s\n", jobs[i].answer);
    }
    qwen_model_free(model);
    return 0;
}
