/*
 * qwen35.h: Qwen3.5 on CPUs, behind a C ABI.
 *
 * Generated from src/capi/ by `make header`. Do not edit.
 *
 * Rules that hold for every function:
 *
 * Results.   A qwen_status is returned: 0 is success, positive is an outcome that is no
 *            error, negative is an error; qwen_last_error() then says what and why. A
 *            handle that a failing call should have made is NULL. Every status can be
 *            QWEN_ERROR_INTERNAL (a defect) beside those listed, and every call on a handle
 *            QWEN_ERROR_INVALID_HANDLE or QWEN_ERROR_BUSY.
 * Threads.   A const handle may be used by many threads at once, a non-const handle by
 *            one at a time; a concurrent call returns QWEN_ERROR_BUSY and does nothing.
 *            qwen_session_cancel() may be called by any thread at any time.
 * Ownership. Handles are freed with their own function, in any order; freeing NULL is fine,
 *            and so is freeing a handle in use: the call inside is cancelled and the memory
 *            goes when it returns. Everything passed in is copied or used only during the
 *            call. Pointers handed out are borrowed, for as long as is said. Nothing is
 *            for free().
 * Strings.   Pointer and length in bytes, UTF-8; QWEN_NUL as the length means up to a NUL.
 *            With a length, U+0000 is text like any other. NULL with length 0 is empty.
 * Buffers.   (buffer, capacity, needed): *needed is set whenever the arguments are valid.
 *            With buffer NULL and capacity 0 that is all. A buffer that is too small gives
 *            QWEN_ERROR_BUFFER_TOO_SMALL and is not written to. No NUL is added.
 * Options.   Structs begin with struct_size: set it to sizeof, everything else to zero
 *            (the ..._OPTIONS_INIT macros do). Zero means default, and so does NULL
 *            instead of the struct.
 * Host.      The library prints nothing, reads no environment variables, installs no signal
 *            handlers, does not depend on the locale or the working directory, and never
 *            ends the process. After fork() a model of the parent computes no more in
 *            the child (QWEN_ERROR_FORKED): open it again there.
 * Stability. Every function is stable: it stays as it is as long as QWEN_ABI_VERSION does
 *            (docs/abi-stability.md). One that were not would begin with "Experimental".
 *
 * Token ids are int32_t, from 0 to one less than the vocabulary size.
 */
#ifndef QWEN35_H
#define QWEN35_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ======================================================================================
 * Status codes and errors
 * ====================================================================================== */

/** What a call came to: QWEN_OK, a positive outcome that is no error, or a negative error. */
typedef int32_t qwen_status;

/** The call did what it is for. */
#define QWEN_OK 0

/** The token just produced ends the turn. The session can be fed and continued. */
#define QWEN_END_OF_TURN 1

/** The context is full: no token was produced. The session stands as it was. */
#define QWEN_LIMIT_REACHED 2

/**
 * qwen_session_cancel() or a progress callback ended the call. The session stands at
 * the position qwen_session_position() reports and can be used on.
 */
#define QWEN_CANCELLED 3

/** The time given to qwen_session_step() is over, and there is more to do. */
#define QWEN_WORKING 4

/** An argument is NULL, out of range, not UTF-8, or does not fit the others. */
#define QWEN_ERROR_INVALID_ARGUMENT (-1)

/** A handle is NULL, of another kind, or was freed. */
#define QWEN_ERROR_INVALID_HANDLE (-2)

/** A call in the wrong order, such as asking for a token before any was fed. */
#define QWEN_ERROR_INVALID_STATE (-3)

/**
 * The caller's buffer is too small; `*needed` says how large it must be. Nothing was
 * written to it.
 */
#define QWEN_ERROR_BUFFER_TOO_SMALL (-4)

/** Another thread (or the callback of this one) is using the handle. */
#define QWEN_ERROR_BUSY (-5)

/** A file could not be opened, mapped or read. */
#define QWEN_ERROR_IO (-6)

/** A file was read, but it is damaged or not what it must be. */
#define QWEN_ERROR_FORMAT (-7)

/** Well-formed, but not something this library (or this CPU) runs. */
#define QWEN_ERROR_UNSUPPORTED (-8)

/** The prompt does not fit into the context. Nothing of it was consumed. */
#define QWEN_ERROR_CONTEXT_OVERFLOW (-9)

/** The chat template refused the messages or could not be run. */
#define QWEN_ERROR_TEMPLATE (-10)

/** Logits or an embedding hold NaN or infinity, or no token is left to choose from. */
#define QWEN_ERROR_NUMERIC (-11)

/** Memory could not be reserved. */
#define QWEN_ERROR_OUT_OF_MEMORY (-12)

/** The process has forked since the model was opened: open it again in the child. */
#define QWEN_ERROR_FORKED (-13)

/** A defect in this library. The handle refuses further use; freeing it still works. */
#define QWEN_ERROR_INTERNAL (-14)

/**
 * What went wrong in the last call of this thread that failed: what, on what (file,
 * tensor, offset, argument), what was expected and what was found. Empty before the
 * first failure.
 *
 * UTF-8, ends with a NUL, never NULL. Borrowed: valid until the next call of this thread
 * that fails, or the end of the thread. Successful calls and positive outcomes leave it.
 */
const char *qwen_last_error(void);

/**
 * The name of a status as it is written in this header, such as "QWEN_ERROR_IO", or
 * "unknown status".
 *
 * The text is static.
 */
const char *qwen_status_name(qwen_status status);

/* ======================================================================================
 * Version
 * ====================================================================================== */

/** The version of this header, to compare with qwen_version() at run time. */
#define QWEN_VERSION_MAJOR 0

/** See QWEN_VERSION_MAJOR. */
#define QWEN_VERSION_MINOR 1

/** See QWEN_VERSION_MAJOR. */
#define QWEN_VERSION_PATCH 0

/**
 * The version of the binary interface, to compare with qwen_abi_version() at run time. It
 * changes, with the SONAME, when a program must be compiled again.
 */
#define QWEN_ABI_VERSION 0

/** The version of the library: "MAJOR.MINOR.PATCH". The text is static. */
const char *qwen_version(void);

/**
 * The QWEN_ABI_VERSION that the library was built with. A program whose header says
 * another number must not go on.
 */
uint32_t qwen_abi_version(void);

/**
 * How the library was built: version, compiler, target, profile. For reports of defects;
 * the form may change. The text is static.
 */
const char *qwen_build_info(void);

/**
 * What the library found on this CPU: the instruction sets it can use and the one it
 * chooses unless qwen_model_options.isa says otherwise. For reports; the form may change.
 *
 * The text is borrowed and stays as it is until the process ends.
 */
const char *qwen_cpu_info(void);

/* ======================================================================================
 * Strings
 * ====================================================================================== */

/** As the length of a string: it ends with a NUL, which is not part of it. */
#define QWEN_NUL SIZE_MAX

/* ======================================================================================
 * Model
 * ====================================================================================== */

/**
 * In qwen_model_options.flags: open the tokenizer and the chat template only. A folder
 * without weights is enough; there are no sessions on such a model.
 */
#define QWEN_MODEL_TOKENIZER_ONLY 1

/**
 * An opened checkpoint: tokenizer, chat template, weights and the threads that compute.
 *
 * Every function takes it as const: many threads may use one model at once. Its sessions
 * and stream decoders keep it open when the handle is freed before them.
 */
typedef struct qwen_model qwen_model;

/** The instruction set that computes: one of the QWEN_ISA constants. */
typedef int32_t qwen_isa;

/** How much a model tells: one of the QWEN_LOG constants, each with all before it. */
typedef int32_t qwen_log_level;

/**
 * Takes a message of a model: one line of UTF-8 without a line break, ending with a NUL that
 * length does not count; valid during the call. It is called on the thread that makes the
 * call that the message is about, which may be any thread that uses the model, under no
 * lock. It must return: an exception or longjmp() through the library is undefined.
 */
typedef void (*qwen_log_callback)(qwen_log_level level,
                                  const char *message,
                                  size_t length,
                                  void *user);

/**
 * What weight matrices are made into when a model is opened: one of the QWEN_WEIGHTS
 * constants.
 */
typedef int32_t qwen_weights;

/** How products with weights are computed: one of the QWEN_COMPUTE constants. */
typedef int32_t qwen_compute;

/**
 * Called on the calling thread while qwen_model_open() and its kin read weights: done of
 * total bytes of the checkpoint are read. (Where the host reads, each byte counts twice: when
 * it is read, and when it is used.) A return value other than 0 ends the call with
 * QWEN_CANCELLED, within some milliseconds, or after the read of the host in progress. No
 * lock is held. It must return: an exception or longjmp() through the library is undefined.
 */
typedef int32_t (*qwen_open_callback)(uint64_t done, uint64_t total, void *user);

/** How to open a model. Zero means default, everywhere. */
typedef struct {
    /** sizeof(qwen_model_options) */
    uint32_t struct_size;
    /** QWEN_MODEL_TOKENIZER_ONLY or 0. */
    uint32_t flags;
    /**
     * Threads that compute, the calling thread included. 0: as many as this process may
     * use (affinity mask and cgroup quota). At most 512. Where the system starts fewer, those
     * compute, and a warning in the log says so: see `threads` of qwen_model_info.
     */
    uint32_t threads;
    /** What computes. AVX2 and AVX-512 give the same bits; SCALAR differs by rounding. */
    qwen_isa isa;
    /** NULL, or what takes the model's messages for as long as the model lives. */
    qwen_log_callback log;
    /** Handed to log; never looked at. */
    void *log_user;
    /** Which messages log takes. 0: none. */
    qwen_log_level log_level;
    /** 0. */
    uint32_t reserved;
    /**
     * What weight matrices are made into. With a format other than QWEN_WEIGHTS_STORED they
     * are quantized now, on all threads; small tensors that need it stay wide.
     */
    qwen_weights weights;
    /** How products with weights are computed. */
    qwen_compute compute;
    /**
     * NULL, or what qwen_model_open() and the other ways to open tell how far they have
     * come; it may end them.
     */
    qwen_open_callback progress;
    /** Handed to progress; never looked at. */
    void *user;
    /**
     * Memory for computed beginnings of sequences that sessions share, see cache_namespace
     * in qwen_session_options. 0: none are shared.
     */
    uint64_t prefix_cache_bytes;
} qwen_model_options;

/** What a model is. Set struct_size before asking. */
typedef struct {
    /** sizeof(qwen_model_info) */
    uint32_t struct_size;
    /** 1 if weights are open, 0 with QWEN_MODEL_TOKENIZER_ONLY. Fields marked (w) are 0 then. */
    uint32_t has_weights;
    /** 1 if the checkpoint has a chat template that can be used. */
    uint32_t has_chat_template;
    /** Ids from 0 that stand for text. Only these are generated. */
    uint32_t token_count;
    /**
     * (w) Rows of the embedding and number of logits. Ids from token_count on are padding:
     * allowed as input, never generated, without text.
     */
    uint32_t vocab_size;
    /** (w) The longest sequence the model was made for, in tokens. */
    uint32_t context_limit;
    /** (w) Numbers per token between layers. */
    uint32_t hidden_size;
    /** (w) Layers. */
    uint32_t layer_count;
    /** (w) Threads that compute, the calling thread included. */
    uint32_t threads;
    /** (w) What computes. */
    qwen_isa isa;
    /**
     * (w) Bytes of weights in use. As stored they are mapped from the files: memory the
     * operating system can take back and shares between processes. Only tensors that lie
     * unaligned in a safetensors file are copied.
     */
    uint64_t weight_bytes;
    /** (w) What weight matrices were made into. */
    qwen_weights weights;
    /** (w) How products with weights are computed: QWEN_COMPUTE_EXACT or QWEN_COMPUTE_FAST. */
    qwen_compute compute;
} qwen_model_info;

/** The widest one this CPU has. */
#define QWEN_ISA_AUTO 0

/** Any x86-64 CPU. */
#define QWEN_ISA_SCALAR 1

/** AVX2 with FMA. */
#define QWEN_ISA_AVX2 2

/** AVX-512. */
#define QWEN_ISA_AVX512 3

/** Left as the checkpoint stores them (Qwen3.5: BF16), mapped from its files. */
#define QWEN_WEIGHTS_STORED 0

/** INT8 with a scale for every 32 weights of a row: 8.5 bits per weight, in memory. */
#define QWEN_WEIGHTS_INT8 1

/** INT4 with a scale for every 32 weights of a row: 4.5 bits per weight, in memory. */
#define QWEN_WEIGHTS_INT4 2

/** QWEN_COMPUTE_EXACT for weights as stored, QWEN_COMPUTE_FAST for quantized ones. */
#define QWEN_COMPUTE_AUTO 0

/** In FP32, over the weights as they are. */
#define QWEN_COMPUTE_EXACT 1

/**
 * In dot products of narrow numbers with FP32 sums: with quantized weights, inputs are
 * rounded to INT8, with a scale for every 32 (INT8 weights) or 128 (INT4).
 */
#define QWEN_COMPUTE_FAST 2

/** Nothing. */
#define QWEN_LOG_NOTHING 0

/** Something does not work that the host may need. */
#define QWEN_LOG_WARNING 1

/** What was opened, and how. */
#define QWEN_LOG_INFO 2

/** How long each step took. */
#define QWEN_LOG_DEBUG 3

/**
 * Sets `size` bytes of options to their defaults: zeros, and struct_size = size. The macro
 * QWEN_MODEL_OPTIONS_INIT does the same in a declaration.
 *
 * size is sizeof(qwen_model_options).
 *
 * Returns QWEN_OK, or QWEN_ERROR_INVALID_ARGUMENT for NULL or a size that cannot be.
 */
qwen_status qwen_model_options_init(qwen_model_options *options, size_t size);

/**
 * Opens a packed file (see qwen_pack()) or the checkpoint in a Hugging Face folder:
 * config.json, tokenizer.json, tokenizer_config.json, the chat template, and safetensors
 * weights (single or sharded). Weights are mapped into memory. Every tensor is checked before
 * any is used. One in the layers of the text model that is not of a Qwen3.5 model, a bias or a
 * scale for one, is refused; other modules (vision, drafting) are left alone.
 *
 * The weight files must stay as they are until the model is gone. Of one that is cut off the
 * system ends the process (SIGBUS) at the next touch of the lost part; one that is written over
 * in place changes the results. Moving a new file into the place of an old one is safe, and so
 * is removing it.
 *
 * path, path_length: the file, the folder, or the weight file in it. Bytes as the file system takes
 * them, used during the call. A relative path is resolved now.
 * options: NULL, or options, used during the call.
 * model: receives a handle owned by the caller, for qwen_model_free(); NULL on failure.
 *
 * Returns QWEN_OK; QWEN_ERROR_IO for a file that is missing or cannot be read;
 * QWEN_ERROR_FORMAT for one that is damaged or does not fit the others;
 * QWEN_ERROR_UNSUPPORTED for a model of another kind or an instruction set this CPU lacks;
 * QWEN_ERROR_INVALID_ARGUMENT; QWEN_ERROR_OUT_OF_MEMORY; QWEN_CANCELLED, when the progress
 * callback of the options asked for it, with model NULL. The message names the file, and
 * the tensor, and what is wrong with it. A failure leaves nothing open.
 *
 * A chat template that cannot be used is no failure here, but of the chat functions.
 */
qwen_status qwen_model_open(const char *path,
                            size_t path_length,
                            const qwen_model_options *options,
                            qwen_model **model);

/**
 * Frees the handle. The memory goes when the last session and stream decoder on the model
 * are freed too. NULL is fine.
 */
void qwen_model_free(qwen_model *model);

/**
 * Says what a model is.
 *
 * info: filled as far as its struct_size reaches, which must be set; owned by the caller.
 *
 * Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_model_get_info(const qwen_model *model, qwen_model_info *info);

/**
 * The ids that end a turn: all that the checkpoint's files name, ascending.
 *
 * tokens: receives a borrowed array, valid until the model handle is freed.
 * count: receives its length.
 *
 * Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_model_end_tokens(const qwen_model *model,
                                  const int32_t **tokens,
                                  size_t *count);

/** Default options: qwen_model_options options = QWEN_MODEL_OPTIONS_INIT; */
#define QWEN_MODEL_OPTIONS_INIT \
    { (uint32_t)sizeof(qwen_model_options), 0, 0, QWEN_ISA_AUTO, NULL, NULL, \
      QWEN_LOG_NOTHING, 0, QWEN_WEIGHTS_STORED, QWEN_COMPUTE_AUTO, NULL, NULL, 0 }

/** For qwen_model_get_info(). */
#define QWEN_MODEL_INFO_INIT \
    { (uint32_t)sizeof(qwen_model_info), 0, 0, 0, 0, 0, 0, 0, 0, QWEN_ISA_AUTO, 0, \
      QWEN_WEIGHTS_STORED, QWEN_COMPUTE_AUTO }

/* ======================================================================================
 * Other ways to open
 * ====================================================================================== */

/**
 * Takes memory back that was lent to qwen_model_open_memory(). It is called once for each
 * call of that function, on any thread, under no lock, and must not call the library. It
 * must return: an exception or longjmp() through the library is undefined.
 */
typedef void (*qwen_release_callback)(void *data, size_t length, void *user);

/**
 * Reads length bytes from offset on into buffer: all of them, or it fails. It is called on
 * the calling thread, under no lock, during the call it was given to. A return value other
 * than 0 ends that call with QWEN_ERROR_IO. It must return: an exception or longjmp() through
 * the library is undefined.
 */
typedef int32_t (*qwen_read_callback)(uint64_t offset,
                                      void *buffer,
                                      size_t length,
                                      void *user);

/**
 * Called on the calling thread during long calls: done of total, in what the function says.
 * A return value other than 0 ends the call with QWEN_CANCELLED. No lock is held. It must
 * return: an exception or longjmp() through the library is undefined.
 */
typedef int32_t (*qwen_work_callback)(uint64_t done, uint64_t total, void *user);

/**
 * Opens a packed file that is in memory: part of the program, of a pak file, decrypted.
 *
 * data, length: the file, from qwen_pack(). Lent: readable and unchanged until release is
 * called. Used where it is if data is a multiple of 64; else it is copied, and released
 * before this function returns.
 * release: NULL, or called exactly once, whatever this function returns: when the model and
 * all that was made from it are gone, or before it returns, if it fails.
 * user: handed to release; never looked at.
 * options: NULL, or options, used during the call.
 * model: receives a handle owned by the caller, for qwen_model_free(); NULL on failure.
 *
 * Returns as qwen_model_open(), without QWEN_ERROR_IO.
 */
qwen_status qwen_model_open_memory(const void *data,
                                   size_t length,
                                   qwen_release_callback release,
                                   void *user,
                                   const qwen_model_options *options,
                                   qwen_model **model);

/**
 * Opens a packed file that the host reads: out of a pak file, decrypting, from a network.
 * First the header is read, and the table of sections, which is at the end of the file. They
 * are checked before memory for the file is asked for. Then all of it is read, these two
 * again, from its start to its end, in parts of 8 MiB at most. So read has to go back: what
 * can only be read once from start to end has to be kept by the host.
 *
 * size: length of the file in bytes.
 * read: see qwen_read_callback; used during the call.
 * user: handed to read; never looked at.
 * options: NULL, or options, used during the call.
 * model: receives a handle owned by the caller, for qwen_model_free(); NULL on failure.
 *
 * Returns as qwen_model_open(), with QWEN_ERROR_IO where read failed. The progress callback
 * of the options is called between reads and can end the call.
 */
qwen_status qwen_model_open_reader(uint64_t size,
                                   qwen_read_callback read,
                                   void *user,
                                   const qwen_model_options *options,
                                   qwen_model **model);

/**
 * Does once what the first prompt would wait for: reads all weights, makes scratch memory,
 * wakes the threads. It takes about as long as the first token, which on a cold disk is the
 * time to read the weights.
 *
 * callback: NULL, or what is told the layers done and to do, and may end the call.
 * user: handed to it; never looked at.
 *
 * Returns QWEN_OK; QWEN_CANCELLED; QWEN_ERROR_INVALID_STATE with QWEN_MODEL_TOKENIZER_ONLY;
 * QWEN_ERROR_OUT_OF_MEMORY; QWEN_ERROR_FORKED. The model can be used in every case.
 */
qwen_status qwen_model_warm_up(const qwen_model *model,
                               qwen_work_callback callback,
                               void *user);

/* ======================================================================================
 * A folder that the host reads
 * ====================================================================================== */

/**
 * What a qwen_file_open_callback returns if there is no file of that name: some files of a
 * checkpoint need not be there.
 */
#define QWEN_FILE_MISSING 1

/**
 * Opens a file of a checkpoint folder.
 *
 * name, length: as the file is called in the folder, "config.json" or
 * "model-00001-of-00003.safetensors" say; UTF-8, with a NUL behind it that length does not
 * count; valid during the call. It never leads out of the folder, but an index may name files
 * in folders below, as "a/b.safetensors".
 * file: receives what the other callbacks are to be given for it; may stay NULL.
 * size: receives its length in bytes.
 *
 * Returns 0; QWEN_FILE_MISSING if there is none; anything else ends the opening with
 * QWEN_ERROR_IO.
 *
 * This and the other two are called on the thread that opens the model, during that call,
 * under no lock, and must not use the model. They must return: an exception or longjmp()
 * through the library is undefined.
 */
typedef int32_t (*qwen_file_open_callback)(const char *name,
                                           size_t length,
                                           void **file,
                                           uint64_t *size,
                                           void *user);

/**
 * Reads length bytes of a file from offset on into buffer: all of them, or it fails. They lie
 * within the size that was given. 8 MiB at most are asked for at once, and 1 KiB often.
 * Returns 0; anything else ends the opening with QWEN_ERROR_IO.
 */
typedef int32_t (*qwen_file_read_callback)(void *file,
                                           uint64_t offset,
                                           void *buffer,
                                           size_t length,
                                           void *user);

/**
 * Closes a file: called once for each that was opened, before the opening of the model
 * returns.
 */
typedef void (*qwen_file_close_callback)(void *file, void *user);

/** How the host reads a folder. */
typedef struct {
    /** sizeof(qwen_file_callbacks) */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** Must be set. */
    qwen_file_open_callback open;
    /** Must be set. */
    qwen_file_read_callback read;
    /** NULL if there is nothing to do. */
    qwen_file_close_callback close;
} qwen_file_callbacks;

/**
 * Opens a Hugging Face folder that the host reads: out of a pak file, decrypting, from a
 * network. The files are those of qwen_model_open(), but for weights: model.safetensors, else
 * what model.safetensors.index.json names. Further templates in additional_chat_templates/
 * are not looked for.
 *
 * Small files are read whole, of weight files the header, samples for the fingerprint, and
 * then the tensors of the text model, one after the other; vision and drafting weights are
 * not read. What is read is kept in memory, as stored or quantized (options->weights), so
 * that more than one tensor at a time is never there twice. A packed file takes fewer reads:
 * qwen_model_open_reader().
 *
 * files: the callbacks, used during the call.
 * user: handed to them; never looked at.
 * options: NULL, or options, used during the call. Their progress callback counts each byte
 * twice, when it is read and when it is used, and can end the call between two reads.
 * model: receives a handle owned by the caller, for qwen_model_free(); NULL on failure.
 *
 * Returns as qwen_model_open(). All files that were opened are closed again.
 */
qwen_status qwen_model_open_files(const qwen_file_callbacks *files,
                                  void *user,
                                  const qwen_model_options *options,
                                  qwen_model **model);

/** The callbacks: set open and read. */
#define QWEN_FILE_CALLBACKS_INIT \
    { (uint32_t)sizeof(qwen_file_callbacks), 0, NULL, NULL, NULL }

/* ======================================================================================
 * What a model costs
 * ====================================================================================== */

/**
 * What a model takes in memory, in bytes, see qwen_model_estimate(). The tokenizer (some
 * 10 MB at the published vocabulary) comes on top. Set struct_size before asking.
 */
typedef struct {
    /** sizeof(qwen_model_cost) */
    uint32_t struct_size;
    /** 0. */
    uint32_t reserved;
    /** Weights in use. */
    uint64_t weight_bytes;
    /**
     * Of those, what is mapped from a file: memory the operating system can take back and
     * shares between processes. Tensors that lie unaligned in a safetensors file are copied
     * and do not count.
     */
    uint64_t mapped_bytes;
    /** A session that holds the number of tokens asked for, with QWEN_KV_AUTO. */
    uint64_t session_bytes;
    /** Of those, what it takes at the start. The rest comes with its tokens, in pages of 64. */
    uint64_t session_start_bytes;
    /**
     * What each copy of a session, and each position that it can go back to, takes beyond
     * the pages that are shared.
     */
    uint64_t copy_bytes;
    /**
     * Scratch memory for each session that computes at the same time as others. It is kept
     * for the next ones.
     */
    uint64_t scratch_bytes;
    /**
     * The keys and values of the number of tokens asked for, in FP32: the part of
     * session_bytes that the kv of qwen_session_options changes.
     */
    uint64_t kv_fp32_bytes;
    /** The same in FP16. */
    uint64_t kv_fp16_bytes;
    /** The same in INT8. */
    uint64_t kv_int8_bytes;
} qwen_model_cost;

/**
 * Says what a model and a session on it will take in memory, before it is opened. Headers
 * are read and checked as by qwen_model_open(), weights are not read.
 *
 * path, path_length: as for qwen_model_open().
 * options: those it will be opened with, used during the call; NULL for the defaults.
 * context: tokens of the session. 0: as many as the model was made for.
 * cost: filled as far as its struct_size reaches, which must be set; owned by the caller.
 *
 * Returns as qwen_model_open(), for what it reads: a tokenizer that is damaged or does not
 * fit, weights that cannot be quantized, and an instruction set or threads that cannot be had
 * show only when the model is opened.
 */
qwen_status qwen_model_estimate(const char *path,
                                size_t path_length,
                                const qwen_model_options *options,
                                uint64_t context,
                                qwen_model_cost *cost);

/**
 * The same for a packed file in memory that qwen_model_open_memory() is to open. Nothing is
 * mapped. Where that function uses the memory as it is, weight_bytes are not taken on top
 * of it.
 *
 * data, length: the file, used during the call.
 * options, context, cost: as for qwen_model_estimate().
 *
 * Returns as qwen_model_open_memory().
 */
qwen_status qwen_model_estimate_memory(const void *data,
                                       size_t length,
                                       const qwen_model_options *options,
                                       uint64_t context,
                                       qwen_model_cost *cost);

/**
 * The same for a packed file that the host reads, which qwen_model_open_reader() is to open.
 * All but large weights is read, some 10 MB at the published vocabulary. Nothing is mapped.
 *
 * size, read, user: as for qwen_model_open_reader(); used during the call.
 * options, context, cost: as for qwen_model_estimate().
 *
 * Returns as qwen_model_open_reader().
 */
qwen_status qwen_model_estimate_reader(uint64_t size,
                                       qwen_read_callback read,
                                       void *user,
                                       const qwen_model_options *options,
                                       uint64_t context,
                                       qwen_model_cost *cost);

/**
 * The same for a folder that the host reads, which qwen_model_open_files() is to open. Small
 * files are read whole, of weight files the headers. Nothing is mapped.
 *
 * files, user: as for qwen_model_open_files(); used during the call.
 * options, context, cost: as for qwen_model_estimate().
 *
 * Returns as qwen_model_open_files(). All files that were opened are closed again.
 */
qwen_status qwen_model_estimate_files(const qwen_file_callbacks *files,
                                      void *user,
                                      const qwen_model_options *options,
                                      uint64_t context,
                                      qwen_model_cost *cost);

/** For qwen_model_estimate(). */
#define QWEN_MODEL_COST_INIT \
    { (uint32_t)sizeof(qwen_model_cost), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* ======================================================================================
 * Packed files
 * ====================================================================================== */

/** How to pack. Zero means default, everywhere. */
typedef struct {
    /** sizeof(qwen_pack_options) */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /** What weight matrices are made into. */
    qwen_weights weights;
    /** Threads that quantize, the calling thread included. 0: as many as this process may use. */
    uint32_t threads;
} qwen_pack_options;

/** What qwen_pack() made. Set struct_size before asking. */
typedef struct {
    /** sizeof(qwen_pack_info) */
    uint32_t struct_size;
    /** 0. */
    uint32_t reserved;
    /** Length of the file. */
    uint64_t file_bytes;
    /** Bytes of the weights in it. */
    uint64_t weight_bytes;
    /** Tells the source checkpoint from others, whatever the format it was packed in. */
    uint64_t fingerprint;
} qwen_pack_info;

/**
 * Packs a model into one file that holds all it needs: weights in the layout that is computed
 * with, tokenizer, chat template, configuration. qwen_model_open() opens it in a fraction of
 * the time that a folder takes, on every CPU. docs/packed-format.md says what is in it.
 *
 * The file is written beside its place, as its name with ".packing" behind, and moved there
 * when it is whole and on the disk; one that was there is replaced then, and not touched
 * before. A file of that name that a killed process left behind is removed by the next call
 * for the same place, and may be removed by hand. A symbolic link at the place is
 * replaced, not followed. What is not a regular file (a folder, a device, a pipe, a socket,
 * or a link to one) is refused and left alone.
 *
 * source, source_length: as path of qwen_model_open(). Quantized weights of a packed file are
 * copied.
 * destination, destination_length: the file to make.
 * options: NULL, or options, used during the call.
 * callback: NULL, or what is told the bytes done and to do, and may end the call.
 * user: handed to it; never looked at.
 * info: NULL, or filled as far as its struct_size reaches.
 *
 * Returns QWEN_OK; QWEN_CANCELLED; as qwen_model_open() for the source; QWEN_ERROR_IO where
 * the file cannot be written; QWEN_ERROR_BUSY while another call is writing a file for the
 * same place.
 */
qwen_status qwen_pack(const char *source,
                      size_t source_length,
                      const char *destination,
                      size_t destination_length,
                      const qwen_pack_options *options,
                      qwen_work_callback callback,
                      void *user,
                      qwen_pack_info *info);

/**
 * Checks all of a packed file, every byte of the weights included, which opening does not
 * read.
 *
 * path, path_length: the file.
 * callback: NULL, or what is told the bytes done and to do, and may end the call.
 * user: handed to it; never looked at.
 *
 * Returns QWEN_OK; QWEN_CANCELLED; QWEN_ERROR_FORMAT for a file that is damaged, with what
 * and where; as qwen_model_open() otherwise.
 */
qwen_status qwen_pack_verify(const char *path,
                             size_t path_length,
                             qwen_work_callback callback,
                             void *user);

/** Default options: qwen_pack_options options = QWEN_PACK_OPTIONS_INIT; */
#define QWEN_PACK_OPTIONS_INIT \
    { (uint32_t)sizeof(qwen_pack_options), 0, QWEN_WEIGHTS_STORED, 0 }

/** For qwen_pack(). */
#define QWEN_PACK_INFO_INIT { (uint32_t)sizeof(qwen_pack_info), 0, 0, 0, 0 }

/* ======================================================================================
 * Tokens and text
 * ====================================================================================== */

/**
 * For functions that take text: spellings of added tokens in it ("<|im_end|>", "<think>")
 * become those tokens. Without the flag they are ordinary text, which is right for
 * everything that a user wrote.
 */
#define QWEN_TEXT_ADDED_TOKENS 1

/**
 * For functions that give text: special tokens ("<|im_end|>") are left out. Added tokens
 * that are not special ("<think>", "<tool_call>") stay.
 */
#define QWEN_TEXT_SKIP_SPECIAL 2

/** From qwen_token_kind(): an added token, not of the base vocabulary. */
#define QWEN_TOKEN_ADDED 1

/** From qwen_token_kind(): special, left out by QWEN_TEXT_SKIP_SPECIAL. */
#define QWEN_TOKEN_SPECIAL 2

/** From qwen_token_kind(): ends a turn. */
#define QWEN_TOKEN_END_OF_TURN 4

/** From qwen_token_kind(): padding of the vocabulary, without text. */
#define QWEN_TOKEN_PADDING 8

/**
 * Tokenizes text.
 *
 * text, length: UTF-8, used during the call. Empty text has no tokens.
 * flags: QWEN_TEXT_ADDED_TOKENS or 0.
 * tokens, capacity, needed: a buffer of the caller, see Buffers; sizes in tokens.
 * A text never has more tokens than four times its bytes.
 *
 * Returns QWEN_OK; QWEN_ERROR_BUFFER_TOO_SMALL; QWEN_ERROR_INVALID_ARGUMENT, for text that
 * is not UTF-8 with the offset of the first bad byte.
 */
qwen_status qwen_tokenize(const qwen_model *model,
                          const char *text,
                          size_t length,
                          uint32_t flags,
                          int32_t *tokens,
                          size_t capacity,
                          size_t *needed);

/**
 * Gives the text of tokens, the exact bytes. They may begin or end inside a character; the
 * stream decoder is for text that is shown while it is made.
 *
 * tokens, count: used during the call.
 * flags: QWEN_TEXT_SKIP_SPECIAL or 0.
 * text, capacity, needed: a buffer of the caller, see Buffers; sizes in bytes. No NUL is
 * added, and U+0000 may be inside.
 *
 * Returns QWEN_OK; QWEN_ERROR_BUFFER_TOO_SMALL; QWEN_ERROR_INVALID_ARGUMENT, also for an id
 * that is negative or outside the vocabulary. Padding ids have no text and are no error.
 */
qwen_status qwen_detokenize(const qwen_model *model,
                            const int32_t *tokens,
                            size_t count,
                            uint32_t flags,
                            char *text,
                            size_t capacity,
                            size_t *needed);

/**
 * The bytes of one token, special or not.
 *
 * bytes, length: receive a borrowed array, valid until the model handle is freed. It is not
 * NUL-terminated and may hold part of a character. A padding id has length 0.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, also for an id outside the vocabulary.
 */
qwen_status qwen_token_bytes(const qwen_model *model,
                             int32_t token,
                             const char **bytes,
                             size_t *length);

/**
 * What kind of token an id is.
 *
 * kind: receives a sum of QWEN_TOKEN_ constants; 0 is a token of the base vocabulary.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, also for an id outside the vocabulary.
 */
qwen_status qwen_token_kind(const qwen_model *model, int32_t token, uint32_t *kind);

/**
 * The id of an added token by its spelling, such as "<|im_end|>".
 *
 * spelling, length: UTF-8, used during the call.
 * token: receives the id, or -1 if no added token is spelled so.
 *
 * Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_token_find(const qwen_model *model,
                            const char *spelling,
                            size_t length,
                            int32_t *token);

/* ======================================================================================
 * Text while it is made
 * ====================================================================================== */

/**
 * Turns tokens into text one by one, in whole characters: bytes of a character that is not
 * complete are held back until it is. What all calls give, put together, is the text of all
 * tokens, with U+FFFD for bytes that are not UTF-8.
 *
 * It keeps its model open.
 */
typedef struct qwen_stream_decoder qwen_stream_decoder;

/**
 * Makes a stream decoder.
 *
 * flags: QWEN_TEXT_SKIP_SPECIAL or 0.
 * decoder: receives a handle owned by the caller, for qwen_stream_decoder_free(); NULL on
 * failure.
 *
 * Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_stream_decoder_new(const qwen_model *model,
                                    uint32_t flags,
                                    qwen_stream_decoder **decoder);

/** Frees the handle. NULL is fine. */
void qwen_stream_decoder_free(qwen_stream_decoder *decoder);

/**
 * Gives the text that a token completes.
 *
 * text, length: receive borrowed UTF-8 of whole characters, valid until the next call on
 * this decoder. It is not NUL-terminated; length 0 means that nothing is complete yet.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, also for an id outside the vocabulary: the
 * decoder then stands as before.
 */
qwen_status qwen_stream_decoder_push(qwen_stream_decoder *decoder,
                                     int32_t token,
                                     const char **text,
                                     size_t *length);

/**
 * Gives what is held back: U+FFFD for an incomplete character, else nothing. To be called
 * when the text ends; the decoder can be used for another text afterwards. To resume the
 * same text later (after a limit in the middle of a character, say), do not call it.
 *
 * text, length: as for qwen_stream_decoder_push().
 *
 * Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_stream_decoder_finish(qwen_stream_decoder *decoder,
                                       const char **text,
                                       size_t *length);

/**
 * Puts the decoder where it would be after these tokens, without giving their text: at the
 * start of a text whose end may be a character that is not whole yet. To go on with an
 * answer whose session was restored: hand it the tokens of the answer so far.
 *
 * tokens, count: used during the call. No tokens: the decoder is as new.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, also for an id outside the vocabulary: the
 * decoder then stands as before.
 */
qwen_status qwen_stream_decoder_resume(qwen_stream_decoder *decoder,
                                       const int32_t *tokens,
                                       size_t count);

/* ======================================================================================
 * Conversations
 * ====================================================================================== */

/**
 * For conversations: spellings of added tokens in messages become those tokens, as in
 * Transformers. Without the flag only the template writes them, so that no message can end
 * its own turn or open another.
 */
#define QWEN_CHAT_AS_TRANSFORMERS 4

/**
 * For conversations: not the prompt for an answer, but what comes before the next message of
 * the user, whatever that is. The template writes the newest answer differently once it is
 * history (thoughts and empty think blocks go), so that its tokens have to be computed once
 * more. With this flag that happens now, while the user reads and types, and the next turn
 * costs its own tokens alone.
 */
#define QWEN_CHAT_HISTORY 8

/**
 * Renders a conversation by the checkpoint's chat template, byte for byte as Transformers
 * does. To feed it to a session, use qwen_session_feed_chat(): tokenizing this text would
 * let messages smuggle in control tokens.
 *
 * json, length: UTF-8, used during the call. An object
 *     {"messages": [...], "tools": [...], "enable_thinking": true or false,
 *      "add_generation_prompt": true or false}
 * or the messages array alone. Messages are in the usual form: "role" ("system", "user",
 * "assistant", "tool"), "content" (text, or parts), and for the assistant
 * "reasoning_content" and "tool_calls" (arguments as an object or as JSON in a string).
 * Without "enable_thinking" the template decides; "add_generation_prompt" is true unless
 * said otherwise. Further keys are those of Transformers: "continue_final_message": true lets
 * the text end inside the last message, after its last word, so that the model goes on with
 * it; "documents"; "chat_template_kwargs", an object of further variables of the template. Any
 * other key is an error.
 * flags: 0.
 * rendered, capacity, needed: a buffer of the caller, see Buffers; sizes in bytes.
 *
 * Returns QWEN_OK; QWEN_ERROR_BUFFER_TOO_SMALL; QWEN_ERROR_INVALID_ARGUMENT, also for JSON
 * that is malformed or of another form; QWEN_ERROR_TEMPLATE if the checkpoint has no usable
 * template or the template refuses the messages, with the template's own words;
 * QWEN_ERROR_OUT_OF_MEMORY, also where the system starts no thread for it.
 */
qwen_status qwen_chat_render(const qwen_model *model,
                             const char *json,
                             size_t length,
                             uint32_t flags,
                             char *rendered,
                             size_t capacity,
                             size_t *needed);

/**
 * Renders a conversation and tokenizes it.
 *
 * json, length: as for qwen_chat_render().
 * flags: QWEN_CHAT_AS_TRANSFORMERS and QWEN_CHAT_HISTORY, or 0.
 * tokens, capacity, needed: a buffer of the caller, see Buffers; sizes in tokens.
 *
 * Returns as qwen_chat_render().
 */
qwen_status qwen_chat_tokenize(const qwen_model *model,
                               const char *json,
                               size_t length,
                               uint32_t flags,
                               int32_t *tokens,
                               size_t capacity,
                               size_t *needed);

/* ======================================================================================
 * Sampling
 * ====================================================================================== */

/** In qwen_sampling_options.set: the field `temperature` counts. */
#define QWEN_SET_TEMPERATURE 1

/** In qwen_sampling_options.set: the field `top_k` counts. */
#define QWEN_SET_TOP_K 2

/** In qwen_sampling_options.set: the field `top_p` counts. */
#define QWEN_SET_TOP_P 4

/** In qwen_sampling_options.set: the field `min_p` counts. */
#define QWEN_SET_MIN_P 8

/** In qwen_sampling_options.set: the field `repetition_penalty` counts. */
#define QWEN_SET_REPETITION_PENALTY 16

/** In qwen_sampling_options.set: the field `presence_penalty` counts. */
#define QWEN_SET_PRESENCE_PENALTY 32

/** In qwen_sampling_options.set: the field `frequency_penalty` counts. */
#define QWEN_SET_FREQUENCY_PENALTY 64

/** In qwen_sampling_options.set: the field `penalty_window` counts. */
#define QWEN_SET_PENALTY_WINDOW 128

/** In qwen_sampling_options.set: the field `seed` counts. */
#define QWEN_SET_SEED 256

/** Where sampling options start from: one of the QWEN_PRESET constants. */
typedef int32_t qwen_preset;

/** A number to add to the logit of one token. */
typedef struct {
    /** The token; an id that stands for text. */
    int32_t token;
    /** Added to its logit. -INFINITY bans the token. */
    float bias;
} qwen_logit_bias;

/**
 * How tokens are chosen. All zero is the default, QWEN_PRESET_CHAT.
 *
 * The preset gives every field its value; a field whose bit is in `set` replaces it. So a
 * temperature of 0 is said with QWEN_SET_TEMPERATURE, and is greedy. A field that is not
 * zero but lacks its bit is an error, since it would have no effect.
 *
 * The steps, in this order: logit bias is added; penalties (repetition over prompt and
 * output, frequency and presence over the output); division by the temperature, where 0
 * takes the largest logit at once; top-k, top-p and min-p, each on what the step before
 * left; then a token is drawn.
 */
typedef struct {
    /** sizeof(qwen_sampling_options) */
    uint32_t struct_size;
    /** A sum of QWEN_SET_ constants: the fields that count. */
    uint32_t set;
    /** What the other fields come from. */
    qwen_preset preset;
    /** Divides the logits: below 1 sharpens, above 1 flattens, 0 is greedy. At least 0. */
    float temperature;
    /** Keeps the k most likely tokens, and those that equal the k-th; 0 is off. */
    uint32_t top_k;
    /**
     * Keeps the most likely tokens that together reach this probability; 1 is off, 0 keeps
     * one token. From 0 to 1.
     */
    float top_p;
    /**
     * Keeps tokens at least this fraction as likely as the most likely; 0 is off. From 0
     * to 1.
     */
    float min_p;
    /**
     * Divides positive and multiplies negative logits of tokens that prompt or output hold;
     * 1 is off. Above 0.
     */
    float repetition_penalty;
    /** Subtracted from logits of tokens that the output holds; 0 is off. */
    float presence_penalty;
    /** Subtracted once per occurrence in the output; 0 is off. */
    float frequency_penalty;
    /**
     * Penalties look at so many of the most recent tokens of the sequence; 0 turns them
     * off. Not set: the whole sequence.
     */
    uint32_t penalty_window;
    /** 0. */
    uint32_t reserved;
    /**
     * Where the session's random stream starts; the same seed and calls give the same
     * tokens. Not set: a fresh one from the system.
     */
    uint64_t seed;
    /** Copied. Of several entries for one token the last one counts. NULL: none. */
    const qwen_logit_bias *logit_bias;
    /** Entries in logit_bias. */
    size_t logit_bias_count;
} qwen_sampling_options;

/**
 * The model card's choice for answers without thinking: temperature 1, top-k 20, top-p 1,
 * presence penalty 2.
 */
#define QWEN_PRESET_CHAT 0

/** Always the most likely token, the lowest id among equals. No penalties. */
#define QWEN_PRESET_GREEDY 1

/**
 * The model card's choice for thinking: temperature 1, top-k 20, top-p 0.95, presence
 * penalty 1.5.
 */
#define QWEN_PRESET_THINKING 2

/**
 * The model card's choice for thinking about precise work such as code: temperature 0.6,
 * top-k 20, top-p 0.95, no penalties.
 */
#define QWEN_PRESET_PRECISE 3

/**
 * Sets `size` bytes of options to their defaults: zeros, and struct_size = size. The macro
 * QWEN_SAMPLING_OPTIONS_INIT does the same in a declaration.
 *
 * size is sizeof(qwen_sampling_options).
 *
 * Returns QWEN_OK, or QWEN_ERROR_INVALID_ARGUMENT for NULL or a size that cannot be.
 */
qwen_status qwen_sampling_options_init(qwen_sampling_options *options, size_t size);

/** Default options: qwen_sampling_options options = QWEN_SAMPLING_OPTIONS_INIT; */
#define QWEN_SAMPLING_OPTIONS_INIT \
    { (uint32_t)sizeof(qwen_sampling_options), 0, QWEN_PRESET_CHAT, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
      0, NULL, 0 }

/* ======================================================================================
 * Session
 * ====================================================================================== */

/**
 * A sequence being continued, with the network's state after it. It keeps its model open;
 * many sessions share one model and do not disturb each other.
 */
typedef struct qwen_session qwen_session;

/** What happens to a conversation that does not fit: one of the QWEN_OVERFLOW constants. */
typedef int32_t qwen_overflow;

/**
 * How a session stores the keys and values of its tokens: one of the QWEN_KV constants. At
 * the published 0.8B shapes a token takes 24,576 bytes in FP32, 12,288 in FP16, and 6,240 in
 * INT8; that much memory a session grows by with each token, and that much is read for each
 * earlier token when one is generated.
 */
typedef int32_t qwen_kv;

/** How to make a session. Zero means default, everywhere. */
typedef struct {
    /** sizeof(qwen_session_options) */
    uint32_t struct_size;
    /** 0. */
    uint32_t flags;
    /**
     * The most tokens the sequence may hold. 0: what the model was made for. Memory grows
     * with use, not with this number.
     */
    uint64_t context_limit;
    /** How tokens are chosen; copied. NULL: the defaults. */
    const qwen_sampling_options *sampling;
    /**
     * Not 0: shares computed beginnings of sequences, through the prefix cache of the model
     * (prefix_cache_bytes in qwen_model_options), with the sessions that have the same
     * number here, and with no others. 0: with nobody. Whoever shares can find out, by the
     * time a prompt takes, whether somebody fed the same beginning: give users that must not
     * know of each other numbers of their own.
     */
    uint64_t cache_namespace;
    /**
     * With QWEN_OVERFLOW_DROP_TURNS: tokens to keep free for the answer and the turns to
     * come. Turns go when less than half of them would be free, until all are. 0: a quarter
     * of the context.
     */
    uint64_t overflow_reserve;
    /** What happens to a conversation that does not fit: one of the QWEN_OVERFLOW constants. */
    qwen_overflow overflow;
    /** Most marks held, see qwen_session_mark(). 0: 4. */
    uint32_t mark_limit;
    /**
     * How keys and values are stored: one of the QWEN_KV constants. Beginnings are shared,
     * and saved sessions restored, among sessions of the same format only.
     */
    qwen_kv kv;
    /** 0. */
    uint32_t reserved;
} qwen_session_options;

/**
 * Called during long calls, between layers, on the calling thread. `done` of `total` tokens
 * are computed. A return value other than 0 cancels the call, as qwen_session_cancel()
 * does. No lock is held; the session itself is in use (QWEN_ERROR_BUSY), other handles are
 * not. It must return: an exception or longjmp() through the library is undefined.
 */
typedef int32_t (*qwen_progress_callback)(size_t done, size_t total, void *user);

/**
 * QWEN_KV_FP32 for a model with QWEN_COMPUTE_EXACT, whose results nothing may round;
 * QWEN_KV_FP16 for one with QWEN_COMPUTE_FAST.
 */
#define QWEN_KV_AUTO 0

/** 32 bits, as computed. */
#define QWEN_KV_FP32 1

/** 16 bits, rounded to nearest. */
#define QWEN_KV_FP16 2

/** 8 bits, with a scale for each key and value of each token and head. */
#define QWEN_KV_INT8 3

/** QWEN_ERROR_CONTEXT_OVERFLOW, before anything is consumed. */
#define QWEN_OVERFLOW_REFUSE 0

/**
 * qwen_session_feed_chat() keeps the system messages and the newest turns and leaves out the
 * oldest whole turns, a turn being a user message with all that follows up to the next one.
 * qwen_session_get_feed_info() says which. It then computes all behind the system messages
 * again; overflow_reserve makes that rare, and as long as the conversation without what was
 * left out last leaves half of that free, the same is left out. The newest turn is fed even
 * if it leaves less; if it alone is too long, it is QWEN_ERROR_CONTEXT_OVERFLOW after all.
 *
 * Tokens and text that do not fit do the same to a sequence with turns of a user (control token
 * and role, as the chat template writes them); without such turns they are refused.
 * Generating never leaves out anything: it ends with QWEN_LIMIT_REACHED.
 */
#define QWEN_OVERFLOW_DROP_TURNS 1

/**
 * Sets `size` bytes of options to their defaults: zeros, and struct_size = size. The macro
 * QWEN_SESSION_OPTIONS_INIT does the same in a declaration.
 *
 * size is sizeof(qwen_session_options).
 *
 * Returns QWEN_OK, or QWEN_ERROR_INVALID_ARGUMENT for NULL or a size that cannot be.
 */
qwen_status qwen_session_options_init(qwen_session_options *options, size_t size);

/**
 * Makes an empty session.
 *
 * options: NULL, or options, used during the call.
 * session: receives a handle owned by the caller, for qwen_session_free(); NULL on failure.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT for options out of range;
 * QWEN_ERROR_INVALID_STATE for a model without weights; QWEN_ERROR_OUT_OF_MEMORY.
 */
qwen_status qwen_session_new(const qwen_model *model,
                             const qwen_session_options *options,
                             qwen_session **session);

/**
 * Frees the handle. A call in progress on another thread is cancelled, and the memory goes
 * when it returns. NULL is fine.
 */
void qwen_session_free(qwen_session *session);

/**
 * Chooses the next token and appends it to the sequence.
 *
 * token: receives the id, or -1 if none was chosen.
 *
 * Returns QWEN_OK with a token; QWEN_END_OF_TURN with a token that ends the turn (it is
 * part of the sequence too; going on is the caller's choice); QWEN_LIMIT_REACHED without
 * one if the sequence is as long as its limit; QWEN_CANCELLED;
 * QWEN_ERROR_INVALID_STATE if the sequence is empty; QWEN_ERROR_NUMERIC if the logits hold
 * NaN or a logit bias leaves nothing to choose; QWEN_ERROR_OUT_OF_MEMORY;
 * QWEN_ERROR_FORKED; QWEN_ERROR_INVALID_ARGUMENT. Without a token the sequence is as
 * before.
 *
 * A token is computed when the following one is asked for: the first after a prompt costs
 * the choice alone.
 */
qwen_status qwen_session_next_token(qwen_session *session, int32_t *token);

/**
 * The logits of the token after the sequence, as the network gives them: before bias,
 * penalties and temperature.
 *
 * logits: receives a borrowed array, valid until the next call on the session.
 * count: receives its length, the vocab_size of qwen_model_info.
 *
 * Returns QWEN_OK; QWEN_CANCELLED; QWEN_ERROR_INVALID_STATE if the sequence is empty;
 * QWEN_ERROR_OUT_OF_MEMORY; QWEN_ERROR_FORKED; QWEN_ERROR_INVALID_ARGUMENT. The sequence
 * is not changed.
 */
qwen_status qwen_session_logits(qwen_session *session, const float **logits, size_t *count);

/**
 * The length of the sequence.
 *
 * position: receives the number of tokens, fed and generated.
 *
 * Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_session_position(const qwen_session *session, size_t *position);

/**
 * The most tokens the sequence may hold.
 *
 * limit: receives the number.
 *
 * Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_session_context_limit(const qwen_session *session, size_t *limit);

/**
 * How the session stores keys and values.
 *
 * kv: receives QWEN_KV_FP32, QWEN_KV_FP16 or QWEN_KV_INT8.
 *
 * Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_session_kv(const qwen_session *session, qwen_kv *kv);

/**
 * The sequence: all ids, fed and generated, in order.
 *
 * tokens: receives a borrowed array, valid until the next call on the session with a
 * non-const handle.
 * count: receives its length.
 *
 * Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_session_tokens(const qwen_session *session,
                                const int32_t **tokens,
                                size_t *count);

/**
 * Chooses tokens by these options from now on. The random stream starts anew if a seed
 * is set; else it goes on.
 *
 * options: copied; NULL: the defaults.
 *
 * Returns QWEN_OK, or QWEN_ERROR_INVALID_ARGUMENT for options out of range: the session
 * then samples as before.
 */
qwen_status qwen_session_set_sampling(qwen_session *session,
                                      const qwen_sampling_options *options);

/**
 * Has a function called during long calls on this session, from now on.
 *
 * callback: see qwen_progress_callback; NULL ends it.
 * user: handed to it; never looked at.
 *
 * Returns QWEN_OK.
 */
qwen_status qwen_session_set_progress(qwen_session *session,
                                      qwen_progress_callback callback,
                                      void *user);

/**
 * Empties the sequence and drops its marks. Options and attachment stay, the random stream
 * goes on. A cancel that no call has answered yet is forgotten.
 *
 * Returns QWEN_OK, or QWEN_ERROR_OUT_OF_MEMORY: the session is then as before.
 */
qwen_status qwen_session_reset(qwen_session *session);

/**
 * Cancels the call in progress on a session, or the next one if none is. It may be called
 * by any thread at any time, also from the progress callback, and returns at once; the
 * cancelled call returns QWEN_CANCELLED within milliseconds. A signal handler should set a
 * flag instead, which the progress callback looks at.
 *
 * Returns QWEN_OK, or QWEN_ERROR_INVALID_HANDLE. See qwen_session_cancel_clear() for a cancel
 * that came too late.
 */
qwen_status qwen_session_cancel(const qwen_session *session);

/**
 * Forgets a cancel that no call has answered: one that was asked for when the call it was
 * meant for had just ended, and would end the next one. To be called between calls, once
 * nobody asks any more.
 *
 * Returns QWEN_OK, whether there was one or not; QWEN_ERROR_BUSY during a call.
 */
qwen_status qwen_session_cancel_clear(qwen_session *session);

/** Default options: qwen_session_options options = QWEN_SESSION_OPTIONS_INIT; */
#define QWEN_SESSION_OPTIONS_INIT \
    { (uint32_t)sizeof(qwen_session_options), 0, 0, NULL, 0, 0, QWEN_OVERFLOW_REFUSE, 0, \
      QWEN_KV_AUTO, 0 }

/* ======================================================================================
 * What a session is fed
 * ====================================================================================== */

/**
 * Appends tokens to the sequence and computes them.
 *
 * tokens, count: used during the call. No tokens: nothing happens.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT for an id that is negative or outside the
 * vocabulary, and QWEN_ERROR_CONTEXT_OVERFLOW if the sequence would exceed its limit (but see
 * QWEN_OVERFLOW_DROP_TURNS): both leave the session as it was. QWEN_CANCELLED,
 * QWEN_ERROR_OUT_OF_MEMORY and QWEN_ERROR_FORKED leave it with a beginning of the tokens, as
 * qwen_session_position() tells, and usable; what was queued before and is not computed
 * counts among them.
 */
qwen_status qwen_session_feed(qwen_session *session,
                              const int32_t *tokens,
                              size_t count);

/**
 * Tokenizes text, appends it to the sequence and computes it. For plain continuation; a
 * conversation is fed by qwen_session_feed_chat().
 *
 * text, length: UTF-8, used during the call.
 * flags: QWEN_TEXT_ADDED_TOKENS or 0.
 *
 * Returns as qwen_session_feed(), and QWEN_ERROR_INVALID_ARGUMENT for text that is not
 * UTF-8.
 */
qwen_status qwen_session_feed_text(qwen_session *session,
                                   const char *text,
                                   size_t length,
                                   uint32_t flags);

/**
 * Makes the session hold exactly a conversation, rendered by the checkpoint's template and
 * ready for the answer. Call it once per turn with all messages so far, the assistant's
 * answers among them: what the session holds already is not computed again.
 *
 * json, length: as for qwen_chat_render().
 * flags: QWEN_CHAT_AS_TRANSFORMERS and QWEN_CHAT_HISTORY, or 0.
 * total: receives the tokens of the conversation; NULL if not wanted.
 * computed: receives how many of them this call computed; NULL if not wanted.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, QWEN_ERROR_TEMPLATE (see
 * qwen_chat_render()), QWEN_ERROR_UNSUPPORTED for messages with images or videos, and
 * QWEN_ERROR_CONTEXT_OVERFLOW, which leave the session as it was; QWEN_CANCELLED,
 * QWEN_ERROR_OUT_OF_MEMORY and QWEN_ERROR_FORKED, which leave it with a beginning of the
 * conversation, and usable: the same call again completes it.
 */
qwen_status qwen_session_feed_chat(qwen_session *session,
                                   const char *json,
                                   size_t length,
                                   uint32_t flags,
                                   size_t *total,
                                   size_t *computed);

/**
 * Appends tokens to the sequence without computing them: qwen_session_step() does that, or
 * the next other call that needs them (which then takes as long as qwen_session_feed()).
 *
 * tokens, count: used during the call. No tokens: nothing happens.
 *
 * Returns QWEN_OK, at once; QWEN_ERROR_INVALID_ARGUMENT for an id that is negative or
 * outside the vocabulary, QWEN_ERROR_CONTEXT_OVERFLOW if the sequence would exceed its
 * limit and QWEN_ERROR_OUT_OF_MEMORY, which leave the session as it was.
 */
qwen_status qwen_session_enqueue(qwen_session *session,
                                 const int32_t *tokens,
                                 size_t count);

/**
 * Tokenizes text and appends it to the sequence without computing it, see
 * qwen_session_enqueue().
 *
 * text, length: UTF-8, used during the call.
 * flags: QWEN_TEXT_ADDED_TOKENS or 0.
 *
 * Returns as qwen_session_enqueue(), and QWEN_ERROR_INVALID_ARGUMENT for text that is not
 * UTF-8.
 */
qwen_status qwen_session_enqueue_text(qwen_session *session,
                                      const char *text,
                                      size_t length,
                                      uint32_t flags);

/**
 * Makes the session hold exactly a conversation, as qwen_session_feed_chat() does, and
 * leaves what is not computed yet to qwen_session_step().
 *
 * json, length, flags, total: as for qwen_session_feed_chat().
 * remaining: receives the tokens that are still to be computed; NULL if not wanted.
 *
 * Returns as qwen_session_feed_chat(), but never QWEN_CANCELLED.
 */
qwen_status qwen_session_enqueue_chat(qwen_session *session,
                                      const char *json,
                                      size_t length,
                                      uint32_t flags,
                                      size_t *total,
                                      size_t *remaining);

/* ======================================================================================
 * Forks and marks
 * ====================================================================================== */

/**
 * For qwen_session_rewind(): the random stream goes back too, so that the same calls give
 * the same tokens again.
 */
#define QWEN_REWIND_RANDOM 1

/** A position that a session can go back to. */
typedef struct {
    /** Its name; no other mark of the session ever has the same. */
    uint64_t id;
    /** Where it stands: the length of the sequence when it was made. */
    uint64_t position;
    /**
     * 1 if the library made it, while a conversation was fed. Such marks go when there is
     * no room for a new one.
     */
    uint32_t automatic;
    /** 0. */
    uint32_t reserved;
} qwen_mark;

/**
 * Makes an independent session that stands where this one does: the same sequence, marks,
 * attachment and options, and its own copy of the random stream. Both then go on as if the
 * other did not exist.
 *
 * It takes well under a millisecond and hardly any memory: what is computed is shared.
 * One of the first three tokens that either computes costs it a recurrent state of its own
 * (19 MB at 0.8B), and 64 tokens' keys and values. Callbacks are not copied.
 *
 * fork: receives a handle owned by the caller, for qwen_session_free(); NULL on failure.
 *
 * Returns QWEN_OK; QWEN_ERROR_OUT_OF_MEMORY; QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_session_fork(const qwen_session *session, qwen_session **fork);

/**
 * Keeps the present position for qwen_session_rewind(). Nothing is computed; the mark costs
 * a recurrent state (19 MB at 0.8B) once the session has moved on.
 *
 * A session holds mark_limit marks (see qwen_session_options), the library's own among them,
 * which make room for the caller's.
 *
 * mark: receives the name of the mark, never 0.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_STATE if the caller's own marks take all the room;
 * QWEN_ERROR_OUT_OF_MEMORY; QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_session_mark(qwen_session *session,
                              uint64_t *mark);

/**
 * Drops a mark.
 *
 * Returns QWEN_OK, or QWEN_ERROR_INVALID_ARGUMENT if the session does not hold it.
 */
qwen_status qwen_session_unmark(qwen_session *session, uint64_t mark);

/**
 * Lists the marks that the session holds, in order of position: the caller's, and those the
 * library made.
 *
 * marks, capacity, needed: a buffer of the caller, see Buffers; sizes in marks.
 *
 * Returns QWEN_OK; QWEN_ERROR_BUFFER_TOO_SMALL; QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_session_marks(const qwen_session *session,
                               qwen_mark *marks,
                               size_t capacity,
                               size_t *needed);

/**
 * Goes back to a mark: sequence and state are what they were there, bit for bit, and nothing
 * is computed. Marks behind it, and those made later at its place, are dropped; it stays. (One
 * made while input waited stands before that was computed: marks among the input go, too.)
 * Sampling options stay as they are.
 *
 * flags: QWEN_REWIND_RANDOM, or 0: the random stream goes on, so that another attempt gives
 * other tokens.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT if the session does not hold the mark;
 * QWEN_ERROR_OUT_OF_MEMORY. Without QWEN_OK the session is as before.
 */
qwen_status qwen_session_rewind(qwen_session *session,
                                uint64_t mark,
                                uint32_t flags);

/**
 * Cuts the sequence to its first tokens. The recurrent state cannot be cut, so the session
 * goes back to the nearest mark before that position (or what the prefix cache holds, or
 * the start) and computes the rest again.
 *
 * position: how many tokens are to stay.
 * computed: receives how many tokens were computed again; NULL if not wanted.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT if the sequence is shorter: the session is
 * then as before; QWEN_CANCELLED, QWEN_ERROR_OUT_OF_MEMORY and QWEN_ERROR_FORKED, which may
 * leave it with fewer tokens than wanted, as qwen_session_position() tells, and usable.
 */
qwen_status qwen_session_truncate(qwen_session *session, size_t position, size_t *computed);

/* ======================================================================================
 * What is computed already
 * ====================================================================================== */

/**
 * What the last call that fed a session did (tokens, text, a conversation, or
 * qwen_session_set_tokens()); zeros if it did not end with QWEN_OK. Set struct_size before
 * asking.
 */
typedef struct {
    /** sizeof(qwen_feed_info) */
    uint32_t struct_size;
    /** 0. */
    uint32_t reserved;
    /** Tokens asked for; of tokens and text, those of the sequence then. */
    uint64_t total;
    /**
     * Of them, those it computed (or queued, for steps to compute); the others were there
     * already.
     */
    uint64_t computed;
    /** Of them, those taken over from the prefix cache of the model. */
    uint64_t cached;
    /**
     * Messages left out, because the conversation did not fit and the session's options
     * say QWEN_OVERFLOW_DROP_TURNS.
     */
    uint64_t dropped_messages;
    /** Messages in front of those: the first one left out has this index. */
    uint64_t kept_messages;
    /**
     * Tokens left out of a sequence that was fed as tokens or text and did not fit, with
     * QWEN_OVERFLOW_DROP_TURNS; also if the call was cancelled while it computed the rest.
     */
    uint64_t dropped_tokens;
    /** Tokens in front of those: the first one left out had this index. */
    uint64_t kept_tokens;
} qwen_feed_info;

/** What the prefix cache of a model holds and has done. Set struct_size before asking. */
typedef struct {
    /** sizeof(qwen_prefix_cache_info) */
    uint32_t struct_size;
    /** 0. */
    uint32_t reserved;
    /** Bytes in use, also what sessions share with it. */
    uint64_t bytes;
    /** The bound on them, prefix_cache_bytes of qwen_model_options. */
    uint64_t limit;
    /** Beginnings held. */
    uint64_t entries;
    /** Look-ups that found one. */
    uint64_t hits;
    /** Look-ups that found none. */
    uint64_t misses;
    /** Beginnings that had to go, least recently used first. */
    uint64_t evictions;
} qwen_prefix_cache_info;

/**
 * Makes the session hold exactly these tokens. It goes on from the longest beginning that
 * is computed already: its own, one of its marks, or one in the model's prefix cache (see
 * cache_namespace in qwen_session_options). The result is bit for bit that of computing
 * all of them. qwen_session_feed_chat() does the same with a conversation.
 *
 * tokens, count: used during the call.
 * computed: receives how many tokens this call computed; NULL if not wanted.
 *
 * Returns as qwen_session_feed_chat().
 */
qwen_status qwen_session_set_tokens(qwen_session *session,
                                    const int32_t *tokens,
                                    size_t count,
                                    size_t *computed);

/**
 * Says what the last call that fed a session did, and what it left out.
 *
 * info: filled as far as its struct_size reaches, which must be set; owned by the caller.
 *
 * Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_session_get_feed_info(const qwen_session *session, qwen_feed_info *info);

/**
 * Says what the prefix cache of a model holds.
 *
 * info: filled as far as its struct_size reaches, which must be set; owned by the caller.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_STATE if the model has no prefix cache;
 * QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_prefix_cache_get_info(const qwen_model *model,
                                       qwen_prefix_cache_info *info);

/**
 * Forgets the beginnings in the prefix cache of a model; sessions keep what they have.
 *
 * cache_namespace: those of this namespace; 0: all.
 *
 * Returns QWEN_OK, or QWEN_ERROR_INVALID_STATE if the model has no prefix cache.
 */
qwen_status qwen_prefix_cache_clear(const qwen_model *model, uint64_t cache_namespace);

/** For qwen_session_get_feed_info(). */
#define QWEN_FEED_INFO_INIT \
    { (uint32_t)sizeof(qwen_feed_info), 0, 0, 0, 0, 0, 0, 0, 0 }

/** For qwen_prefix_cache_get_info(). */
#define QWEN_PREFIX_CACHE_INFO_INIT \
    { (uint32_t)sizeof(qwen_prefix_cache_info), 0, 0, 0, 0, 0, 0, 0 }

/* ======================================================================================
 * Saving and restoring
 * ====================================================================================== */

/**
 * For saving: leave the marks out. The saved session is smaller (by 19 MB for each mark at
 * 0.8B), but the next turn of a conversation computes the whole history again.
 */
#define QWEN_SAVE_WITHOUT_MARKS 1

/**
 * Keeps bytes of the caller with a session: the messages of a conversation, say, or where
 * the game stands. They are saved, restored and forked with it; the library does not look
 * at them. Every call replaces what was there.
 *
 * data, size: copied; at most 64 MB. Size 0 removes it.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT; QWEN_ERROR_OUT_OF_MEMORY.
 */
qwen_status qwen_session_set_attachment(qwen_session *session,
                                        const void *data,
                                        size_t size);

/**
 * Gives the bytes of qwen_session_set_attachment() back.
 *
 * data: receives a borrowed pointer, valid until the next call on the session with a
 * non-const handle.
 * size: receives their number, 0 if there are none.
 *
 * Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_session_attachment(const qwen_session *session,
                                    const void **data,
                                    size_t *size);

/**
 * Saves a session to a file: sequence, network state, marks, sampling options, random
 * stream, attachment. Restored, it goes on bit for bit as this one would have.
 *
 * The file is replaced at once: whatever happens meanwhile, the end of the process or a
 * power failure included, afterwards the old file is there or the new one, whole. It is
 * written beside the old one, as its name with ".saving" behind, and is readable by its
 * owner only: it holds the conversation. Such a file that a killed process left behind is
 * removed by the next call for the same path. A symbolic link at the path is replaced, not
 * followed. What is not a regular file (a folder, a device, a pipe, a socket, or a link to
 * one) is refused and left alone.
 *
 * file, file_length: the path, used during the call.
 * flags: QWEN_SAVE_WITHOUT_MARKS or 0.
 *
 * Returns QWEN_OK; QWEN_ERROR_IO; QWEN_ERROR_BUSY, also if another session is being saved
 * to the same file; QWEN_ERROR_INVALID_ARGUMENT; QWEN_ERROR_OUT_OF_MEMORY. An error leaves
 * the old file as it was.
 */
qwen_status qwen_session_save_file(const qwen_session *session,
                                   const char *file,
                                   size_t file_length,
                                   uint32_t flags);

/**
 * Puts a session where a saved one was, on this model or on the same one in another process:
 * the fingerprint, the weight format and the way of computing must be those it was saved
 * with. Context limit, namespace and overflow options stay this session's own; so does its
 * progress callback. Marks beyond its own limit are dropped, oldest first.
 *
 * A stream decoder is put to the same place by qwen_stream_decoder_resume().
 *
 * file, file_length: the path, used during the call.
 *
 * Returns QWEN_OK; QWEN_ERROR_IO if the file cannot be read; QWEN_ERROR_FORMAT if it is
 * damaged, cut off or something else; QWEN_ERROR_UNSUPPORTED if it was saved with another
 * model, format or version; QWEN_ERROR_CONTEXT_OVERFLOW if the sequence is longer than this
 * session's limit; QWEN_ERROR_OUT_OF_MEMORY; QWEN_ERROR_INVALID_ARGUMENT. Without QWEN_OK
 * the session is as before.
 */
qwen_status qwen_session_restore_file(qwen_session *session,
                                      const char *file,
                                      size_t file_length);

/**
 * As qwen_session_save_file(), to memory.
 *
 * flags: QWEN_SAVE_WITHOUT_MARKS or 0.
 * data, capacity, needed: a buffer of the caller, see Buffers; sizes in bytes. The size
 * grows with the sequence.
 *
 * Returns QWEN_OK; QWEN_ERROR_BUFFER_TOO_SMALL; QWEN_ERROR_INVALID_ARGUMENT;
 * QWEN_ERROR_OUT_OF_MEMORY.
 */
qwen_status qwen_session_save_memory(const qwen_session *session,
                                     uint32_t flags,
                                     void *data,
                                     size_t capacity,
                                     size_t *needed);

/**
 * As qwen_session_restore_file(), from memory.
 *
 * data, size: used during the call.
 *
 * Returns as qwen_session_restore_file(), without QWEN_ERROR_IO.
 */
qwen_status qwen_session_restore_memory(qwen_session *session,
                                        const void *data,
                                        size_t size);

/* ======================================================================================
 * Session: a little at a time, and several at once
 * ====================================================================================== */

/** Flag of qwen_session_step(): compute what is queued, generate nothing. */
#define QWEN_STEP_INPUT 1

/**
 * Goes on for about as long as a budget says: computes what is queued
 * (qwen_session_enqueue() and its kin), then the next token. For frame loops: call it once
 * per frame until it returns something other than QWEN_WORKING.
 *
 * budget_us: microseconds. The call may take longer by one task of a kernel, usually less
 * than a millisecond. 0: the smallest advance.
 * flags: QWEN_STEP_INPUT or 0.
 * token: receives the id, or -1 if none was chosen.
 * remaining: receives the tokens of the sequence that are not computed yet; NULL if not
 * wanted.
 *
 * Returns QWEN_WORKING when the time is over and there is more to do; QWEN_OK with a
 * token, or with QWEN_STEP_INPUT, when all that was queued is computed; QWEN_END_OF_TURN
 * with a token, and QWEN_LIMIT_REACHED, see qwen_session_next_token(); QWEN_CANCELLED;
 * QWEN_ERROR_INVALID_STATE if the sequence is empty; QWEN_ERROR_NUMERIC;
 * QWEN_ERROR_OUT_OF_MEMORY; QWEN_ERROR_FORKED; QWEN_ERROR_INVALID_ARGUMENT. After a cancel
 * or an error, tokens that were queued and are not computed are gone from the sequence, as
 * qwen_session_position() tells.
 *
 * The tokens are those that qwen_session_feed() and qwen_session_next_token() would give,
 * and logits have the same bits. What a step leaves unfinished (in memory: about 50 MB at
 * 0.8B) the next one continues. Any other call on the session may come in between: one that
 * needs the sequence computed finishes it; qwen_session_reset() drops it.
 */
qwen_status qwen_session_step(qwen_session *session,
                              uint64_t budget_us,
                              uint32_t flags,
                              int32_t *token,
                              size_t *remaining);

/**
 * Advances several sessions of one model by one token each, as qwen_session_next_token()
 * would, and reads the weights once for all: 8 sessions take far less than 8 times the
 * time of one. Each session gets exactly the token that it would get alone.
 *
 * sessions, count: the sessions, used during the call.
 * tokens: receives `count` ids, -1 for a session that chose none.
 * statuses: receives `count` statuses, each as qwen_session_next_token() would return it
 * for that session. One that is busy, freed, listed before, at its limit, cancelled or
 * that fails has its status and does not disturb the others.
 *
 * Returns QWEN_OK whatever the statuses are; QWEN_ERROR_INVALID_ARGUMENT if sessions are of
 * different models, or for NULL: no session is advanced then, and tokens and statuses are of
 * no meaning.
 *
 * A session with more than one token to compute (after qwen_session_enqueue()) computes
 * them first, alone. Progress callbacks are not called for the common part. A cancel of one
 * session is answered when the call returns, in about the time of one token; when all are
 * cancelled it returns at once.
 */
qwen_status qwen_batch_step(qwen_session *const *sessions,
                            size_t count,
                            int32_t *tokens,
                            qwen_status *statuses);

/* ======================================================================================
 * Statistics
 * ====================================================================================== */

/**
 * Counts of one session since it was made, or of all sessions of a model since it was
 * opened. Set struct_size before asking.
 */
typedef struct {
    /** sizeof(qwen_statistics) */
    uint32_t struct_size;
    /** Sessions that are open; 1 for a session. */
    uint32_t sessions;
    /** Input tokens computed. */
    uint64_t input_tokens;
    /** Tokens generated. */
    uint64_t output_tokens;
    /**
     * Input tokens of conversations that did not need to be computed, because the session
     * held them or had a mark.
     */
    uint64_t reused_tokens;
    /** Input tokens of conversations taken over from the model's prefix cache. */
    uint64_t cached_tokens;
    /** Microseconds in calls that computed input. */
    uint64_t input_us;
    /** Microseconds in calls that generated without computing input. */
    uint64_t output_us;
    /**
     * Microseconds from the newest input, since it was fed or queued, to the first token
     * after it; 0 if there was none, and for a model.
     */
    uint64_t first_token_us;
    /**
     * Bytes that sessions use: states, keys and values, marks, logits, what is unfinished.
     * Memory that sessions share counts for each. Weights do not count: see qwen_model_get_info().
     */
    uint64_t bytes;
    /** Input tokens per second; 0 before there were any. */
    double input_rate;
    /** Generated tokens per second; 0 before there were any. */
    double output_rate;
} qwen_statistics;

/**
 * Says what a session has done since it was made.
 *
 * statistics: filled as far as its struct_size reaches, which must be set; owned by the
 * caller.
 *
 * Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_session_get_statistics(const qwen_session *session,
                                        qwen_statistics *statistics);

/**
 * Says what all sessions of a model, the freed ones too, have done since it was opened.
 * Sessions need not be idle.
 *
 * statistics: filled as far as its struct_size reaches, which must be set; owned by the
 * caller.
 *
 * Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_model_get_statistics(const qwen_model *model, qwen_statistics *statistics);

/** For qwen_session_get_statistics() and qwen_model_get_statistics(). */
#define QWEN_STATISTICS_INIT \
    { (uint32_t)sizeof(qwen_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* ======================================================================================
 * Changing logits
 * ====================================================================================== */

/**
 * Called before each token is chosen, on the calling thread, with the logits to change: a
 * copy of those of the `count` tokens that can be chosen, before bias, penalties and
 * temperature. Changes count for this choice only; -INFINITY bans a token, NaN and +INFINITY
 * are QWEN_ERROR_NUMERIC. `tokens` are the sequence so far. Both are lent for the call.
 *
 * A return value other than 0 cancels the call, as qwen_session_cancel() does. No lock is
 * held; the session itself is in use (QWEN_ERROR_BUSY), and so are the others of a batch.
 * It must return: an exception or longjmp() through the library is undefined.
 */
typedef int32_t (*qwen_logits_callback)(float *logits,
                                        size_t count,
                                        const int32_t *tokens,
                                        size_t token_count,
                                        void *user);

/**
 * Has a function called before each token is chosen on this session, from now on: for
 * forbidding words, forcing a format, sampling of the host's own (all other logits
 * -INFINITY). It works for qwen_conversation_next() too.
 *
 * callback: see qwen_logits_callback; NULL ends it.
 * user: handed to it; never looked at.
 *
 * Returns QWEN_OK.
 */
qwen_status qwen_session_set_logits_callback(qwen_session *session,
                                             qwen_logits_callback callback,
                                             void *user);

/* ======================================================================================
 * Judging text
 * ====================================================================================== */

/** For qwen_session_score(): the tokens become part of the sequence. */
#define QWEN_SCORE_KEEP 8

/** For qwen_session_embed(): the embedding gets length 1. */
#define QWEN_EMBED_NORMALIZE 16

/** A token and how likely it is. */
typedef struct {
    /** The token. */
    int32_t token;
    /** The natural logarithm of its probability. */
    float logprob;
} qwen_token_logprob;

/** How likely a text is. Set struct_size before asking. */
typedef struct {
    /** sizeof(qwen_score) */
    uint32_t struct_size;
    /** Tokens of the text that are the most likely ones in their places. */
    uint32_t best_count;
    /** Tokens of the text. */
    uint64_t token_count;
    /** The natural logarithm of the probability of the text after the sequence. */
    double log_likelihood;
    /** The exponential of the mean loss of a token; 1 for no tokens. */
    double perplexity;
} qwen_score;

/** What becomes of the hidden states of several tokens: one of the QWEN_POOLING constants. */
typedef int32_t qwen_pooling;

/** Their mean. */
#define QWEN_POOLING_MEAN 0

/** The last token's, which has seen all others. */
#define QWEN_POOLING_LAST 1

/**
 * How likely given tokens are as the next token: natural logarithms of their probabilities
 * by the network's logits over the whole vocabulary, before bias, penalties, temperature
 * and logits callback.
 *
 * tokens, count: used during the call.
 * logprobs: `count` numbers of the caller, which are written.
 *
 * Returns as qwen_session_logits(); QWEN_ERROR_NUMERIC if the logits hold NaN. The sequence
 * is not changed.
 */
qwen_status qwen_session_logprobs(qwen_session *session,
                                  const int32_t *tokens,
                                  size_t count,
                                  float *logprobs);

/**
 * The most likely next tokens, the most likely first, lower ids first among equals.
 * Probabilities are as for qwen_session_logprobs().
 *
 * top, count: an array of the caller, of which at most vocab_size entries are written; the
 * others get token -1.
 *
 * Returns as qwen_session_logprobs().
 */
qwen_status qwen_session_top_logprobs(qwen_session *session,
                                      qwen_token_logprob *top,
                                      size_t count);

/**
 * How likely the token was that qwen_session_next_token() has just chosen, and which were
 * the most likely in its place. To be asked before the next call that computes; it costs no
 * pass through the network.
 *
 * logprob: receives the logarithm of its probability, see qwen_session_logprobs(); NULL if
 * not wanted.
 * top, count: as for qwen_session_top_logprobs(); NULL with 0 if not wanted.
 *
 * Returns as qwen_session_logprobs(); QWEN_ERROR_INVALID_STATE if the last token of the
 * sequence was fed, or is computed already.
 */
qwen_status qwen_session_chosen_logprobs(qwen_session *session,
                                         float *logprob,
                                         qwen_token_logprob *top,
                                         size_t count);

/**
 * How likely tokens are as the continuation of the sequence: for ranking answers, finding
 * the odd one out, perplexity. The session stays as it is, except with QWEN_SCORE_KEEP.
 *
 * tokens, count: used during the call. No tokens have the likelihood 1.
 * flags: QWEN_SCORE_KEEP or 0.
 * logprobs: `count` numbers of the caller, which receive for each token the logarithm of
 * its probability after those before it; NULL if not wanted.
 * score: filled as far as its struct_size reaches, which must be set; NULL if not wanted.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_STATE if the sequence is empty (a first token has no
 * probability: feed one); otherwise as qwen_session_feed(), but that after QWEN_CANCELLED
 * and QWEN_ERROR_OUT_OF_MEMORY the sequence is as it was, except with QWEN_SCORE_KEEP.
 */
qwen_status qwen_session_score(qwen_session *session,
                               const int32_t *tokens,
                               size_t count,
                               uint32_t flags,
                               float *logprobs,
                               qwen_score *score);

/**
 * Tokenizes text and scores it, see qwen_session_score().
 *
 * text, length: UTF-8, used during the call.
 * flags: QWEN_SCORE_KEEP, QWEN_TEXT_ADDED_TOKENS, both or 0.
 *
 * Returns as qwen_session_score().
 */
qwen_status qwen_session_score_text(qwen_session *session,
                                    const char *text,
                                    size_t length,
                                    uint32_t flags,
                                    qwen_score *score);

/**
 * The hidden state of tokens after the last layer and the final norm, pooled over them: an
 * embedding of a text. It sees the sequence before the tokens, which is usually empty, and
 * leaves the session as it is.
 *
 * tokens, count: used during the call; at least one.
 * pooling: a QWEN_POOLING constant.
 * flags: QWEN_EMBED_NORMALIZE or 0.
 * embedding, capacity, needed: a buffer of the caller, see Buffers; sizes in numbers, which
 * are hidden_size of qwen_model_info.
 *
 * Returns QWEN_OK; QWEN_ERROR_BUFFER_TOO_SMALL; QWEN_ERROR_INVALID_ARGUMENT;
 * QWEN_ERROR_CONTEXT_OVERFLOW; QWEN_ERROR_NUMERIC if a number is not finite; QWEN_CANCELLED;
 * QWEN_ERROR_OUT_OF_MEMORY; QWEN_ERROR_FORKED.
 */
qwen_status qwen_session_embed(qwen_session *session,
                               const int32_t *tokens,
                               size_t count,
                               qwen_pooling pooling,
                               uint32_t flags,
                               float *embedding,
                               size_t capacity,
                               size_t *needed);

/**
 * Tokenizes text and embeds it, see qwen_session_embed().
 *
 * text, length: UTF-8, used during the call; not empty.
 * flags: QWEN_EMBED_NORMALIZE, QWEN_TEXT_ADDED_TOKENS, both or 0.
 *
 * Returns as qwen_session_embed().
 */
qwen_status qwen_session_embed_text(qwen_session *session,
                                    const char *text,
                                    size_t length,
                                    qwen_pooling pooling,
                                    uint32_t flags,
                                    float *embedding,
                                    size_t capacity,
                                    size_t *needed);

/** For qwen_session_score(). */
#define QWEN_SCORE_INIT { (uint32_t)sizeof(qwen_score), 0, 0, 0, 0 }

/* ======================================================================================
 * Conversation over a session
 * ====================================================================================== */

/**
 * A conversation: its messages, and the session that computes the replies. It keeps the
 * session, which may be used by itself between replies, and freed.
 */
typedef struct qwen_conversation qwen_conversation;

/** Whether the model thinks before it answers: one of the QWEN_THINKING constants. */
typedef int32_t qwen_thinking;

/**
 * How a conversation is held. Zero means default, everywhere. Strings are UTF-8, copied; a
 * system_length or tools_length of 0 means up to a NUL, as QWEN_NUL does.
 */
typedef struct {
    /** sizeof(qwen_conversation_options) */
    uint32_t struct_size;
    /** QWEN_CHAT_AS_TRANSFORMERS or 0. */
    uint32_t flags;
    /**
     * Whether the model thinks first. The session's sampling stays as it is; see
     * QWEN_PRESET_THINKING.
     */
    qwen_thinking thinking;
    /**
     * Most tokens of thoughts in a reply; 0: no limit. When they are spent, the think block
     * is closed for the model, which then answers; in that reply it cannot close it once
     * more: the token </think> is not chosen any more, unless a callback leaves no other.
     */
    uint32_t thinking_budget;
    /** Most tokens of a reply, thoughts included; 0: no limit but the session's. */
    uint32_t max_tokens;
    /** Entries in `stop`. */
    uint32_t stop_count;
    /** The system message; NULL: none. */
    const char *system;
    /** Its length in bytes. */
    size_t system_length;
    /**
     * The tools on offer, a JSON array:
     *     [{"type": "function", "function": {"name": ..., "description": ...,
     *       "parameters": a JSON schema}}, ...]
     * NULL: none; tool calls in a reply are then text.
     */
    const char *tools;
    /** Its length in bytes. */
    size_t tools_length;
    /**
     * Texts at which an answer ends, before them. They are looked for in the text of the
     * answer, not in thoughts or tool calls. NULL: none.
     */
    const char *const *stop;
    /**
     * Their lengths in bytes; NULL: all end with a NUL, as one with the length QWEN_NUL does.
     * 0 is an empty string, which is refused.
     */
    const size_t *stop_lengths;
} qwen_conversation_options;

/** As the chat template has it: off for the smallest models, on for the others. */
#define QWEN_THINKING_DEFAULT 0

/** It thinks first. */
#define QWEN_THINKING_ON 1

/** It answers at once. */
#define QWEN_THINKING_OFF 2

/**
 * Sets `size` bytes of options to their defaults: zeros, and struct_size = size. The macro
 * QWEN_CONVERSATION_OPTIONS_INIT does the same in a declaration.
 *
 * size is sizeof(qwen_conversation_options).
 *
 * Returns QWEN_OK, or QWEN_ERROR_INVALID_ARGUMENT for NULL or a size that cannot be.
 */
qwen_status qwen_conversation_options_init(qwen_conversation_options *options, size_t size);

/**
 * Makes a conversation over a session.
 *
 * The conversation keeps the session, even when the session's own handle is freed. The
 * session may be used by other calls between replies (sampling options, statistics, fork,
 * save, even another conversation): the next reply computes what the session does not hold
 * any more. Only while a reply is made its sequence must not be changed. Callbacks of the
 * session stay in force: end them before what their `user` points to goes.
 *
 * To go on from one point in two ways, fork the session, and make a conversation over the
 * fork with the history of this one.
 *
 * options: NULL, or options, used during the call.
 * conversation: receives a handle owned by the caller, for qwen_conversation_free(); NULL
 * on failure.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, also for tools that are not a JSON array of
 * objects and for an empty stop string.
 */
qwen_status qwen_conversation_new(qwen_session *session,
                                  const qwen_conversation_options *options,
                                  qwen_conversation **conversation);

/**
 * Frees the handle. A call in progress on another thread is cancelled, and the memory goes
 * when it returns. NULL is fine. The session is not freed.
 */
void qwen_conversation_free(qwen_conversation *conversation);

/**
 * Goes on by other options from the next reply on. All of them count anew, except that the
 * system message stays if `system` is NULL. Another system message or other tools have
 * everything computed again.
 *
 * options: as for qwen_conversation_new().
 *
 * Returns as qwen_conversation_new(); after an error the conversation is as before.
 */
qwen_status qwen_conversation_configure(qwen_conversation *conversation,
                                        const qwen_conversation_options *options);

/**
 * Adds messages without having them answered yet. A reply in progress ends where it is.
 *
 * json, length: one message or an array of them, see qwen_chat_render(); used during the
 * call.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, which leaves the conversation as before.
 * Whether the template takes the messages turns out when they are sent.
 */
qwen_status qwen_conversation_add(qwen_conversation *conversation,
                                  const char *json,
                                  size_t length);

/**
 * Adds a message of plain text without having it answered yet. A reply in progress ends
 * where it is.
 *
 * role, role_length: "user", "assistant" or "system", UTF-8; used during the call.
 * text, length: the text, UTF-8; used during the call.
 *
 * Returns as qwen_conversation_add().
 */
qwen_status qwen_conversation_add_text(qwen_conversation *conversation,
                                       const char *role,
                                       size_t role_length,
                                       const char *text,
                                       size_t length);

/**
 * Adds the result of a tool call. When the results of all calls of a reply are there, in
 * the order of the calls, qwen_conversation_send() without a message has them answered.
 *
 * id, id_length: the `id` of the call's piece; may be NULL with length 0.
 * result, length: the result as text or JSON, UTF-8; used during the call.
 *
 * Returns as qwen_conversation_add().
 */
qwen_status qwen_conversation_add_tool_result(qwen_conversation *conversation,
                                              const char *id,
                                              size_t id_length,
                                              const char *result,
                                              size_t length);

/**
 * The messages so far as a JSON array, the system's included: what
 * qwen_conversation_set_history() and qwen_chat_render() read. A reply is among them once
 * it has ended, with "reasoning_content" and "tool_calls" where it has them.
 *
 * json, capacity, needed: a buffer of the caller, see Buffers; sizes in bytes.
 *
 * Returns QWEN_OK; QWEN_ERROR_BUFFER_TOO_SMALL; QWEN_ERROR_INVALID_ARGUMENT.
 */
qwen_status qwen_conversation_history(const qwen_conversation *conversation,
                                      char *json,
                                      size_t capacity,
                                      size_t *needed);

/**
 * Replaces all messages, the system's included. A reply in progress is dropped.
 *
 * json, length: an array of messages, used during the call.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_ARGUMENT, which leaves the conversation as before.
 */
qwen_status qwen_conversation_set_history(qwen_conversation *conversation,
                                          const char *json,
                                          size_t length);

/**
 * Cancels the call in progress on a conversation, or the next one if none is, as
 * qwen_session_cancel() does on its session. Any thread may call it at any time.
 *
 * Returns QWEN_OK, or QWEN_ERROR_INVALID_HANDLE.
 */
qwen_status qwen_conversation_cancel(const qwen_conversation *conversation);

/**
 * Forgets a cancel that no call has answered, as qwen_session_cancel_clear() does for the
 * session.
 *
 * Returns QWEN_OK, whether there was one or not; QWEN_ERROR_BUSY during a call.
 */
qwen_status qwen_conversation_cancel_clear(qwen_conversation *conversation);

/** Default options: qwen_conversation_options options =
    QWEN_CONVERSATION_OPTIONS_INIT; */
#define QWEN_CONVERSATION_OPTIONS_INIT \
    { (uint32_t)sizeof(qwen_conversation_options), 0, QWEN_THINKING_DEFAULT, 0, 0, 0, \
      NULL, 0, NULL, 0, NULL, NULL }

/* ======================================================================================
 * Conversation: turns
 * ====================================================================================== */

/**
 * Adds messages and starts the reply to all so far: reads what the session does not hold
 * yet. The reply then comes from qwen_conversation_next(). A reply in progress ends where it
 * is and becomes a message first (if anything of it has come), also where the call then
 * fails, unless by QWEN_ERROR_INVALID_ARGUMENT.
 *
 * json, length: as for qwen_conversation_add(); NULL with length 0 adds nothing.
 * total: receives the tokens of the conversation; NULL if not wanted.
 * computed: receives how many of them this call computed; NULL if not wanted.
 *
 * Returns as qwen_session_feed_chat(). After anything but QWEN_OK the messages are not
 * added; the same call again goes on from what was computed.
 */
qwen_status qwen_conversation_send(qwen_conversation *conversation,
                                   const char *json,
                                   size_t length,
                                   size_t *total,
                                   size_t *computed);

/**
 * Adds a user's message of plain text and starts the reply, see qwen_conversation_send().
 *
 * text, length: UTF-8, used during the call.
 *
 * Returns as qwen_conversation_send().
 */
qwen_status qwen_conversation_send_text(qwen_conversation *conversation,
                                        const char *text,
                                        size_t length,
                                        size_t *total,
                                        size_t *computed);

/**
 * Drops the last reply, in progress or ended, and starts another to the same messages.
 * With a random choice of tokens it comes out differently.
 *
 * total, computed: as for qwen_conversation_send().
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_STATE if the last message is no reply; else what
 * qwen_session_feed_chat() returns. After anything but QWEN_OK the messages are as before. A
 * reply that had ended is still among them then, and the same call again goes on from what
 * was computed. One in progress is gone; qwen_conversation_send() without a message goes on.
 */
qwen_status qwen_conversation_regenerate(qwen_conversation *conversation,
                                         size_t *total,
                                         size_t *computed);

/**
 * Computes now what the next message of the user would wait for: the last reply as the
 * template writes it into history, without thoughts and empty think block. Call it when a
 * reply has ended, while the user reads and types: the next turn then costs its own tokens
 * alone. It computes the reply's tokens together, in a fraction of the time that making them
 * has taken. The progress callback of the session and qwen_conversation_cancel() can end it;
 * what is done by then counts. Without it the same is done by the next
 * qwen_conversation_send(). A reply that was cut can no longer be resumed.
 *
 * total, computed: as for qwen_conversation_send(). Both 0: nothing was done, because the
 * last message is no reply, or one that has called tools. So it is in a conversation that has
 * a system message only: feed that to the session, by qwen_session_feed_chat() with
 * QWEN_CHAT_HISTORY.
 *
 * Returns as qwen_conversation_send(); QWEN_ERROR_INVALID_STATE while a reply is in progress.
 */
qwen_status qwen_conversation_settle(qwen_conversation *conversation,
                                     size_t *total,
                                     size_t *computed);

/**
 * Goes on with a reply that ended by QWEN_FINISH_LENGTH or QWEN_FINISH_CANCELLED as if it
 * had not, for another max_tokens. Its message leaves the history until it ends again. Text
 * that was given is not given again; a tool call that was cut comes again, whole.
 *
 * What a cut has shown of white space, a tag or a stop string that was not whole stays shown,
 * whatever it turns out to be.
 *
 * Returns QWEN_OK; QWEN_ERROR_INVALID_STATE if the last reply did not end so, messages were
 * added since, or the session has gone on elsewhere: nothing is changed then.
 */
qwen_status qwen_conversation_resume(qwen_conversation *conversation);

/**
 * Takes the last turn back: the last user's message and all behind it, and a reply in
 * progress.
 *
 * removed: receives how many messages that were, 0 if there was no user's message; NULL if
 * not wanted.
 *
 * Returns QWEN_OK or QWEN_ERROR_INVALID_ARGUMENT. It costs nothing; the next reply is
 * computed from where the messages still agree.
 */
qwen_status qwen_conversation_undo(qwen_conversation *conversation, size_t *removed);

/* ======================================================================================
 * Pieces of a reply
 * ====================================================================================== */

/** What a piece of a reply is: one of the QWEN_PIECE constants. */
typedef int32_t qwen_piece_kind;

/** Why a reply ended: one of the QWEN_FINISH constants. */
typedef int32_t qwen_finish;

/**
 * A piece of a reply. Strings are UTF-8 of whole characters, lent until the next call on
 * the conversation; behind each is a NUL that is not counted. Fields that a kind of piece
 * does not have are NULL or 0.
 */
typedef struct {
    /** sizeof(qwen_piece) */
    uint32_t struct_size;
    /** What the piece is. */
    qwen_piece_kind kind;
    /** Why the reply ended. */
    qwen_finish finish;
    /**
     * 1 for a tool call that is whole. One that is not was cut by the end of the reply and
     * must not be carried out.
     */
    uint32_t is_whole;
    /** The text of the piece. */
    const char *text;
    /** Its length in bytes. */
    size_t text_length;
    /** The function that is called. */
    const char *name;
    /** Its length in bytes. */
    size_t name_length;
    /**
     * A JSON object. The model writes all values as text; they are typed by the tool's
     * schema: where it says integer, number, boolean, array, object or null, and the text is
     * one in JSON, that it is, else a string.
     */
    const char *arguments;
    /** Its length in bytes. */
    size_t arguments_length;
    /** A name for the call, unique in the conversation. */
    const char *id;
    /** Its length in bytes. */
    size_t id_length;
    /**
     * What is wrong with the form of the call, or does not fit the tool's schema (an unknown
     * tool, a parameter that is missing, a value of another type). Empty for a proper call.
     */
    const char *problem;
    /** Its length in bytes. */
    size_t problem_length;
} qwen_piece;

/** Not set. */
#define QWEN_PIECE_NONE 0

/** Thoughts: `text`. */
#define QWEN_PIECE_THINKING 1

/** Text of the answer: `text`. */
#define QWEN_PIECE_TEXT 2

/**
 * A tool call: `name`, `arguments`, `id`, `is_whole`, `problem`, and as the model wrote it
 * in `text`.
 */
#define QWEN_PIECE_TOOL_CALL 3

/** The reply has ended: `finish`, and in `text` the stop string if one ended it. */
#define QWEN_PIECE_END 4

/** It has not. */
#define QWEN_FINISH_NONE 0

/** The model ended its turn. */
#define QWEN_FINISH_END_OF_TURN 1

/** The model ended its turn and has called tools: it waits for their results. */
#define QWEN_FINISH_TOOL_CALLS 2

/** A stop string came. */
#define QWEN_FINISH_STOP 3

/** The reply is as long as max_tokens; qwen_conversation_resume() goes on. */
#define QWEN_FINISH_LENGTH 4

/** The session is as long as its limit. */
#define QWEN_FINISH_CONTEXT_FULL 5

/** It was cancelled; qwen_conversation_resume() goes on. */
#define QWEN_FINISH_CANCELLED 6

/**
 * Makes the reply's next piece. A loop over a reply:
 *     qwen_piece piece = QWEN_PIECE_INIT;
 *     while ((status = qwen_conversation_next(conversation, &piece)) == QWEN_OK) { ... }
 *     ... piece.finish says why it ended, if status is not negative
 *
 * Text is given out as soon as it is sure to be no part of a stop string, a tag or an
 * unfinished character. A call makes as many tokens as that takes. At the end of a reply by
 * max_tokens, a full session or a cancel, bytes of an unfinished character are not given;
 * after qwen_conversation_resume() they are completed.
 *
 * piece: filled as far as its struct_size reaches, which must be set; owned by the caller.
 *
 * Returns QWEN_OK with thoughts, text or a tool call. With QWEN_PIECE_END, again and again:
 * QWEN_END_OF_TURN (the model's turn has ended, or a stop string came), QWEN_LIMIT_REACHED
 * or QWEN_CANCELLED; the reply is then the last message of the history.
 * QWEN_ERROR_INVALID_STATE if no reply was started, or the session's sequence was changed
 * during it; QWEN_ERROR_NUMERIC, QWEN_ERROR_OUT_OF_MEMORY and QWEN_ERROR_FORKED as
 * qwen_session_next_token(); QWEN_ERROR_INVALID_ARGUMENT. After an error the call can be
 * repeated, and the piece is QWEN_PIECE_NONE.
 */
qwen_status qwen_conversation_next(qwen_conversation *conversation, qwen_piece *piece);

/** For qwen_conversation_next(). */
#define QWEN_PIECE_INIT \
    { (uint32_t)sizeof(qwen_piece), QWEN_PIECE_NONE, QWEN_FINISH_NONE, 0, \
      NULL, 0, NULL, 0, NULL, 0, NULL, 0, NULL, 0 }

/* ======================================================================================
 * Conversation: a little at a time
 * ====================================================================================== */

/**
 * Adds messages and starts the reply as qwen_conversation_send() does, but computes nothing:
 * qwen_conversation_step() does that (or qwen_conversation_next(), all of it at once).
 *
 * json, length: as for qwen_conversation_send().
 * total: receives the tokens of the conversation; NULL if not wanted.
 * remaining: receives how many of them are still to be computed; NULL if not wanted.
 *
 * Returns as qwen_conversation_send(), but never QWEN_CANCELLED.
 */
qwen_status qwen_conversation_enqueue(qwen_conversation *conversation,
                                      const char *json,
                                      size_t length,
                                      size_t *total,
                                      size_t *remaining);

/**
 * Adds a user's message of plain text and starts the reply, see qwen_conversation_enqueue().
 *
 * text, length: UTF-8, used during the call.
 *
 * Returns as qwen_conversation_enqueue().
 */
qwen_status qwen_conversation_enqueue_text(qwen_conversation *conversation,
                                           const char *text,
                                           size_t length,
                                           size_t *total,
                                           size_t *remaining);

/**
 * Goes on with the reply for about as long as a budget says: computes what was queued, then
 * makes the reply's next piece. For frame loops: call it once per frame. The pieces are those
 * of qwen_conversation_next(), which may be called in between; thinking budget, stop strings
 * and tool calls work the same.
 *
 * budget_us: microseconds, as for qwen_session_step(). The call returns sooner with a piece.
 * piece: as for qwen_conversation_next(). QWEN_PIECE_NONE while there is none.
 * remaining: receives the tokens of the session's sequence that are not computed yet, by
 * which a host shows how far a long prompt has come; NULL if not wanted.
 *
 * Returns QWEN_WORKING when the time is over and there is no piece yet; else as
 * qwen_conversation_next(). QWEN_CANCELLED with QWEN_PIECE_NONE: it was cancelled before all
 * messages were computed. There is no reply then; the messages stay, and
 * qwen_conversation_enqueue() or qwen_conversation_send() with no further ones goes on from
 * what was computed. So it is after an error at that point.
 */
qwen_status qwen_conversation_step(qwen_conversation *conversation,
                                   uint64_t budget_us,
                                   qwen_piece *piece,
                                   size_t *remaining);

/* ======================================================================================
 * Conversation: saved
 * ====================================================================================== */

/**
 * Saves a conversation and its session to a file, at any time, also in the middle of a reply
 * or while messages are being computed in steps: what qwen_session_save_file() saves, the
 * options, the messages, and the reply where it stands. Restored, it goes on with the piece
 * that would have come next. The file is replaced at once, as by qwen_session_save_file().
 *
 * file, file_length: the path, used during the call.
 * flags: QWEN_SAVE_WITHOUT_MARKS or 0.
 *
 * Returns as qwen_session_save_file().
 */
qwen_status qwen_conversation_save_file(const qwen_conversation *conversation,
                                        const char *file,
                                        size_t file_length,
                                        uint32_t flags);

/**
 * Puts a conversation and its session where saved ones were, on this model or on the same
 * one in another process. Options and messages are those that were saved;
 * qwen_conversation_configure() changes the options from the next reply on. Callbacks are not
 * saved: those of this session stay. Else as qwen_session_restore_file().
 *
 * file, file_length: the path, used during the call.
 *
 * Returns as qwen_session_restore_file(). Without QWEN_OK conversation and session are as
 * before. QWEN_ERROR_FORMAT is also the answer to what qwen_session_save_file() saved.
 */
qwen_status qwen_conversation_restore_file(qwen_conversation *conversation,
                                           const char *file,
                                           size_t file_length);

/**
 * As qwen_conversation_save_file(), to memory.
 *
 * flags: QWEN_SAVE_WITHOUT_MARKS or 0.
 * data, capacity, needed: a buffer of the caller, see Buffers; sizes in bytes. The size
 * grows with the sequence and the messages.
 *
 * Returns as qwen_session_save_memory().
 */
qwen_status qwen_conversation_save_memory(const qwen_conversation *conversation,
                                          uint32_t flags,
                                          void *data,
                                          size_t capacity,
                                          size_t *needed);

/**
 * As qwen_conversation_restore_file(), from memory.
 *
 * data, size: used during the call.
 *
 * Returns as qwen_conversation_restore_file(), without QWEN_ERROR_IO.
 */
qwen_status qwen_conversation_restore_memory(qwen_conversation *conversation,
                                             const void *data,
                                             size_t size);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* QWEN35_H */
