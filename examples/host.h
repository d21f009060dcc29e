/* What the C hosts share: messages, arguments, input, JSON, finding a model. */
#ifndef HOST_H
#define HOST_H

#include <stddef.h>
#include <stdint.h>

#include "qwen35.h"

/* Exit statuses: the work failed; the command line was wrong; Ctrl-C ended it. */
enum { HOST_FAILED = 1, HOST_USAGE = 2, HOST_INTERRUPTED = 130 };

/* The program's name, for messages. Set first. */
extern const char *host_name;

/* Prints "NAME: message" to standard error and exits with `status`. */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 2, 3)))
#endif
void host_die(int status, const char *format, ...);

/* Exits with the library's own message unless `status` is QWEN_OK or an outcome. */
qwen_status host_check(qwen_status status, const char *doing);

/* Bytes that grow. Zeros are an empty one; free(bytes.data) when done. */
typedef struct {
    char *data; /* NUL after the last byte, or NULL when nothing was added yet */
    size_t length;
    size_t capacity;
} host_bytes;

void host_add(host_bytes *bytes, const char *data, size_t length);
void host_add_text(host_bytes *bytes, const char *text);
/* Adds a JSON string: quoted, and escaped as JSON asks for. `data` is UTF-8. */
void host_add_json(host_bytes *bytes, const char *data, size_t length);

/* All of standard input. Exits if it cannot be read. */
host_bytes host_read_input(void);

/* 1 for "--help" and "-h". */
int host_wants_help(const char *argument);
/* A whole number from `low` to `high`, or exit with HOST_USAGE naming `what`. */
long long host_integer(const char *text, const char *what, long long low, long long high);
/* A decimal number from `low` to `high`, or exit with HOST_USAGE naming `what`. */
double host_number(const char *text, const char *what, double low, double high);
/* Token ids with commas or white space between, for free(). Writes zeros over the separators.
 * Exits if something else is there. */
int32_t *host_ids(char *text, size_t *count);
/* 1 if `text` is a whole number without anything else. */
int host_is_integer(const char *text);
/* The constant for "scalar", "avx2", "avx512" or "auto", or exit with HOST_USAGE. */
qwen_isa host_isa(const char *text);
/* The constant for "bf16" (weights as stored), "int8" or "int4", or exit with HOST_USAGE. */
qwen_weights host_weights(const char *text);
/* The constant for "exact" or "fast", or exit with HOST_USAGE. */
qwen_compute host_compute(const char *text);
/* The constant for "fp16", "fp32" or "int8" keys and values, or exit with HOST_USAGE. */
qwen_kv host_kv(const char *text);

/* 1 if `path` looks like a model: a packed file, a folder with config.json, a weight file. */
int host_is_model(const char *path);
/* The model to use when none is named: model/ if it is there, else examples/demo-model, in
 * the working directory or beside the program's own. Says on standard error if it is the
 * demo. Valid until the program ends. */
const char *host_default_model(void);

/* Opens a model, or exits with what is wrong. */
qwen_model *host_open(const char *path, const qwen_model_options *options);

/* Seconds of a clock that never goes back. */
double host_seconds(void);

/* Flushes standard output, or exits: a full disk must not look like success. */
void host_flush(void);

#endif
