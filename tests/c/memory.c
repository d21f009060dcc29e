/* Nothing is kept: opening and closing many times costs no memory, no threads and no files.
 * Arguments: the toy model, and a folder that is no model. */
#define _GNU_SOURCE
#include <dirent.h>
#include <unistd.h>

#include "check.h"

static long resident_kb(void) {
    long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%ld %ld", &total, &resident) == 2);
    fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
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

static void cycle(const char *path, const char *broken, int sessions) {
    qwen_model *model = NULL, *none = NULL;
    int32_t ids[] = {1, 2, 3, 4, 5, 6, 7, 8}, token;
    OK(qwen_model_open(path, QWEN_NUL, NULL, &model));
    for (int i = 0; i < sessions; i++) {
        qwen_session *session = NULL;
        OK(qwen_session_new(model, NULL, &session));
        OK(qwen_session_feed(session, ids, 8));
        CHECK(qwen_session_next_token(session, &token) >= 0);
        qwen_session_free(session);
    }
    CHECK(qwen_model_open(broken, QWEN_NUL, NULL, &none) < 0);
    qwen_model_free(model);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    for (int i = 0; i < 20; i++) {
        cycle(argv[1], argv[2], 25);
    }
    long before = resident_kb();
    int threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
    for (int i = 0; i < 20; i++) {
        cycle(argv[1], argv[2], 25);
    }
    long grown = resident_kb() - before;
    fprintf(stderr, "20 models and 500 sessions: %ld KB more\n", grown);
    CHECK(grown < 20 * 512);
    CHECK(entries("/proc/self/task") == threads && threads <= 3 + 1); /* ., .. and this one */
    CHECK(entries("/proc/self/fd") == files);
    return 0;
}
