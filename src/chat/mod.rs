//! Messages to prompt, by the checkpoint's own chat template.
