/* Many threads on one model, and on one session. Argument: the toy model. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <time.h>

#include "check.h"

enum { THREADS = 8, PROMPT = 200, MADE = 32 };

static qwen_model *model;
static int32_t prompt[4000];

static qwen_session *make(void) {
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    qwen_session *session = NULL;
    sampling.preset = QWEN_PRESET_GREEDY;
    options.sampling = &sampling;
    OK(qwen_session_new(model, &options, &session));
    return session;
}

static void solo(int32_t start, int32_t *made) {
    qwen_session *session = make();
    OK(qwen_session_feed(session, prompt + start, PROMPT));
    for (int i = 0; i < MADE; i++) {
        CHECK(qwen_session_next_token(session, &made[i]) >= 0);
    }
    qwen_session_free(session);
}

static void on_threads(void *(*body)(void *), void **arguments, size_t stack) {
    pthread_t threads[THREADS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (stack > 0) {
        CHECK(pthread_attr_setstacksize(&attributes, stack) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], &attributes, body, arguments[i]) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
}

/* Each thread with its own session gets what it gets alone. */
typedef struct {
    int32_t start, made[MADE];
} job;

static void *run_job(void *argument) {
    job *j = argument;
    solo(j->start, j->made);
    return NULL;
}

static void own_sessions(size_t stack) {
    static job jobs[THREADS];
    void *arguments[THREADS];
    int32_t alone[MADE];
    for (int i = 0; i < THREADS; i++) {
        jobs[i].start = i * 10;
        arguments[i] = &jobs[i];
    }
    on_threads(run_job, arguments, stack);
    for (int i = 0; i < THREADS; i++) {
        solo(i * 10, alone);
        CHECK(memcmp(alone, jobs[i].made, sizeof alone) == 0);
    }
}

/* One session under many threads: done or busy, nothing else, and sound afterwards. */
static qwen_session *shared;
static int busy;

static void *harass(void *argument) {
    for (int i = 0; i < 100; i++) {
        size_t number;
        int32_t token;
        qwen_status status = QWEN_OK;
        switch ((i + *(int *)argument) % 4) {
        case 0: status = qwen_session_feed(shared, prompt, 5); break;
        case 1: status = qwen_session_next_token(shared, &token); break;
        case 2: status = qwen_session_reset(shared); break;
        case 3: status = qwen_session_position(shared, &number); break;
        }
        CHECK(status == QWEN_OK || status == QWEN_END_OF_TURN || status == QWEN_ERROR_BUSY ||
              status == QWEN_ERROR_INVALID_STATE); /* a token of an empty sequence */
        if (status == QWEN_ERROR_BUSY) {
            __atomic_add_fetch(&busy, 1, __ATOMIC_RELAXED);
        }
    }
    return NULL;
}

static void one_session(void) {
    int numbers[THREADS];
    void *arguments[THREADS];
    int32_t expected[MADE], made[MADE];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        arguments[i] = &numbers[i];
    }
    shared = make();
    for (int round = 0; round < 20 && busy == 0; round++) {
        on_threads(harass, arguments, 0);
    }
    CHECK(busy > 0);
    solo(0, expected);
    OK(qwen_session_reset(shared));
    OK(qwen_session_feed(shared, prompt, PROMPT));
    for (int i = 0; i < MADE; i++) {
        CHECK(qwen_session_next_token(shared, &made[i]) >= 0);
    }
    CHECK(memcmp(expected, made, sizeof made) == 0);
    qwen_session_free(shared);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void pause_for(double s) {
    struct timespec time = {0, (long)(s * 1e9)};
    nanosleep(&time, NULL);
}

/* Feeds for as long as it is let. */
static qwen_status ended;

static void *feed_long(void *argument) {
    qwen_session *session = argument;
    ended = qwen_session_feed(session, prompt, 4000);
    return NULL;
}

static void cancel_from_outside(void) {
    int32_t expected[8], made[8];
    qwen_session *whole = make();
    OK(qwen_session_feed(whole, prompt, 4000));
    for (int i = 0; i < 8; i++) {
        CHECK(qwen_session_next_token(whole, &expected[i]) >= 0);
    }
    qwen_session_free(whole);
    int cancelled = 0;
    for (int round = 0; round < 20; round++) {
        qwen_session *session = make();
        pthread_t thread;
        size_t position = 0;
        CHECK(pthread_create(&thread, NULL, feed_long, session) == 0);
        pause_for(0.0005 * round);
        double asked = seconds();
        OK(qwen_session_cancel(session));
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(seconds() - asked < 2.0); /* far above 10 ms: this machine may be busy */
        CHECK(ended == QWEN_CANCELLED || ended == QWEN_OK);
        cancelled += ended == QWEN_CANCELLED;
        if (ended == QWEN_OK) { /* it came too late, and is for the next call */
            OK(qwen_session_reset(session));
        }
        OK(qwen_session_position(session, &position));
        CHECK(position < 4000);
        OK(qwen_session_feed(session, prompt + position, 4000 - position));
        for (int i = 0; i < 8; i++) {
            CHECK(qwen_session_next_token(session, &made[i]) >= 0);
        }
        CHECK(memcmp(expected, made, sizeof made) == 0);
        qwen_session_free(session);
    }
    CHECK(cancelled > 0);
}

static void free_while_in_use(void) {
    for (int round = 0; round < 20; round++) {
        qwen_session *session = make();
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, feed_long, session) == 0);
        pause_for(0.0003 * round);
        qwen_session_free(session);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(ended == QWEN_CANCELLED || ended == QWEN_OK || ended == QWEN_ERROR_INVALID_HANDLE);
        EXPECT(QWEN_ERROR_INVALID_HANDLE, qwen_session_reset(session));
    }
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    for (int i = 0; i < 4000; i++) {
        prompt[i] = (i * 7919) % 500;
    }
    OK(qwen_model_open(argv[1], QWEN_NUL, NULL, &model));
    own_sessions(0);
    own_sessions(128 * 1024);
    one_session();
    cancel_from_outside();
    free_while_in_use();
    qwen_model_free(model);
    return 0;
}
