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

/** Logits hold NaN, or no token is left to choose from. */
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

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* QWEN35_H */
