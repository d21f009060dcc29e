/* What the library must leave alone, and what it must live with. Arguments: the toy model, and
 * what to try. Each is a process of its own. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const char *path;

/* Opens, talks, closes; the tokens must be the ones of `expected` unless that is NULL. */
static void work(const int32_t *expected, int32_t *made) {
    qwen_model *model = NULL;
    qwen_session *session = NULL;
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options options = QWEN_SESSION_OPTIONS_INIT;
    sampling.preset = QWEN_PRESET_GREEDY;
    options.sampling = &sampling;
    OK(qwen_model_open(path, QWEN_NUL, NULL, &model));
    OK(qwen_session_new(model, &options, &session));
    OK(qwen_session_feed_text(session, "I am in Istanbul, 1.5 km", QWEN_NUL, 0));
    for (int i = 0; i < 8; i++) {
        CHECK(qwen_session_next_token(session, &made[i]) >= 0);
    }
    CHECK(expected == NULL || memcmp(expected, made, 8 * sizeof *made) == 0);
    EXPECT(QWEN_ERROR_IO, qwen_model_open("/nowhere", QWEN_NUL, NULL, &model));
    qwen_session_free(session);
}

static void locale_of(const char *name) {
    int32_t plain[8], foreign[8];
    work(NULL, plain);
    if (setlocale(LC_ALL, name) == NULL) {
        exit(77); /* not installed */
    }
    work(plain, foreign);
}

static void signals(void) {
    struct sigaction before[NSIG], after[NSIG];
    sigset_t mask_before, mask_after;
    int32_t made[8];
    memset(before, 0, sizeof before);
    memset(after, 0, sizeof after);
    for (int i = 1; i < NSIG; i++) {
        sigaction(i, NULL, &before[i]);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &mask_before);
    work(NULL, made);
    for (int i = 1; i < NSIG; i++) {
        sigaction(i, NULL, &after[i]);
        CHECK(before[i].sa_handler == after[i].sa_handler);
        CHECK(before[i].sa_flags == after[i].sa_flags);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
    CHECK(memcmp(&mask_before, &mask_after, sizeof mask_before) == 0);
}

static void directory(void) {
    char before[4096], after[4096];
    int32_t made[8];
    CHECK(getcwd(before, sizeof before) != NULL);
    work(NULL, made);
    CHECK(getcwd(after, sizeof after) != NULL && strcmp(before, after) == 0);
}

/* With the standard descriptors closed, files of the library get their numbers. */
static void closed(void) {
    int32_t made[8];
    int report = dup(2);
    close(0);
    close(1);
    close(2);
    work(NULL, made);
    CHECK(fcntl(1, F_GETFD) == -1 && fcntl(2, F_GETFD) == -1); /* nothing stayed open */
    dup2(report, 2);
}

static void broken_pipe(void) {
    int ends[2];
    int32_t made[8];
    CHECK(pipe(ends) == 0);
    close(ends[0]);
    dup2(ends[1], 1);
    dup2(ends[1], 2); /* a write here would end the process by SIGPIPE */
    work(NULL, made);
}

/* The child gets an error, not a hang, from what the parent opened, and can open its own. */
static void forked(void) {
    qwen_model *model = NULL;
    qwen_model_options two = QWEN_MODEL_OPTIONS_INIT;
    qwen_session *session = NULL;
    qwen_status status;
    size_t needed;
    int32_t ids[400], token, made[8];
    int state;
    for (int i = 0; i < 400; i++) {
        ids[i] = i;
    }
    work(NULL, made);
    two.threads = 2;
    OK(qwen_model_open(path, QWEN_NUL, &two, &model));
    OK(qwen_session_new(model, NULL, &session));
    OK(qwen_session_feed(session, ids, 400));
    CHECK(qwen_session_next_token(session, &token) >= 0);
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        alarm(60); /* a hang becomes a signal */
        OK(qwen_tokenize(model, "text", 4, 0, NULL, 0, &needed));
        status = qwen_session_feed(session, ids, 400);
        CHECK(status == QWEN_OK || status == QWEN_ERROR_FORKED);
        int32_t again[8];
        work(made, again);
        qwen_session_free(session);
        qwen_model_free(model);
        exit(0);
    }
    CHECK(waitpid(child, &state, 0) == child);
    CHECK(WIFEXITED(state) && WEXITSTATUS(state) == 0);
    OK(qwen_session_feed(session, ids, 400)); /* the parent goes on */
    qwen_session_free(session);
    qwen_model_free(model);
}

static void limited(int resource, rlim_t limit) {
    struct rlimit value = {limit, limit};
    qwen_model *model = NULL;
    qwen_session *session = NULL;
    CHECK(setrlimit(resource, &value) == 0);
    qwen_status status = qwen_model_open(path, QWEN_NUL, NULL, &model);
    CHECK(status == QWEN_OK || status == QWEN_ERROR_IO || status == QWEN_ERROR_OUT_OF_MEMORY);
    CHECK((model != NULL) == (status == QWEN_OK));
    if (model != NULL) {
        status = qwen_session_new(model, NULL, &session);
        CHECK(status == QWEN_OK || status == QWEN_ERROR_OUT_OF_MEMORY);
    }
    qwen_session_free(session);
    qwen_model_free(model);
}

/* Texts and arrays that are too large for the memory that is left: errors, and all works on. */
static void large_inputs(void) {
    static const char head[] = "[{\"role\": \"user\", \"content\": \"";
    const size_t length = (size_t)24 << 20;
    int32_t ids[3] = {1, 2, 3}, token;
    qwen_model *model = NULL;
    qwen_session *session = NULL;
    size_t needed, pages;
    OK(qwen_model_open(path, QWEN_NUL, NULL, &model));
    OK(qwen_session_new(model, NULL, &session));
    OK(qwen_session_feed(session, ids, 3));
    CHECK(qwen_session_next_token(session, &token) >= 0);
    char *text = malloc(length + 8);
    int32_t *zeros = calloc(length / 4, 4);
    CHECK(text != NULL && zeros != NULL);
    for (size_t i = 0; i < length; i++) {
        text[i] = "some words of a text "[i % 21];
    }
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK(statm != NULL && fscanf(statm, "%zu", &pages) == 1);
    fclose(statm);
    rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)32 << 20);
    struct rlimit limit = {most, most};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    CHECK(qwen_tokenize(model, text, length, 0, NULL, 0, &needed) == QWEN_ERROR_OUT_OF_MEMORY);
    CHECK(strstr(qwen_last_error(), "`text`") != NULL);
    CHECK(qwen_session_feed_text(session, text, length, 0) == QWEN_ERROR_OUT_OF_MEMORY);
    CHECK(qwen_session_feed(session, zeros, length / 4) == QWEN_ERROR_OUT_OF_MEMORY);
    CHECK(qwen_detokenize(model, zeros, length / 4, 0, NULL, 0, &needed) ==
          QWEN_ERROR_OUT_OF_MEMORY);
    memcpy(text, head, sizeof head - 1);
    memcpy(text + length, "\"}]", 4);
    CHECK(qwen_session_feed_chat(session, text, QWEN_NUL, 0, NULL, NULL) ==
          QWEN_ERROR_OUT_OF_MEMORY);
    CHECK(qwen_session_next_token(session, &token) >= 0);
    OK(qwen_session_position(session, &needed));
    CHECK(needed == 5);
    free(text);
    free(zeros);
    qwen_session_free(session);
    qwen_model_free(model);
}

int main(int argc, char **argv) {
    int32_t made[8];
    CHECK(argc >= 3);
    path = argv[1];
    const char *what = argv[2];
    if (strcmp(what, "silent") == 0) {
        work(NULL, made);
    } else if (strcmp(what, "locale") == 0) {
        CHECK(argc == 4);
        locale_of(argv[3]);
    } else if (strcmp(what, "signals") == 0) {
        signals();
    } else if (strcmp(what, "directory") == 0) {
        directory();
    } else if (strcmp(what, "closed") == 0) {
        closed();
    } else if (strcmp(what, "pipe") == 0) {
        broken_pipe();
    } else if (strcmp(what, "fork") == 0) {
        forked();
    } else if (strcmp(what, "descriptors") == 0) {
        limited(RLIMIT_NOFILE, 3);
    } else if (strcmp(what, "memory") == 0) {
        limited(RLIMIT_AS, (rlim_t)600 << 20);
    } else if (strcmp(what, "large") == 0) {
        large_inputs();
    } else {
        CHECK(!"known");
    }
    return 0;
}
