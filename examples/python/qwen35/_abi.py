# Generated from include/qwen35.h by `make header`. Do not edit.
"""The C interface as ctypes sees it. What it means is in qwen35.h."""

import ctypes
from typing import Any, Dict, List, Tuple

qwen_status = ctypes.c_int32
QWEN_OK = 0
QWEN_END_OF_TURN = 1
QWEN_LIMIT_REACHED = 2
QWEN_CANCELLED = 3
QWEN_WORKING = 4
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
qwen_log_level = ctypes.c_int32
qwen_log_callback = ctypes.CFUNCTYPE(None, qwen_log_level, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p)
qwen_weights = ctypes.c_int32
qwen_compute = ctypes.c_int32
qwen_open_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)


class qwen_model_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("isa", qwen_isa),
        ("log", qwen_log_callback),
        ("log_user", ctypes.c_void_p),
        ("log_level", qwen_log_level),
        ("reserved", ctypes.c_uint32),
        ("weights", qwen_weights),
        ("compute", qwen_compute),
        ("progress", qwen_open_callback),
        ("user", ctypes.c_void_p),
        ("prefix_cache_bytes", ctypes.c_uint64),
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
        ("weights", qwen_weights),
        ("compute", qwen_compute),
    ]


QWEN_ISA_AUTO = 0
QWEN_ISA_SCALAR = 1
QWEN_ISA_AVX2 = 2
QWEN_ISA_AVX512 = 3
QWEN_WEIGHTS_STORED = 0
QWEN_WEIGHTS_INT8 = 1
QWEN_WEIGHTS_INT4 = 2
QWEN_COMPUTE_AUTO = 0
QWEN_COMPUTE_EXACT = 1
QWEN_COMPUTE_FAST = 2
QWEN_LOG_NOTHING = 0
QWEN_LOG_WARNING = 1
QWEN_LOG_INFO = 2
QWEN_LOG_DEBUG = 3
qwen_release_callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
qwen_read_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
qwen_work_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)
QWEN_FILE_MISSING = 1
qwen_file_open_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_uint64), ctypes.c_void_p)
qwen_file_read_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
qwen_file_close_callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class qwen_file_callbacks(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("open", qwen_file_open_callback),
        ("read", qwen_file_read_callback),
        ("close", qwen_file_close_callback),
    ]


class qwen_model_cost(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("weight_bytes", ctypes.c_uint64),
        ("mapped_bytes", ctypes.c_uint64),
        ("session_bytes", ctypes.c_uint64),
        ("session_start_bytes", ctypes.c_uint64),
        ("copy_bytes", ctypes.c_uint64),
        ("scratch_bytes", ctypes.c_uint64),
        ("kv_fp32_bytes", ctypes.c_uint64),
        ("kv_fp16_bytes", ctypes.c_uint64),
        ("kv_int8_bytes", ctypes.c_uint64),
    ]


class qwen_pack_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("weights", qwen_weights),
        ("threads", ctypes.c_uint32),
    ]


class qwen_pack_info(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("file_bytes", ctypes.c_uint64),
        ("weight_bytes", ctypes.c_uint64),
        ("fingerprint", ctypes.c_uint64),
    ]


QWEN_TEXT_ADDED_TOKENS = 1
QWEN_TEXT_SKIP_SPECIAL = 2
QWEN_TOKEN_ADDED = 1
QWEN_TOKEN_SPECIAL = 2
QWEN_TOKEN_END_OF_TURN = 4
QWEN_TOKEN_PADDING = 8


class qwen_stream_decoder(ctypes.Structure):
    pass


QWEN_CHAT_AS_TRANSFORMERS = 4
QWEN_CHAT_HISTORY = 8
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


qwen_overflow = ctypes.c_int32
qwen_kv = ctypes.c_int32


class qwen_session_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("context_limit", ctypes.c_uint64),
        ("sampling", ctypes.POINTER(qwen_sampling_options)),
        ("cache_namespace", ctypes.c_uint64),
        ("overflow_reserve", ctypes.c_uint64),
        ("overflow", qwen_overflow),
        ("mark_limit", ctypes.c_uint32),
        ("kv", qwen_kv),
        ("reserved", ctypes.c_uint32),
    ]


qwen_progress_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
QWEN_KV_AUTO = 0
QWEN_KV_FP32 = 1
QWEN_KV_FP16 = 2
QWEN_KV_INT8 = 3
QWEN_OVERFLOW_REFUSE = 0
QWEN_OVERFLOW_DROP_TURNS = 1
QWEN_REWIND_RANDOM = 1


class qwen_mark(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint64),
        ("position", ctypes.c_uint64),
        ("automatic", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class qwen_feed_info(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("total", ctypes.c_uint64),
        ("computed", ctypes.c_uint64),
        ("cached", ctypes.c_uint64),
        ("dropped_messages", ctypes.c_uint64),
        ("kept_messages", ctypes.c_uint64),
        ("dropped_tokens", ctypes.c_uint64),
        ("kept_tokens", ctypes.c_uint64),
    ]


class qwen_prefix_cache_info(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("bytes", ctypes.c_uint64),
        ("limit", ctypes.c_uint64),
        ("entries", ctypes.c_uint64),
        ("hits", ctypes.c_uint64),
        ("misses", ctypes.c_uint64),
        ("evictions", ctypes.c_uint64),
    ]


QWEN_SAVE_WITHOUT_MARKS = 1
QWEN_STEP_INPUT = 1


class qwen_statistics(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("sessions", ctypes.c_uint32),
        ("input_tokens", ctypes.c_uint64),
        ("output_tokens", ctypes.c_uint64),
        ("reused_tokens", ctypes.c_uint64),
        ("cached_tokens", ctypes.c_uint64),
        ("input_us", ctypes.c_uint64),
        ("output_us", ctypes.c_uint64),
        ("first_token_us", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("input_rate", ctypes.c_double),
        ("output_rate", ctypes.c_double),
    ]


qwen_logits_callback = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.POINTER(ctypes.c_float), ctypes.c_size_t, ctypes.POINTER(ctypes.c_int32), ctypes.c_size_t, ctypes.c_void_p)
QWEN_SCORE_KEEP = 8
QWEN_EMBED_NORMALIZE = 16


class qwen_token_logprob(ctypes.Structure):
    _fields_ = [
        ("token", ctypes.c_int32),
        ("logprob", ctypes.c_float),
    ]


class qwen_score(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("best_count", ctypes.c_uint32),
        ("token_count", ctypes.c_uint64),
        ("log_likelihood", ctypes.c_double),
        ("perplexity", ctypes.c_double),
    ]


qwen_pooling = ctypes.c_int32
QWEN_POOLING_MEAN = 0
QWEN_POOLING_LAST = 1


class qwen_conversation(ctypes.Structure):
    pass


qwen_thinking = ctypes.c_int32


class qwen_conversation_options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("flags", ctypes.c_uint32),
        ("thinking", qwen_thinking),
        ("thinking_budget", ctypes.c_uint32),
        ("max_tokens", ctypes.c_uint32),
        ("stop_count", ctypes.c_uint32),
        ("system", ctypes.c_char_p),
        ("system_length", ctypes.c_size_t),
        ("tools", ctypes.c_char_p),
        ("tools_length", ctypes.c_size_t),
        ("stop", ctypes.POINTER(ctypes.POINTER(ctypes.c_char))),
        ("stop_lengths", ctypes.POINTER(ctypes.c_size_t)),
    ]


QWEN_THINKING_DEFAULT = 0
QWEN_THINKING_ON = 1
QWEN_THINKING_OFF = 2
qwen_piece_kind = ctypes.c_int32
qwen_finish = ctypes.c_int32


class qwen_piece(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_uint32),
        ("kind", qwen_piece_kind),
        ("finish", qwen_finish),
        ("is_whole", ctypes.c_uint32),
        ("text", ctypes.c_char_p),
        ("text_length", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("name_length", ctypes.c_size_t),
        ("arguments", ctypes.c_char_p),
        ("arguments_length", ctypes.c_size_t),
        ("id", ctypes.c_char_p),
        ("id_length", ctypes.c_size_t),
        ("problem", ctypes.c_char_p),
        ("problem_length", ctypes.c_size_t),
    ]


QWEN_PIECE_NONE = 0
QWEN_PIECE_THINKING = 1
QWEN_PIECE_TEXT = 2
QWEN_PIECE_TOOL_CALL = 3
QWEN_PIECE_END = 4
QWEN_FINISH_NONE = 0
QWEN_FINISH_END_OF_TURN = 1
QWEN_FINISH_TOOL_CALLS = 2
QWEN_FINISH_STOP = 3
QWEN_FINISH_LENGTH = 4
QWEN_FINISH_CONTEXT_FULL = 5
QWEN_FINISH_CANCELLED = 6


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
    "qwen_model_open_memory": (qwen_status, [
        ctypes.c_void_p,
        ctypes.c_size_t,
        qwen_release_callback,
        ctypes.c_void_p,
        ctypes.POINTER(qwen_model_options),
        ctypes.POINTER(ctypes.POINTER(qwen_model)),
    ]),
    "qwen_model_open_reader": (qwen_status, [
        ctypes.c_uint64,
        qwen_read_callback,
        ctypes.c_void_p,
        ctypes.POINTER(qwen_model_options),
        ctypes.POINTER(ctypes.POINTER(qwen_model)),
    ]),
    "qwen_model_warm_up": (qwen_status, [
        ctypes.POINTER(qwen_model),
        qwen_work_callback,
        ctypes.c_void_p,
    ]),
    "qwen_model_open_files": (qwen_status, [
        ctypes.POINTER(qwen_file_callbacks),
        ctypes.c_void_p,
        ctypes.POINTER(qwen_model_options),
        ctypes.POINTER(ctypes.POINTER(qwen_model)),
    ]),
    "qwen_model_estimate": (qwen_status, [
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.POINTER(qwen_model_options),
        ctypes.c_uint64,
        ctypes.POINTER(qwen_model_cost),
    ]),
    "qwen_model_estimate_memory": (qwen_status, [
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.POINTER(qwen_model_options),
        ctypes.c_uint64,
        ctypes.POINTER(qwen_model_cost),
    ]),
    "qwen_model_estimate_reader": (qwen_status, [
        ctypes.c_uint64,
        qwen_read_callback,
        ctypes.c_void_p,
        ctypes.POINTER(qwen_model_options),
        ctypes.c_uint64,
        ctypes.POINTER(qwen_model_cost),
    ]),
    "qwen_model_estimate_files": (qwen_status, [
        ctypes.POINTER(qwen_file_callbacks),
        ctypes.c_void_p,
        ctypes.POINTER(qwen_model_options),
        ctypes.c_uint64,
        ctypes.POINTER(qwen_model_cost),
    ]),
    "qwen_pack": (qwen_status, [
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.POINTER(qwen_pack_options),
        qwen_work_callback,
        ctypes.c_void_p,
        ctypes.POINTER(qwen_pack_info),
    ]),
    "qwen_pack_verify": (qwen_status, [
        ctypes.c_char_p,
        ctypes.c_size_t,
        qwen_work_callback,
        ctypes.c_void_p,
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
    "qwen_stream_decoder_resume": (qwen_status, [
        ctypes.POINTER(qwen_stream_decoder),
        ctypes.POINTER(ctypes.c_int32),
        ctypes.c_size_t,
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
    "qwen_session_kv": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(qwen_kv),
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
    "qwen_session_cancel_clear": (qwen_status, [
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
    "qwen_session_enqueue": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.c_int32),
        ctypes.c_size_t,
    ]),
    "qwen_session_enqueue_text": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_uint32,
    ]),
    "qwen_session_enqueue_chat": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_uint32,
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_session_fork": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.POINTER(qwen_session)),
    ]),
    "qwen_session_mark": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.c_uint64),
    ]),
    "qwen_session_unmark": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_uint64,
    ]),
    "qwen_session_marks": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(qwen_mark),
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_session_rewind": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_uint64,
        ctypes.c_uint32,
    ]),
    "qwen_session_truncate": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_session_set_tokens": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.c_int32),
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_session_get_feed_info": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(qwen_feed_info),
    ]),
    "qwen_prefix_cache_get_info": (qwen_status, [
        ctypes.POINTER(qwen_model),
        ctypes.POINTER(qwen_prefix_cache_info),
    ]),
    "qwen_prefix_cache_clear": (qwen_status, [
        ctypes.POINTER(qwen_model),
        ctypes.c_uint64,
    ]),
    "qwen_session_set_attachment": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_void_p,
        ctypes.c_size_t,
    ]),
    "qwen_session_attachment": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.c_void_p),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_session_save_file": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_uint32,
    ]),
    "qwen_session_restore_file": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]),
    "qwen_session_save_memory": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_uint32,
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_session_restore_memory": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_void_p,
        ctypes.c_size_t,
    ]),
    "qwen_session_step": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_uint64,
        ctypes.c_uint32,
        ctypes.POINTER(ctypes.c_int32),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_batch_step": (qwen_status, [
        ctypes.POINTER(ctypes.POINTER(qwen_session)),
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_int32),
        ctypes.POINTER(qwen_status),
    ]),
    "qwen_session_get_statistics": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(qwen_statistics),
    ]),
    "qwen_model_get_statistics": (qwen_status, [
        ctypes.POINTER(qwen_model),
        ctypes.POINTER(qwen_statistics),
    ]),
    "qwen_session_set_logits_callback": (qwen_status, [
        ctypes.POINTER(qwen_session),
        qwen_logits_callback,
        ctypes.c_void_p,
    ]),
    "qwen_session_logprobs": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.c_int32),
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_float),
    ]),
    "qwen_session_top_logprobs": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(qwen_token_logprob),
        ctypes.c_size_t,
    ]),
    "qwen_session_chosen_logprobs": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.c_float),
        ctypes.POINTER(qwen_token_logprob),
        ctypes.c_size_t,
    ]),
    "qwen_session_score": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.c_int32),
        ctypes.c_size_t,
        ctypes.c_uint32,
        ctypes.POINTER(ctypes.c_float),
        ctypes.POINTER(qwen_score),
    ]),
    "qwen_session_score_text": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_uint32,
        ctypes.POINTER(qwen_score),
    ]),
    "qwen_session_embed": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(ctypes.c_int32),
        ctypes.c_size_t,
        qwen_pooling,
        ctypes.c_uint32,
        ctypes.POINTER(ctypes.c_float),
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_session_embed_text": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.c_char_p,
        ctypes.c_size_t,
        qwen_pooling,
        ctypes.c_uint32,
        ctypes.POINTER(ctypes.c_float),
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_conversation_options_init": (qwen_status, [
        ctypes.POINTER(qwen_conversation_options),
        ctypes.c_size_t,
    ]),
    "qwen_conversation_new": (qwen_status, [
        ctypes.POINTER(qwen_session),
        ctypes.POINTER(qwen_conversation_options),
        ctypes.POINTER(ctypes.POINTER(qwen_conversation)),
    ]),
    "qwen_conversation_free": (None, [
        ctypes.POINTER(qwen_conversation),
    ]),
    "qwen_conversation_configure": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.POINTER(qwen_conversation_options),
    ]),
    "qwen_conversation_add": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]),
    "qwen_conversation_add_text": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]),
    "qwen_conversation_add_tool_result": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]),
    "qwen_conversation_history": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_conversation_set_history": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]),
    "qwen_conversation_cancel": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
    ]),
    "qwen_conversation_cancel_clear": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
    ]),
    "qwen_conversation_send": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_conversation_send_text": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_conversation_regenerate": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_conversation_settle": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_conversation_resume": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
    ]),
    "qwen_conversation_undo": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_conversation_next": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.POINTER(qwen_piece),
    ]),
    "qwen_conversation_enqueue": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_conversation_enqueue_text": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_conversation_step": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.c_uint64,
        ctypes.POINTER(qwen_piece),
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_conversation_save_file": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.c_char_p,
        ctypes.c_size_t,
        ctypes.c_uint32,
    ]),
    "qwen_conversation_restore_file": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]),
    "qwen_conversation_save_memory": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.c_uint32,
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.POINTER(ctypes.c_size_t),
    ]),
    "qwen_conversation_restore_memory": (qwen_status, [
        ctypes.POINTER(qwen_conversation),
        ctypes.c_void_p,
        ctypes.c_size_t,
    ]),
}
