/* A host with a SIGSEGV handler of its own, which recovers from faults while the library works
 * on other threads: the toy model. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "../c/check.h"

static sigjmp_buf back;
static atomic_int stop, rounds;

static void on_fault(int number) {
    (void)number;
    siglongjmp(back, 1);
}

static void *work(void *session) {
    int32_t ids[] = {1, 2, 3, 4}, token;
    while (!stop) {
        OK(qwen_session_feed(session, ids, 4));
        CHECK(qwen_session_next_token(session, &token) >= 0);
        OK(qwen_session_reset(session));
        rounds++;
    }
    return NULL;
}

int main(int argc, char **argv) {
    struct sigaction mine, now;
    qwen_model *model = NULL;
    qwen_session *session = NULL;
    pthread_t thread;
    static volatile int faults;
    CHECK(argc == 2);
    volatile char *closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(closed != MAP_FAILED);
    memset(&mine, 0, sizeof mine);
    mine.sa_handler = on_fault;
    CHECK(sigaction(SIGSEGV, &mine, NULL) == 0 && sigaction(SIGBUS, &mine, NULL) == 0);
    OK(qwen_model_open(argv[1], QWEN_NUL, NULL, &model));
    OK(qwen_session_new(model, NULL, &session));
    CHECK(pthread_create(&thread, NULL, work, session) == 0);
    while (faults < 100 || rounds < 3) {
        if (sigsetjmp(back, 1) == 0) {
            *closed = 1;
            CHECK(!"a fault");
        }
        faults++;
    }
    stop = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_handler == on_fault);
    qwen_session_free(session);
    qwen_model_free(model);
    return 0;
}
