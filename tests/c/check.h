/* Assertions of the C tests. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qwen35.h"

/* Exits with where it is and the library's last error unless `condition` holds. */
#define CHECK(condition)                                                                       \
    ((condition) ? (void)0                                                                     \
                 : (fprintf(stderr, "%s:%d: CHECK(%s)\nlast error: %s\n", __FILE__, __LINE__,  \
                            #condition, qwen_last_error()),                                    \
                    exit(1)))

/* Checks the status of a call, and says which one it was. */
#define EXPECT(status, call)                                                                   \
    do {                                                                                       \
        qwen_status got_ = (call);                                                             \
        if (got_ != (status)) {                                                                \
            fprintf(stderr, "%s:%d: %s\nis %s, not %s\nlast error: %s\n", __FILE__, __LINE__,  \
                    #call, qwen_status_name(got_), #status, qwen_last_error());                \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

#define OK(call) EXPECT(QWEN_OK, call)
#define INVALID(call) EXPECT(QWEN_ERROR_INVALID_ARGUMENT, call)

/* Checks that the last error speaks of `text`. */
#define SAYS(text) CHECK(strstr(qwen_last_error(), text) != NULL)

#endif
