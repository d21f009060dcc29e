/* Loaded at run time, by threads that end, many times. Arguments: libqwen35.so, a copy of it
 * under another name, the toy model. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "qwen35.h"

#define CHECK(condition)                                                                       \
    ((condition) ? (void)0                                                                     \
                 : (fprintf(stderr, "%s:%d: CHECK(%s)\n", __FILE__, __LINE__, #condition),     \
                    exit(1)))

static const char *model_path;

static void *symbol(void *library, const char *name) {
    void *found = dlsym(library, name);
    CHECK(found != NULL);
    return found;
}

#define CALL(library, name, type) (*(type *)symbols_cast(symbol(library, name)))

/* ISO C has no cast from an object pointer to a function pointer; POSIX has. */
static void **symbols_cast(void *pointer) {
    static _Thread_local void *kept;
    kept = pointer;
    return &kept;
}

typedef qwen_status open_model(const char *, size_t, const qwen_model_options *, qwen_model **);
typedef qwen_status new_session(const qwen_model *, const qwen_session_options *, qwen_session **);
typedef qwen_status feed(qwen_session *, const int32_t *, size_t);
typedef qwen_status next_token(qwen_session *, int32_t *);
typedef void free_model(qwen_model *);
typedef void free_session(qwen_session *);
typedef const char *last_error(void);

static void *visit(void *name) {
    qwen_model *model = NULL;
    qwen_session *session = NULL;
    int32_t ids[] = {1, 2, 3}, token;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    CHECK(CALL(library, "qwen_model_open", open_model *)("/no", QWEN_NUL, NULL, &model) ==
          QWEN_ERROR_IO);
    CHECK(CALL(library, "qwen_last_error", last_error *)()[0] != '\0');
    CHECK(CALL(library, "qwen_model_open", open_model *)(model_path, QWEN_NUL, NULL, &model) == 0);
    CHECK(CALL(library, "qwen_session_new", new_session *)(model, NULL, &session) == 0);
    CHECK(CALL(library, "qwen_session_feed", feed *)(session, ids, 3) == 0);
    CHECK(CALL(library, "qwen_session_next_token", next_token *)(session, &token) >= 0);
    CALL(library, "qwen_session_free", free_session *)(session);
    CALL(library, "qwen_model_free", free_model *)(model);
    CHECK(dlclose(library) == 0);
    return NULL; /* the thread's own data of the library is destroyed after it is closed */
}

static int entries(const char *path) {
    DIR *folder = opendir(path);
    int count = 0;
    CHECK(folder != NULL);
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

int main(int argc, char **argv) {
    int files = 0, threads = 0;
    CHECK(argc == 4);
    model_path = argv[3];
    for (int i = 0; i < 100; i++) {
        pthread_t a, b;
        CHECK(pthread_create(&a, NULL, visit, argv[1]) == 0);
        CHECK(pthread_create(&b, NULL, visit, argv[2]) == 0);
        CHECK(pthread_join(a, NULL) == 0 && pthread_join(b, NULL) == 0);
        if (i == 0) {
            files = entries("/proc/self/fd");
            threads = entries("/proc/self/task");
        }
    }
    CHECK(entries("/proc/self/fd") == files);
    CHECK(entries("/proc/self/task") == threads);
    return 0;
}
