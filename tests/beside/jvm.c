/* What tests/beside/Jvm.java calls: opens the model, and feeds and asks `rounds` times. */
#include <jni.h>
#include <stdio.h>

#include "qwen35.h"

JNIEXPORT jint JNICALL Java_Jvm_round(JNIEnv *env, jclass class, jstring path, jint rounds) {
    const char *folder = (*env)->GetStringUTFChars(env, path, NULL);
    qwen_model *model = NULL;
    qwen_session *session = NULL;
    int32_t ids[] = {1, 2, 3, 4}, token;
    jint made = 0;
    (void)class;
    if (qwen_model_open(folder, QWEN_NUL, NULL, &model) == QWEN_OK &&
        qwen_session_new(model, NULL, &session) == QWEN_OK)
        while (made < rounds && qwen_session_feed(session, ids, 4) == QWEN_OK &&
               qwen_session_next_token(session, &token) >= 0)
            made++;
    if (made < rounds) fprintf(stderr, "after %d rounds: %s\n", (int)made, qwen_last_error());
    qwen_session_free(session);
    qwen_model_free(model);
    (*env)->ReleaseStringUTFChars(env, path, folder);
    return made;
}
