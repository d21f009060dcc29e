# Generated from include/qwen35.h by `make header`. Do not edit.
"""The C interface as ctypes sees it. What it means is in qwen35.h."""

import ctypes
from typing import Any, Dict, List, Tuple

qwen_status = ctypes.c_int32
QWEN_OK = 0
QWEN_END_OF_TURN = 1
QWEN_LIMIT_REACHED = 2
QWEN_CANCELLED = 3
QWEN_ERROR_INVALID_ARGUMENT = -1
QWEN_ERROR_INVALID_HANDLE = -2
QWEN_ERROR_INVALID_STATE = -3
QWEN_ERROR_BUFFER_TOO_SMALL = -4
QWEN_ERROR_BUSY = -5
QWEN_ERROR_IO = -6
QWEN_ERROR_FORMAT = -7
QWEN_ERROR_UNSUPPORTED = -8
QWEN_ERROR_CONTEXT_OVERFLOW = -9
QWEN_ERROR_TEMPLATE = -10
QWEN_ERROR_NUMERIC = -11
QWEN_ERROR_OUT_OF_MEMORY = -12
QWEN_ERROR_FORKED = -13
QWEN_ERROR_INTERNAL = -14
QWEN_VERSION_MAJOR = 0
QWEN_VERSION_MINOR = 1
QWEN_VERSION_PATCH = 0
QWEN_ABI_VERSION = 0
QWEN_NUL = ctypes.c_size_t(-1).value
QWEN_MODEL_TOKENIZER_ONLY = 1


class qwen_model(ctypes.Structure):
    pass


qwen_isa = ctypes.c_int32


class qwen_model_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("isa", qwen_isa),
    ]


class qwen_model_info(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("has_weights", ctypes.c_uint32),
        ("has_chat_template", ctypes.c_uint32),
        ("token_count", ctypes.c_uint32),
        ("vocab_size", ctypes.c_uint32),
        ("context_limit", ctypes.c_uint32),
        ("hidden_size", ctypes.c_uint32),
        ("layer_count", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("isa", qwen_isa),
        ("weight_bytes", ctypes.c_uint64),
    ]


QWEN_ISA_AUTO = 0
QWEN_ISA_SCALAR = 1
QWEN_ISA_AVX2 = 2
QWEN_ISA_AVX512 = 3
QWEN_TEXT_ADDED_TOKENS = 1
QWEN_TEXT_SKIP_SPECIAL = 2
QWEN_TOKEN_ADDED = 1
QWEN_TOKEN_SPECIAL = 2
QWEN_TOKEN_END_OF_TURN = 4
QWEN_TOKEN_PADDING = 8


class qwen_stream_decoder(ctypes.Structure):
    pass


QWEN_CHAT_AS_TRANSFORMERS = 4
QWEN_SET_TEMPERATURE = 1
QWEN_SET_TOP_K = 2
QWEN_SET_TOP_P = 4
QWEN_SET_MIN_P = 8
QWEN_SET_REPETITION_PENALTY = 16
QWEN_SET_PRESENCE_PENALTY = 32
QWEN_SET_FREQUENCY_PENALTY = 64
QWEN_SET_PENALTY_WINDOW = 128
QWEN_SET_SEED = 256
qwen_preset = ctypes.c_int32


class qwen_logit_bias(ctypes.Structure):
    _fields_ = [
        ("token", ctypes.c_int32),
        ("bias", ctypes.c_float),
    ]


class qwen_sampling_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("set", ctypes.c_uint32),
        ("preset", qwen_preset),
        ("temperature", ctypes.c_float),
        ("top_k", ctypes.c_uint32),
        ("top_p", ctypes.c_float),
        ("min_p", ctypes.c_float),
        ("repetition_penalty", ctypes.c_float),
        ("presence_penalty", ctypes.c_float),
        ("frequency_penalty", ctypes.c_float),
        ("penalty_window", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("seed", ctypes.c_uint64),
        ("logit_bias", ctypes.POINTER(qwen_logit_bias)),
        ("logit_bias_count", ctypes.c_size_t),
    ]


QWEN_PRESET_CHAT = 0
QWEN_PRESET_GREEDY = 1
QWEN_PRESET_THINKING = 2
QWEN_PRESET_PRECISE = 3


class qwen_session(ctypes.Structure):
    pass


class qwen_session_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("context_limit", ctypes.c_uint64),
        ("sampling", ctypes.POINTER(qwen_sampling_options)),
    ]


qwen_progress_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)


# Result and parameters of each function.
FUNCTIONS: Dict[str, Tuple[Any, List[Any]]] = {
    "qwen_last_error": (ctypes.c_char_p, []),
    "qwen_status_name": (ctypes.c_char_p, [
        qwen_status,
    ]),
    "qwen_version": (ctypes.c_char_p, []),
    "qwen_abi_version": (ctypes.c_uint32, []),
    "qwen_build_info": (ctypes.c_char_p, []),
    "qwen_cpu_info": (ctypes.c_char_p, []),
    "qwen_model_options_init": (qwen_status, [
        ctypes.POINTER(qwen_model_options),
        ctypes.c_size_t,
    ]),
    "qwen_model_open": (qwen_status, [
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.POINTER(qwen_model_options),
        ctypes.POINTER(ctypes.POINTER(qwen_model)),
    ]),
    "qwen_model_free": (None, [
        ctypes.POINTER(qwen_model),
    ]),
    "qwen_model_get_info": (qwen_status, [
        ctypes.POINTER(qwen_model),
        ctypes.POINTER(qwen_model_info),
    ]),
    "qwen_model_end_tokens": (qwen_status, [
        ctypes.POINTER(qwen_model),
        ctypes.POINTER(ctypes.POINTER(ctypes.c_int32)),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_tokenize": (qwen_status, [
        ctypes.POINTER(qwen_model),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_uint32,
        ctypes.POINTER(ctypes.c_int32),
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_detokenize": (qwen_status, [
        ctypes.POINTER(qwen_model),
        ctypes.POINTER(ctypes.c_int32),
        ctypes.c_size_t,
        ctypes.c_uint32,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_token_bytes": (qwen_status, [
        ctypes.POINTER(qwen_model),
        ctypes.c_int32,
        ctypes.POINTER(ctypes.POINTER(ctypes.c_char)),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_token_kind": (qwen_status, [
        ctypes.POINTER(qwen_model),
        ctypes.c_int32,
        ctypes.POINTER(ctypes.c_uint32),
    ]),
    "qwen_token_find": (qwen_status, [
        ctypes.POINTER(qwen_model),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_int32),
    ]),
    "qwen_stream_decoder_new": (qwen_status, [
        ctypes.POINTER(qwen_model),
        ctypes.c_uint32,
        ctypes.POINTER(ctypes.POINTER(qwen_stream_decoder)),
    ]),
    "qwen_stream_decoder_free": (None, [
        ctypes.POINTER(qwen_stream_decoder),
    ]),
    "qwen_stream_decoder_push": (qwen_status, [
        ctypes.POINTER(qwen_stream_decoder),
        ctypes.c_int32,
        ctypes.POINTER(ctypes.POINTER(ctypes.c_char)),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_stream_decoder_finish": (qwen_status, [
        ctypes.POINTER(qwen_stream_decoder),
        ctypes.POINTER(ctypes.POINTER(ctypes.c_char)),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_chat_render": (qwen_status, [
        ctypes.POINTER(qwen_model),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_uint32,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_chat_tokenize": (qwen_status, [
        ctypes.POINTER(qwen_model),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_uint32,
        ctypes.POINTER(ctypes.c_int32),
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_sampling_options_init": (qwen_status, [
        ctypes.POINTER(qwen_sampling_options),
        ctypes.c_size_t,
    ]),
    "qwen_session_options_init": (qwen_status, [
        ctypes.POINTER(qwen_session_options),
        ctypes.c_size_t,
    ]),
    "qwen_session_new": (qwen_status, [
        ctypes.POINTER(qwen_model),
        ctypes.POINTER(qwen_session_options),
        ctypes.POINTER(ctypes.POINTER(qwen_session)),
    ]),
    "qwen_session_free": (None, [
        ctypes.POINTER(qwen_session),
    ]),
    "qwen_session_feed": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.c_int32),
        ctypes.c_size_t,
    ]),
    "qwen_session_feed_text": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_uint32,
    ]),
    "qwen_session_feed_chat": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_uint32,
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_session_next_token": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.c_int32),
    ]),
    "qwen_session_logits": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.POINTER(ctypes.c_float)),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_session_position": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_session_context_limit": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_session_tokens": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.POINTER(ctypes.c_int32)),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_session_set_sampling": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(qwen_sampling_options),
    ]),
    "qwen_session_set_progress": (qwen_status, [
        ctypes.POINTER(qwen_session),
        qwen_progress_callback,
        ctypes.c_void_p,
    ]),
    "qwen_session_reset": (qwen_status, [
        ctypes.POINTER(qwen_session),
    ]),
    "qwen_session_cancel": (qwen_status, [
        ctypes.POINTER(qwen_session),
    ]),
}
