/* A conversation with a model, or one answer, in the terminal or in a pipe. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/select.h>
#include <unistd.h>

#include "host.h"

static const char help[] =
    "usage: qwen [MODEL] [OPTIONS] PROMPT [N]\n"
    "       qwen [MODEL] [OPTIONS] --sample PROMPT [N [T [K]]]\n"
    "       qwen [MODEL] [OPTIONS] --chat [N [T [K]]]\n"
    "\n"
    "Answers PROMPT with the most likely tokens (N at most, default 32), with drawn ones\n"
    "(--sample), or holds a conversation, one message per line (--chat, N default 64).\n"
    "N: most tokens of an answer. T: temperature in percent, 0 to 200 (default 70).\n"
    "K: draw among the K most likely tokens, 1 to 100 (default 40).\n"
    "Answers go to standard output, everything else to standard error.\n"
    "\n"
    "MODEL is a folder with config.json, or a .safetensors file in one. Without it: model/\n"
    "if it is there, else the demo in examples/demo-model.\n"
    "\n"
    "  --model PATH        the model, in place of the leading MODEL\n"
    "  --max-tokens N      most tokens of an answer\n"
    "  --temperature X     0 (most likely token) to 2; 0.7 is T = 70\n"
    "  --top-k K           draw among the K most likely tokens\n"
    "  --top-p X           draw among the tokens that together reach this probability\n"
    "  --presence-penalty X  make tokens less likely once the answer has them (default 0)\n"
    "  --seed N            start of the random numbers (default: another one each time)\n"
    "  --system TEXT       a system message in front of the conversation\n"
    "  --session FILE      with --chat: go on with the conversation in FILE, if it is there, and\n"
    "                      keep it there after each answer\n"
    "  --stop TEXT         end an answer before TEXT; may be given several times\n"
    "  --think             let the model think first; thoughts go to standard error\n"
    "  --think-budget N    close the thoughts after N tokens; the answer follows\n"
    "  --raw               continue PROMPT as it is, without the chat template\n"
    "  --threads N         threads that compute (default: as many as this process may use)\n"
    "  --isa NAME          scalar, avx2, avx512 or auto (default)\n"
    "  --weights NAME      bf16 (as stored, default), or int8 or int4, made at open:\n"
    "                      faster and smaller, a little less exact\n"
    "  --compute NAME      exact (default with bf16) or fast (default with int8 and int4)\n"
    "  --kv NAME           keys and values of the conversation in fp32 (default with exact),\n"
    "                      fp16 (default with fast) or int8: less memory, and faster when long\n"
    "  --stats             after each answer: times, rates, what was reused, memory; on a\n"
    "                      terminal the times are always shown\n"
    "  -h, --help          this text\n"
    "  --                  what follows is no option\n"
    "\n"
    "In a conversation: /reset starts anew, /exit or Ctrl-D leaves. Ctrl-C cancels the\n"
    "answer; a second one, or one at the prompt, leaves.\n";

enum mode { ANSWER, SAMPLE, CHAT };

typedef struct {
    enum mode mode;
    const char *model, *prompt, *system, *file;
    long long max_tokens;
    double temperature, top_p, presence_penalty;
    uint32_t top_k, threads;
    qwen_isa isa;
    qwen_weights weights;
    qwen_compute compute;
    qwen_kv kv;
    int has_seed, think, raw, stats;
    uint64_t seed;
    uint32_t think_budget;
    const char **stops;
    uint32_t stop_count;
} settings;

/* What is open, and how the call in progress is going. */
typedef struct {
    const settings *set;
    qwen_model *model;
    qwen_session *session;
    qwen_conversation *conversation;
    int terminal;           /* standard error is one */
    int shows_progress;     /* a progress line is on it */
    int yields;             /* what is computed can wait for the next message */
    double began, shown;    /* seconds */
    size_t prompt_tokens, computed_tokens;
} host;

/* Ctrl-C since the last prompt. */
static volatile sig_atomic_t interrupts = 0;

static void on_interrupt(int signal) {
    (void)signal;
    if (++interrupts > 1) {
        _exit(HOST_INTERRUPTED);
    }
}

/* Whether there is something to read from standard input. */
static int has_input(void) {
    struct timeval now = {0, 0};
    fd_set input;
    FD_ZERO(&input);
    FD_SET(STDIN_FILENO, &input);
    return select(STDIN_FILENO + 1, &input, NULL, NULL, &now) > 0;
}

/* The library asks this between layers; not 0 cancels the call. */
static int32_t on_progress(size_t done, size_t total, void *user) {
    host *h = user;
    double now = host_seconds();
    if (h->yields) {
        return interrupts > 0 || has_input();
    }
    if (h->terminal && total > 1 && now - h->began > 0.5 && now - h->shown > 0.1) {
        fprintf(stderr, "\rreading: %zu of %zu tokens", done, total);
        fflush(stderr);
        h->shows_progress = 1;
        h->shown = now;
    }
    return interrupts > 0;
}

static void end_progress(host *h) {
    if (h->shows_progress) {
        fputs("\r\033[K", stderr);
        h->shows_progress = 0;
    }
}

/* Exits unless `text` is UTF-8. */
static void check_text(host *h, const char *what, const char *text) {
    size_t needed;
    if (qwen_tokenize(h->model, text, QWEN_NUL, 0, NULL, 0, &needed) != QWEN_OK) {
        host_die(HOST_FAILED, "%s: %s", what, qwen_last_error());
    }
}

/* ---- the conversation ---------------------------------------------------------------- */

static void begin_conversation(host *h) {
    const settings *set = h->set;
    qwen_conversation_options options = QWEN_CONVERSATION_OPTIONS_INIT;
    options.thinking = set->think ? QWEN_THINKING_ON : QWEN_THINKING_OFF;
    options.thinking_budget = set->think_budget;
    options.max_tokens = (uint32_t)set->max_tokens;
    options.stop = set->stops;
    options.stop_count = set->stop_count;
    options.system = set->system;
    options.system_length = set->system != NULL ? QWEN_NUL : 0;
    qwen_conversation_free(h->conversation);
    host_check(qwen_conversation_new(h->session, &options, &h->conversation),
               "begin a conversation");
}

/* Keeps the conversation in the file of --session: the messages go with the session. */
static void keep(host *h) {
    size_t size;
    if (h->set->file == NULL) {
        return;
    }
    host_check(qwen_conversation_history(h->conversation, NULL, 0, &size), "keep the messages");
    char *json = malloc(size);
    if (json == NULL) {
        host_die(HOST_FAILED, "out of memory");
    }
    host_check(qwen_conversation_history(h->conversation, json, size, &size), "keep the messages");
    host_check(qwen_session_set_attachment(h->session, json, size), "keep the messages");
    host_check(qwen_session_save_file(h->session, h->set->file, QWEN_NUL, 0),
               "save the conversation");
    free(json);
}

/* Goes on with the conversation in the file of --session, if there is one. */
static void resume(host *h, const qwen_sampling_options *sampling) {
    const void *data;
    size_t size, position;
    if (h->set->file == NULL || access(h->set->file, F_OK) != 0) {
        return;
    }
    host_check(qwen_session_restore_file(h->session, h->set->file, QWEN_NUL), "resume");
    /* What this command line says counts, not what that one said. */
    host_check(qwen_session_set_sampling(h->session, sampling), "set the sampling");
    host_check(qwen_session_attachment(h->session, &data, &size), "resume");
    host_check(qwen_session_position(h->session, &position), "resume");
    if (qwen_conversation_set_history(h->conversation, data, size) != QWEN_OK) {
        host_die(HOST_FAILED, "%s holds no conversation of this program", h->set->file);
    }
    fprintf(stderr, "%s: going on after %zu tokens%s\n", host_name, position,
            h->set->system == NULL ? "" : "; --system is for new conversations");
}

/* Says something and has it read. */
static qwen_status say(host *h, const char *text, size_t length) {
    h->began = host_seconds();
    qwen_status status = qwen_conversation_send_text(h->conversation, text, length,
                                                     &h->prompt_tokens, &h->computed_tokens);
    end_progress(h);
    return status;
}

/* ---- one answer ---------------------------------------------------------------------- */

static void write_bytes(FILE *to, const char *text, size_t length) {
    if (fwrite(text, 1, length, to) != length) {
        host_die(HOST_FAILED, "cannot write: %s", strerror(errno));
    }
    if (to == stdout) {
        host_flush();
    }
}

static qwen_statistics statistics(host *h) {
    qwen_statistics now = QWEN_STATISTICS_INIT;
    host_check(qwen_session_get_statistics(h->session, &now), "count");
    return now;
}

/* Times, and with --stats all that the library counts, since `before`. */
static void show_statistics(host *h, const qwen_statistics *before) {
    qwen_statistics now = statistics(h);
    double tokens = (double)(now.output_tokens - before->output_tokens);
    double reading = (double)(now.input_us - before->input_us) * 1e-6;
    double writing = (double)(now.output_us - before->output_us) * 1e-6;
    if (!h->terminal && !h->set->stats) {
        return;
    }
    fprintf(stderr, "[%zu prompt tokens, %zu computed; first token after %.2f s; %.0f tokens",
            h->prompt_tokens, h->computed_tokens,
            tokens > 0 ? (double)now.first_token_us * 1e-6 : 0.0, tokens);
    if (tokens > 1 && writing > 0) {
        fprintf(stderr, ", %.1f per second", tokens / writing);
    }
    fputs("]\n", stderr);
    if (h->set->stats) {
        qwen_model_info info = QWEN_MODEL_INFO_INIT;
        host_check(qwen_model_get_info(h->model, &info), "count");
        fputs("[", stderr);
        if (reading > 0) {
            double read = (double)(now.input_tokens - before->input_tokens);
            fprintf(stderr, "reading %.1f tokens per second; ", read / reading);
        }
        fprintf(stderr,
                "%llu tokens reused, %llu from the cache; %.1f MB for the session, "
                "%.1f MB of weights]\n",
                (unsigned long long)(now.reused_tokens - before->reused_tokens),
                (unsigned long long)(now.cached_tokens - before->cached_tokens),
                (double)now.bytes * 1e-6, (double)info.weight_bytes * 1e-6);
    }
}

/* Writes the reply as it is made. Returns what ended it. */
static qwen_finish write_reply(host *h, const qwen_statistics *before) {
    qwen_piece piece = QWEN_PIECE_INIT;
    int thought = 0, answered = 0;
    do {
        if (interrupts > 0) {
            qwen_conversation_cancel(h->conversation);
        }
        host_check(qwen_conversation_next(h->conversation, &piece), "answer");
        if (piece.kind == QWEN_PIECE_THINKING) {
            write_bytes(stderr, piece.text, piece.text_length);
            thought = 1;
        } else if (piece.kind == QWEN_PIECE_TEXT) {
            if (thought && !answered) {
                fputs("\n", stderr);
            }
            write_bytes(stdout, piece.text, piece.text_length);
            answered = 1;
        }
    } while (piece.kind != QWEN_PIECE_END);
    /* Ctrl-C may have come when the reply was over. */
    qwen_conversation_cancel_clear(h->conversation);
    if (thought && !answered) {
        fputs("\n", stderr);
    }
    write_bytes(stdout, "\n", 1);
    show_statistics(h, before);
    if (piece.finish == QWEN_FINISH_CONTEXT_FULL) {
        fprintf(stderr, "%s: the context is full\n", host_name);
    } else if (piece.finish == QWEN_FINISH_LENGTH && thought && !answered) {
        fprintf(stderr, "%s: the limit of tokens ended it before the answer\n", host_name);
    }
    return piece.finish;
}

/* Continues the text of the session as it is. Returns what ended it: QWEN_OK for the limit of
 * tokens. */
static qwen_status write_continuation(host *h, const qwen_statistics *before) {
    qwen_stream_decoder *decoder = NULL;
    qwen_status status = QWEN_OK;
    const char *text;
    size_t length;
    host_check(qwen_stream_decoder_new(h->model, QWEN_TEXT_SKIP_SPECIAL, &decoder),
               "make a decoder");
    for (long long made = 0; made < h->set->max_tokens && status == QWEN_OK; made++) {
        int32_t token;
        status = interrupts > 0 ? QWEN_CANCELLED
                                : host_check(qwen_session_next_token(h->session, &token), "answer");
        if (status == QWEN_OK) {
            host_check(qwen_stream_decoder_push(decoder, token, &text, &length), "decode");
            write_bytes(stdout, text, length);
        }
    }
    host_check(qwen_stream_decoder_finish(decoder, &text, &length), "decode");
    write_bytes(stdout, text, length);
    write_bytes(stdout, "\n", 1);
    qwen_stream_decoder_free(decoder);
    show_statistics(h, before);
    if (status == QWEN_LIMIT_REACHED) {
        fprintf(stderr, "%s: the context is full\n", host_name);
    }
    return status;
}

/* ---- what the program does ----------------------------------------------------------- */

static int run_prompt(host *h) {
    const qwen_statistics before = statistics(h);
    int cancelled;
    check_text(h, "PROMPT", h->set->prompt);
    h->began = host_seconds();
    qwen_status status;
    if (h->set->raw) {
        status = qwen_session_feed_text(h->session, h->set->prompt, QWEN_NUL, 0);
        end_progress(h);
        host_check(qwen_session_position(h->session, &h->prompt_tokens), "read the prompt");
        h->computed_tokens = h->prompt_tokens;
    } else {
        begin_conversation(h);
        status = say(h, h->set->prompt, QWEN_NUL);
    }
    if (status < 0) {
        host_die(HOST_FAILED, "cannot read the prompt: %s", qwen_last_error());
    }
    if (status != QWEN_OK) {
        cancelled = status == QWEN_CANCELLED;
    } else if (h->set->raw) {
        cancelled = write_continuation(h, &before) == QWEN_CANCELLED;
    } else {
        cancelled = write_reply(h, &before) == QWEN_FINISH_CANCELLED;
    }
    return cancelled ? HOST_INTERRUPTED : 0;
}

/* Uses the time until something is typed: what the template changes about the last answer, now
 * that it is history, is computed before the next message waits for it. */
static void settle(host *h) {
    h->yields = 1;
    host_check(qwen_conversation_settle(h->conversation, NULL, NULL), "settle");
    h->yields = 0;
}

/* Waits until a line was typed; 0 when Ctrl-C was pressed since `interrupts` was set to 0. The
 * signal is let in only while it would end the wait, so that none falls in between. */
static int wait_for_line(void) {
    sigset_t interrupt, before;
    fd_set input;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    FD_ZERO(&input);
    FD_SET(STDIN_FILENO, &input);
    sigprocmask(SIG_BLOCK, &interrupt, &before);
    while (interrupts == 0 &&
           pselect(STDIN_FILENO + 1, &input, NULL, NULL, NULL, &before) < 0 && errno == EINTR) {
        FD_SET(STDIN_FILENO, &input);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return interrupts == 0;
}

/* Reads a message. Returns 0 at the end of the input, or when Ctrl-C was pressed. */
static int read_message(host *h, char **line, size_t *capacity, size_t *length,
                        int interactive) {
    interrupts = 0;
    if (interactive) {
        fputs("> ", stderr);
        fflush(stderr);
        settle(h);
        if (!wait_for_line()) {
            fputc('\n', stderr);
            return 0;
        }
    }
    errno = 0;
    ssize_t got = getline(line, capacity, stdin);
    if (got < 0) {
        if (errno != 0 && errno != EINTR) {
            host_die(HOST_FAILED, "cannot read standard input: %s", strerror(errno));
        }
        if (interactive) {
            fputc('\n', stderr);
        }
        return 0;
    }
    *length = (size_t)got;
    while (*length > 0 && ((*line)[*length - 1] == '\n' || (*line)[*length - 1] == '\r')) {
        --*length;
    }
    (*line)[*length] = '\0';
    return 1;
}

static int run_chat(host *h, const qwen_sampling_options *sampling) {
    int interactive = isatty(STDIN_FILENO) && h->terminal;
    char *line = NULL;
    size_t capacity = 0, length = 0;
    begin_conversation(h);
    resume(h, sampling);
    while (read_message(h, &line, &capacity, &length, interactive)) {
        size_t needed;
        if (length == 0) {
            continue;
        }
        if (strcmp(line, "/exit") == 0) {
            break;
        }
        if (strcmp(line, "/reset") == 0) {
            host_check(qwen_session_reset(h->session), "reset");
            begin_conversation(h);
            keep(h);
            fprintf(stderr, "%s: a new conversation\n", host_name);
            continue;
        }
        const qwen_statistics before = statistics(h);
        /* The same checks as in sending, but with positions in this line. */
        qwen_status status = qwen_tokenize(h->model, line, length, 0, NULL, 0, &needed);
        if (status == QWEN_OK) {
            status = say(h, line, length); /* if it fails, it is as if it had not been said */
        }
        if (status < 0) {
            if (!interactive) {
                host_die(HOST_FAILED, "cannot read the message: %s", qwen_last_error());
            }
            fprintf(stderr, "%s: %s\n", host_name, qwen_last_error());
        } else if (status == QWEN_CANCELLED) {
            fprintf(stderr, "%s: cancelled\n", host_name);
        } else {
            write_reply(h, &before);
            keep(h);
        }
    }
    free(line);
    return 0;
}

/* ---- the command line ---------------------------------------------------------------- */

/* Takes the arguments that are no options: [MODEL] PROMPT [N [T [K]]], without PROMPT for a
 * conversation. `before` of them came before --chat or --sample. */
static void take_places(settings *set, char **places, int count, int before) {
    int numbers = set->mode == ANSWER ? 1 : 3, has_prompt = set->mode != CHAT;
    int most = has_prompt + numbers;
    if (set->model == NULL && count > 0) {
        /* A leading MODEL: what came before the mode, what is a model, or what can be
         * nothing else. */
        int leads = before > 0 && set->mode != ANSWER;
        leads |= count > has_prompt && host_is_model(places[0]);
        leads |= has_prompt && count > most;
        leads |= has_prompt && count > 1 && !host_is_integer(places[1]);
        leads |= !has_prompt && !host_is_integer(places[0]);
        if (leads) {
            set->model = *places++;
            count--;
        }
    }
    if (has_prompt) {
        if (count == 0) {
            fputs(help, stderr);
            exit(HOST_USAGE);
        }
        if (set->model == NULL && count == 1 && host_is_model(places[0])) {
            host_die(HOST_USAGE, "\"%s\" is a model; what to answer is missing (--chat talks)",
                     places[0]);
        }
        set->prompt = *places++;
        count--;
    }
    if (count > numbers) {
        host_die(HOST_USAGE, "one argument too many: \"%s\"; see --help", places[numbers]);
    }
    if (count > 0) {
        set->max_tokens = host_integer(places[0], "N", 1, 1 << 20);
    }
    if (count > 1) {
        set->temperature = (double)host_integer(places[1], "T", 0, 200) / 100;
    }
    if (count > 2) {
        set->top_k = (uint32_t)host_integer(places[2], "K", 1, 100);
    }
}

static settings parse(int argc, char **argv) {
    settings set = {0};
    char **places = calloc((size_t)argc + 1, sizeof *places);
    const char **stops = calloc((size_t)argc + 1, sizeof *stops);
    int count = 0, before = 0, options = 1;
    double max_tokens = 0, temperature = -1, top_k = 0; /* options win over places */
    if (places == NULL || stops == NULL) {
        host_die(HOST_FAILED, "out of memory");
    }
    set.top_p = 1;
    set.stops = stops;
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i], *value = NULL;
        if (options && host_wants_help(name)) {
            fputs(help, stdout);
            host_flush();
            exit(0);
        }
        if (!options || name[0] != '-' || name[1] != '-') {
            places[count++] = argv[i];
            continue;
        }
        if (strcmp(name, "--") == 0) {
            options = 0;
        } else if (strcmp(name, "--chat") == 0 || strcmp(name, "--sample") == 0) {
            set.mode = name[2] == 'c' ? CHAT : SAMPLE;
            before = count;
        } else if (strcmp(name, "--think") == 0) {
            set.think = 1;
        } else if (strcmp(name, "--raw") == 0) {
            set.raw = 1;
        } else if (strcmp(name, "--stats") == 0) {
            set.stats = 1;
        } else if ((value = argv[++i]) == NULL) {
            host_die(HOST_USAGE, "%s is unknown, or needs a value; see --help", name);
        } else if (strcmp(name, "--model") == 0) {
            set.model = value;
        } else if (strcmp(name, "--system") == 0) {
            set.system = value;
        } else if (strcmp(name, "--session") == 0) {
            set.file = value;
        } else if (strcmp(name, "--stop") == 0) {
            stops[set.stop_count++] = value;
        } else if (strcmp(name, "--think-budget") == 0) {
            set.think_budget = (uint32_t)host_integer(value, name, 1, 1 << 20);
            set.think = 1;
        } else if (strcmp(name, "--max-tokens") == 0) {
            max_tokens = (double)host_integer(value, name, 1, 1 << 20);
        } else if (strcmp(name, "--temperature") == 0) {
            temperature = host_number(value, name, 0, 2);
        } else if (strcmp(name, "--top-k") == 0) {
            top_k = (double)host_integer(value, name, 1, 1 << 20);
        } else if (strcmp(name, "--top-p") == 0) {
            set.top_p = host_number(value, name, 0, 1);
        } else if (strcmp(name, "--presence-penalty") == 0) {
            set.presence_penalty = host_number(value, name, -2, 2);
        } else if (strcmp(name, "--seed") == 0) {
            set.seed = (uint64_t)host_integer(value, name, 0, INT64_MAX);
            set.has_seed = 1;
        } else if (strcmp(name, "--threads") == 0) {
            set.threads = (uint32_t)host_integer(value, name, 1, 512);
        } else if (strcmp(name, "--isa") == 0) {
            set.isa = host_isa(value);
        } else if (strcmp(name, "--weights") == 0) {
            set.weights = host_weights(value);
        } else if (strcmp(name, "--compute") == 0) {
            set.compute = host_compute(value);
        } else if (strcmp(name, "--kv") == 0) {
            set.kv = host_kv(value);
        } else {
            host_die(HOST_USAGE, "unknown option %s; see --help", name);
        }
    }
    set.max_tokens = set.mode == CHAT ? 64 : 32;
    set.temperature = set.mode == ANSWER ? 0 : 0.7;
    set.top_k = 40;
    take_places(&set, places, count, before);
    free(places);
    set.max_tokens = max_tokens > 0 ? (long long)max_tokens : set.max_tokens;
    set.temperature = temperature >= 0 ? temperature : set.temperature;
    set.top_k = top_k > 0 ? (uint32_t)top_k : set.top_k;
    if (set.raw && (set.mode == CHAT || set.think || set.system != NULL || set.stop_count > 0)) {
        host_die(HOST_USAGE, "--raw goes without the chat template: no --chat, --think, --system, "
                             "--stop");
    }
    if (set.file != NULL && set.mode != CHAT) {
        host_die(HOST_USAGE, "--session is for --chat");
    }
    return set;
}

int main(int argc, char **argv) {
    host_name = "qwen";
    settings set = parse(argc, argv);
    if (set.model == NULL) {
        set.model = host_default_model();
    }
    host h = {0};
    h.set = &set;
    h.terminal = isatty(STDERR_FILENO);

    qwen_model_options model_options = QWEN_MODEL_OPTIONS_INIT;
    model_options.threads = set.threads;
    model_options.isa = set.isa;
    model_options.weights = set.weights;
    model_options.compute = set.compute;
    h.model = host_open(set.model, &model_options);
    if (set.system != NULL) {
        check_text(&h, "--system", set.system);
    }

    /* Exactly what the command line says; the model card's penalties are not in it. */
    qwen_sampling_options sampling = QWEN_SAMPLING_OPTIONS_INIT;
    sampling.preset = QWEN_PRESET_GREEDY;
    sampling.set = QWEN_SET_TEMPERATURE | QWEN_SET_TOP_K | QWEN_SET_TOP_P |
                   QWEN_SET_PRESENCE_PENALTY | (set.has_seed ? QWEN_SET_SEED : 0);
    sampling.temperature = (float)set.temperature;
    sampling.top_k = set.top_k;
    sampling.top_p = (float)set.top_p;
    sampling.presence_penalty = (float)set.presence_penalty;
    sampling.seed = set.seed;
    qwen_session_options session_options = QWEN_SESSION_OPTIONS_INIT;
    session_options.sampling = &sampling;
    session_options.kv = set.kv;
    host_check(qwen_session_new(h.model, &session_options, &h.session), "make a session");
    host_check(qwen_session_set_progress(h.session, on_progress, &h), "watch progress");

    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_interrupt; /* no SA_RESTART: it also ends the wait for input */
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);

    int status = set.mode == CHAT ? run_chat(&h, &sampling) : run_prompt(&h);
    qwen_conversation_free(h.conversation);
    qwen_session_free(h.session);
    qwen_model_free(h.model);
    free(set.stops);
    return status;
}
