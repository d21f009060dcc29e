/* Runs a program in a terminal of its own and plays a person. Arguments: the program and its
 * arguments. The script comes on standard input, a step per line:
 *   expect TEXT   wait until TEXT was printed after what the last step found
 *   send TEXT     type TEXT and Enter
 *   key C         type Control-C (Enter is M)
 *   pause MS
 *   exit STATUS   wait for the end, and check the exit status
 * `\n` in TEXT is a line break (a terminal makes it \r\n). */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char output[1 << 20];
static size_t length, seen;
static int terminal;
static pid_t child;

static void fail(const char *step) {
    fprintf(stderr, "step failed: %s\nthe terminal shows after the last match:\n%s\n", step,
            output + seen);
    kill(child, SIGKILL);
    exit(1);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Takes what comes within `ms`. Returns 0 when the program closed the terminal. */
static int take(int ms) {
    struct pollfd wait = {terminal, POLLIN, 0};
    if (poll(&wait, 1, ms) > 0) {
        ssize_t got = read(terminal, output + length, sizeof output - 1 - length);
        if (got <= 0) {
            return 0;
        }
        length += (size_t)got;
    }
    return 1;
}

static void type(const char *text, size_t size) {
    if (write(terminal, text, size) != (ssize_t)size) {
        fail("typing");
    }
}

/* `\n` as the terminal shows it. */
static void unescape(char *text) {
    char *to = text;
    for (char *from = text; *from != '\0'; from++) {
        if (from[0] == '\\' && from[1] == 'n') {
            *to++ = '\r';
            *to++ = '\n';
            from++;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

static void expect(const char *text, const char *step) {
    double until = seconds() + 120;
    char *found;
    while ((found = strstr(output + seen, text)) == NULL) {
        int open = take(100);
        if (!open && strstr(output + seen, text) == NULL) {
            fail(step);
        }
        if (seconds() > until) {
            fail(step);
        }
    }
    seen = (size_t)(found - output) + strlen(text);
}

static void check_exit(int expected, const char *step) {
    double until = seconds() + 120;
    int state = 0;
    while (waitpid(child, &state, WNOHANG) == 0) {
        take(20);
        if (seconds() > until) {
            fail(step);
        }
    }
    while (take(0) && seconds() < until) {
        struct pollfd more = {terminal, POLLIN, 0};
        if (poll(&more, 1, 0) <= 0) {
            break;
        }
    }
    if (!WIFEXITED(state) || WEXITSTATUS(state) != expected) {
        fprintf(stderr, "wait status 0x%x\n", (unsigned)state);
        fail(step);
    }
}

int main(int argc, char **argv) {
    static char step[1 << 16];
    if (argc < 2) {
        return 2;
    }
    child = forkpty(&terminal, NULL, NULL, NULL);
    if (child == 0) {
        execv(argv[1], argv + 1);
        _exit(127);
    }
    while (fgets(step, sizeof step, stdin) != NULL) {
        step[strcspn(step, "\n")] = '\0';
        char *text = strchr(step, ' ');
        text = text == NULL ? step + strlen(step) : text + 1;
        if (strncmp(step, "expect ", 7) == 0) {
            unescape(text);
            expect(text, step);
        } else if (strncmp(step, "send ", 5) == 0) {
            type(text, strlen(text));
            type("\r", 1);
        } else if (strncmp(step, "key ", 4) == 0) {
            char key = (char)(*text & 0x1F);
            type(&key, 1);
        } else if (strncmp(step, "pause ", 6) == 0) {
            struct timespec time = {0, atol(text) * 1000000};
            nanosleep(&time, NULL);
        } else if (strncmp(step, "exit ", 5) == 0) {
            check_exit(atoi(text), step);
            return 0;
        } else {
            fail(step);
        }
    }
    fail("the script has no exit");
}
