/* A checkpoint folder to one packed file, and the check of such a file. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

static const char help[] =
    "usage: qwen-pack MODEL FILE [--weights FORMAT] [--threads N]\n"
    "       qwen-pack --verify FILE\n"
    "       qwen-pack --info FILE [CONTEXT]\n"
    "\n"
    "Packs the model in the folder MODEL into FILE: weights, tokenizer, chat template and\n"
    "configuration. Every program that takes a model folder takes the file instead, and opens\n"
    "it faster. FILE is there when it is whole; Ctrl-C leaves nothing behind.\n"
    "\n"
    "  --weights  bf16 (as the checkpoint stores them, the default), int8 or int4\n"
    "  --threads  that quantize (default: as many as this process may use)\n"
    "  --verify   check every byte of FILE, which opening does not do for large weights\n"
    "  --info     what FILE (or a folder) takes in memory, with a session of CONTEXT tokens\n"
    "             (default: 2048)\n"
    "  --quiet    no progress\n"
    "  -h, --help this text\n";

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal) {
    (void)signal;
    interrupted = 1;
}

/* Shows the percentage on a terminal, and ends the work after Ctrl-C. */
static int32_t on_progress(uint64_t done, uint64_t total, void *user) {
    int *shown = user; /* the percentage on the screen; -2 shows nothing */
    int now = total > 0 ? (int)(done * 100 / total) : 100;
    if (*shown != -2 && now != *shown) {
        fprintf(stderr, "\r%3d%%", now);
        *shown = now;
    }
    return interrupted;
}

/* Ends the line of the percentage, and the program if the work did not succeed. */
static void finish(qwen_status status, const int *shown, const char *doing) {
    if (*shown >= 0) {
        fputs("\r", stderr);
    }
    host_check(status, doing);
    if (status == QWEN_CANCELLED) {
        host_die(HOST_INTERRUPTED, "interrupted; nothing was changed");
    }
}

static void print_info(const char *path, long long context) {
    qwen_model_cost cost = QWEN_MODEL_COST_INIT;
    host_check(qwen_model_estimate(path, QWEN_NUL, NULL, (uint64_t)context, &cost),
               "estimate the memory");
    printf("weights          %10.1f MB, of which %.1f MB are mapped from the file\n",
           (double)cost.weight_bytes / 1e6, (double)cost.mapped_bytes / 1e6);
    printf("a session        %10.1f MB with %lld tokens, %.1f MB at its start\n",
           (double)cost.session_bytes / 1e6, context, (double)cost.session_start_bytes / 1e6);
    printf("a copy of one    %10.1f MB beyond what the two share\n",
           (double)cost.copy_bytes / 1e6);
    printf("while computing  %10.1f MB for each session that does at the same time\n",
           (double)cost.scratch_bytes / 1e6);
    host_flush();
}

int main(int argc, char **argv) {
    const char *names[3] = {NULL, NULL, NULL};
    qwen_pack_options options = QWEN_PACK_OPTIONS_INIT;
    int count = 0, check = 0, info = 0;
    int shown = isatty(STDERR_FILENO) ? -1 : -2;
    host_name = "qwen-pack";
    for (int i = 1; i < argc; i++) {
        if (host_wants_help(argv[i])) {
            fputs(help, stdout);
            host_flush();
            return 0;
        } else if (strcmp(argv[i], "--verify") == 0) {
            check = 1;
        } else if (strcmp(argv[i], "--info") == 0) {
            info = 1;
        } else if (strcmp(argv[i], "--weights") == 0) {
            options.weights = host_weights(i + 1 < argc ? argv[i + 1] : ""), i++;
        } else if (strcmp(argv[i], "--threads") == 0) {
            const char *value = i + 1 < argc ? argv[i + 1] : "";
            options.threads = (uint32_t)host_integer(value, "--threads", 1, 512), i++;
        } else if (strcmp(argv[i], "--quiet") == 0) {
            shown = -2;
        } else if (argv[i][0] == '-' && argv[i][1] == '-') {
            host_die(HOST_USAGE, "unknown option %s; see --help", argv[i]);
        } else if (count < 3) {
            names[count++] = argv[i];
        } else {
            host_die(HOST_USAGE, "unexpected argument \"%s\"; see --help", argv[i]);
        }
    }
    if (check + info > 1) {
        host_die(HOST_USAGE, "--verify or --info, not both");
    }
    if (info && (count == 1 || count == 2)) {
        print_info(names[0],
                   count == 2 ? host_integer(names[1], "CONTEXT", 0, 1LL << 40) : 2048);
        return 0;
    }
    if (count != (check ? 1 : 2) || info) {
        fputs(help, stderr);
        return HOST_USAGE;
    }

    signal(SIGINT, on_interrupt);
    double start = host_seconds();
    if (check) {
        finish(qwen_pack_verify(names[0], QWEN_NUL, on_progress, &shown), &shown,
               "accept the file");
        fprintf(stderr, "%s is whole (%.1f s)\n", names[0], host_seconds() - start);
        return 0;
    }
    qwen_pack_info made = QWEN_PACK_INFO_INIT;
    finish(qwen_pack(names[0], QWEN_NUL, names[1], QWEN_NUL, &options, on_progress, &shown, &made),
           &shown, "pack the model");
    fprintf(stderr, "%s: %.1f MB, of which %.1f MB weights, fingerprint %016llx (%.1f s)\n",
            names[1], (double)made.file_bytes / 1e6, (double)made.weight_bytes / 1e6,
            (unsigned long long)made.fingerprint, host_seconds() - start);
    return 0;
}
