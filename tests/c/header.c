/* What the header alone must be: usable in every standard of C and C++, twice, inside another
 * extern "C", with every macro. It is compiled only; version.c runs. */
#ifdef __cplusplus
extern "C" {
#endif
#include "qwen35.h"
#include "qwen35.h"
#ifdef __cplusplus
}
#endif

int use(void);
int use(void) {
    qwen_model_options a = QWEN_MODEL_OPTIONS_INIT;
    qwen_model_info b = QWEN_MODEL_INFO_INIT;
    qwen_sampling_options c = QWEN_SAMPLING_OPTIONS_INIT;
    qwen_session_options d = QWEN_SESSION_OPTIONS_INIT;
    qwen_model *model = NULL;
    qwen_status status = QWEN_ERROR_IO - QWEN_ERROR_INTERNAL; /* macros bind tightly */
    size_t length = QWEN_NUL;
    status += qwen_model_open("", length, &a, &model);
    return (int)(a.struct_size + b.struct_size + c.struct_size + d.struct_size) + (int)status;
}
