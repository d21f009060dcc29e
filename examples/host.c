#define _POSIX_C_SOURCE 200809L

#include "host.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char *host_name = "qwen";

void host_die(int status, const char *format, ...) {
    va_list arguments;
    fflush(stdout);
    fprintf(stderr, "%s: ", host_name);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    exit(status);
}

qwen_status host_check(qwen_status status, const char *doing) {
    if (status < 0) {
        host_die(HOST_FAILED, "cannot %s: %s", doing, qwen_last_error());
    }
    return status;
}

void host_add(host_bytes *bytes, const char *data, size_t length) {
    if (bytes->capacity - bytes->length <= length) {
        size_t capacity = (bytes->length + length) * 2 + 64;
        char *grown = capacity > length ? realloc(bytes->data, capacity) : NULL;
        if (grown == NULL) {
            host_die(HOST_FAILED, "out of memory");
        }
        bytes->data = grown;
        bytes->capacity = capacity;
    }
    if (length > 0) {
        memcpy(bytes->data + bytes->length, data, length);
    }
    bytes->length += length;
    bytes->data[bytes->length] = '\0';
}

void host_add_text(host_bytes *bytes, const char *text) { host_add(bytes, text, strlen(text)); }

void host_add_json(host_bytes *bytes, const char *data, size_t length) {
    size_t done = 0;
    host_add(bytes, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)data[i];
        if (byte >= 0x20 && byte != '"' && byte != '\\') {
            continue; /* UTF-8 goes as it is */
        }
        char escape[8];
        snprintf(escape, sizeof escape, byte >= 0x20 ? "\\%c" : "\\u%04x", byte);
        host_add(bytes, data + done, i - done);
        host_add_text(bytes, escape);
        done = i + 1;
    }
    host_add(bytes, data + done, length - done);
    host_add(bytes, "\"", 1);
}

host_bytes host_read_input(void) {
    host_bytes input = {0};
    char block[1 << 16];
    size_t got;
    host_add(&input, "", 0);
    while ((got = fread(block, 1, sizeof block, stdin)) > 0) {
        host_add(&input, block, got);
    }
    if (ferror(stdin)) {
        host_die(HOST_FAILED, "cannot read standard input: %s", strerror(errno));
    }
    return input;
}

int host_is_integer(const char *text) {
    size_t digits = strspn(text, "0123456789");
    return digits > 0 && text[digits] == '\0';
}

long long host_integer(const char *text, const char *what, long long low, long long high) {
    errno = 0;
    long long value = host_is_integer(text) ? strtoll(text, NULL, 10) : -1;
    if (value < 0 || errno != 0 || value < low || value > high) {
        host_die(HOST_USAGE, "%s must be a whole number from %lld to %lld, not \"%s\"", what,
                 low, high, text);
    }
    return value;
}

int32_t *host_ids(char *text, size_t *count) {
    static const char between[] = ", \t\r\n";
    int32_t *ids = malloc((strlen(text) / 2 + 2) * sizeof *ids);
    if (ids == NULL) {
        host_die(HOST_FAILED, "out of memory");
    }
    *count = 0;
    for (char *word = strtok(text, between); word != NULL; word = strtok(NULL, between)) {
        ids[(*count)++] = (int32_t)host_integer(word, "a token id", 0, INT32_MAX);
    }
    return ids;
}

double host_number(const char *text, const char *what, double low, double high) {
    char *end = NULL;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || isnan(value) || value < low || value > high) {
        host_die(HOST_USAGE, "%s must be a number from %g to %g, not \"%s\"", what, low, high,
                 text);
    }
    return value;
}

qwen_isa host_isa(const char *text) {
    static const char *const names[] = {"auto", "scalar", "avx2", "avx512"};
    static const qwen_isa values[] = {QWEN_ISA_AUTO, QWEN_ISA_SCALAR, QWEN_ISA_AVX2,
                                      QWEN_ISA_AVX512};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0) {
            return values[i];
        }
    }
    host_die(HOST_USAGE, "--isa must be auto, scalar, avx2 or avx512, not \"%s\"", text);
}

qwen_weights host_weights(const char *text) {
    static const char *const names[] = {"bf16", "int8", "int4"};
    static const qwen_weights values[] = {QWEN_WEIGHTS_STORED, QWEN_WEIGHTS_INT8,
                                          QWEN_WEIGHTS_INT4};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0) {
            return values[i];
        }
    }
    host_die(HOST_USAGE, "--weights must be bf16, int8 or int4, not \"%s\"", text);
}

qwen_compute host_compute(const char *text) {
    if (strcmp(text, "exact") == 0) {
        return QWEN_COMPUTE_EXACT;
    }
    if (strcmp(text, "fast") == 0) {
        return QWEN_COMPUTE_FAST;
    }
    host_die(HOST_USAGE, "--compute must be exact or fast, not \"%s\"", text);
}

qwen_kv host_kv(const char *text) {
    static const char *const names[] = {"fp16", "fp32", "int8"};
    static const qwen_kv values[] = {QWEN_KV_FP16, QWEN_KV_FP32, QWEN_KV_INT8};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0) {
            return values[i];
        }
    }
    host_die(HOST_USAGE, "--kv must be fp16, fp32 or int8, not \"%s\"", text);
}

/* 1 if the file at `path` begins as packed models do. */
static int is_packed(const char *path) {
    char start[8] = {0};
    FILE *file = fopen(path, "rb");
    size_t got = file != NULL ? fread(start, 1, sizeof start, file) : 0;
    if (file != NULL) {
        fclose(file);
    }
    return got == sizeof start && memcmp(start, "\x89QWP35\r\n", sizeof start) == 0;
}

int host_is_model(const char *path) {
    static const char ending[] = ".safetensors";
    struct stat status;
    if (stat(path, &status) == 0 && S_ISREG(status.st_mode) && is_packed(path)) {
        return 1;
    }
    size_t length = strlen(path);
    if (length >= sizeof ending && strcmp(path + length - (sizeof ending - 1), ending) == 0) {
        return stat(path, &status) == 0;
    }
    char *config = malloc(length + sizeof "/config.json");
    if (config == NULL) {
        return 0;
    }
    memcpy(config, path, length);
    memcpy(config + length, "/config.json", sizeof "/config.json");
    int found = stat(config, &status) == 0;
    free(config);
    return found;
}

/* `name` inside the folder above the one that this program is in, as ./build/qwen is. */
static const char *beside_program(const char *name) {
    static char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
    if (length <= 0) {
        return "";
    }
    path[length] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (slash == NULL) {
            return "";
        }
        *slash = '\0';
    }
    strcat(path, "/");
    strcat(path, name); /* `name` is one of two short constants: the 64 bytes above */
    return path;
}

const char *host_default_model(void) {
    static const char demo[] = "examples/demo-model";
    const char *path = "model";
    if (host_is_model(path)) {
        return path;
    }
    path = beside_program("model");
    if (host_is_model(path)) {
        return path;
    }
    path = host_is_model(demo) ? demo : beside_program(demo);
    if (!host_is_model(path)) {
        host_die(HOST_FAILED, "no model: run scripts/download_model.sh, or name a folder");
    }
    fprintf(stderr,
            "%s: using %s, a small demo. For the real Qwen3.5-0.8B run "
            "scripts/download_model.sh\n",
            host_name, path);
    return path;
}

qwen_model *host_open(const char *path, const qwen_model_options *options) {
    qwen_model *model = NULL;
    if (qwen_abi_version() != QWEN_ABI_VERSION) {
        host_die(HOST_FAILED, "this is %s, but the program was built for ABI %d",
                 qwen_build_info(), QWEN_ABI_VERSION);
    }
    if (qwen_model_open(path, QWEN_NUL, options, &model) != QWEN_OK) {
        host_die(HOST_FAILED, "cannot open the model \"%s\": %s", path, qwen_last_error());
    }
    return model;
}

double host_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void host_flush(void) {
    if (fflush(stdout) != 0) {
        host_die(HOST_FAILED, "cannot write to standard output: %s", strerror(errno));
    }
    if (ferror(stdout)) { /* an earlier write failed, and nothing of it is left to flush */
        host_die(HOST_FAILED, "cannot write to standard output");
    }
}

int host_wants_help(const char *argument) {
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}
