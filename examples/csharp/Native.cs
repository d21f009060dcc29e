// Generated from include/qwen35.h by `make header`. Do not edit.
// The C interface as P/Invoke sees it. What it means is in qwen35.h.
using System;
using System.Runtime.InteropServices;

namespace Qwen35
{
    /// <summary>Owns a qwen_model; frees it when nothing uses it any more.</summary>
    public sealed class ModelHandle : SafeHandle
    {
        public ModelHandle() : base(IntPtr.Zero, true) { }
        public override bool IsInvalid { get { return handle == IntPtr.Zero; } }
        protected override bool ReleaseHandle()
        {
            Native.qwen_model_free(handle);
            return true;
        }
    }

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public unsafe delegate void qwen_log_callback(int level, byte* message, UIntPtr length, void* user);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public unsafe delegate int qwen_open_callback(ulong done, ulong total, void* user);

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_model_options
    {
        public uint struct_size;
        public uint flags;
        public uint threads;
        public int isa;
        public IntPtr log;
        public void* log_user;
        public int log_level;
        public uint reserved;
        public int weights;
        public int compute;
        public IntPtr progress;
        public void* user;
        public ulong prefix_cache_bytes;
    }

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_model_info
    {
        public uint struct_size;
        public uint has_weights;
        public uint has_chat_template;
        public uint token_count;
        public uint vocab_size;
        public uint context_limit;
        public uint hidden_size;
        public uint layer_count;
        public uint threads;
        public int isa;
        public ulong weight_bytes;
        public int weights;
        public int compute;
    }

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public unsafe delegate void qwen_release_callback(void* data, UIntPtr length, void* user);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public unsafe delegate int qwen_read_callback(ulong offset, void* buffer, UIntPtr length, void* user);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public unsafe delegate int qwen_work_callback(ulong done, ulong total, void* user);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public unsafe delegate int qwen_file_open_callback(byte* name, UIntPtr length, void** file, ulong* size, void* user);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public unsafe delegate int qwen_file_read_callback(void* file, ulong offset, void* buffer, UIntPtr length, void* user);

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public unsafe delegate void qwen_file_close_callback(void* file, void* user);

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_file_callbacks
    {
        public uint struct_size;
        public uint flags;
        public IntPtr open;
        public IntPtr read;
        public IntPtr close;
    }

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_model_cost
    {
        public uint struct_size;
        public uint reserved;
        public ulong weight_bytes;
        public ulong mapped_bytes;
        public ulong session_bytes;
        public ulong session_start_bytes;
        public ulong copy_bytes;
        public ulong scratch_bytes;
        public ulong kv_fp32_bytes;
        public ulong kv_fp16_bytes;
        public ulong kv_int8_bytes;
    }

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_pack_options
    {
        public uint struct_size;
        public uint flags;
        public int weights;
        public uint threads;
    }

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_pack_info
    {
        public uint struct_size;
        public uint reserved;
        public ulong file_bytes;
        public ulong weight_bytes;
        public ulong fingerprint;
    }

    /// <summary>Owns a qwen_stream_decoder; frees it when nothing uses it any more.</summary>
    public sealed class StreamDecoderHandle : SafeHandle
    {
        public StreamDecoderHandle() : base(IntPtr.Zero, true) { }
        public override bool IsInvalid { get { return handle == IntPtr.Zero; } }
        protected override bool ReleaseHandle()
        {
            Native.qwen_stream_decoder_free(handle);
            return true;
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_logit_bias
    {
        public int token;
        public float bias;
    }

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_sampling_options
    {
        public uint struct_size;
        public uint set;
        public int preset;
        public float temperature;
        public uint top_k;
        public float top_p;
        public float min_p;
        public float repetition_penalty;
        public float presence_penalty;
        public float frequency_penalty;
        public uint penalty_window;
        public uint reserved;
        public ulong seed;
        public qwen_logit_bias* logit_bias;
        public UIntPtr logit_bias_count;
    }

    /// <summary>Owns a qwen_session; frees it when nothing uses it any more.</summary>
    public sealed class SessionHandle : SafeHandle
    {
        public SessionHandle() : base(IntPtr.Zero, true) { }
        public override bool IsInvalid { get { return handle == IntPtr.Zero; } }
        protected override bool ReleaseHandle()
        {
            Native.qwen_session_free(handle);
            return true;
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_session_options
    {
        public uint struct_size;
        public uint flags;
        public ulong context_limit;
        public qwen_sampling_options* sampling;
        public ulong cache_namespace;
        public ulong overflow_reserve;
        public int overflow;
        public uint mark_limit;
        public int kv;
        public uint reserved;
    }

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public unsafe delegate int qwen_progress_callback(UIntPtr done, UIntPtr total, void* user);

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_mark
    {
        public ulong id;
        public ulong position;
        public uint automatic;
        public uint reserved;
    }

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_feed_info
    {
        public uint struct_size;
        public uint reserved;
        public ulong total;
        public ulong computed;
        public ulong cached;
        public ulong dropped_messages;
        public ulong kept_messages;
        public ulong dropped_tokens;
        public ulong kept_tokens;
    }

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_prefix_cache_info
    {
        public uint struct_size;
        public uint reserved;
        public ulong bytes;
        public ulong limit;
        public ulong entries;
        public ulong hits;
        public ulong misses;
        public ulong evictions;
    }

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_statistics
    {
        public uint struct_size;
        public uint sessions;
        public ulong input_tokens;
        public ulong output_tokens;
        public ulong reused_tokens;
        public ulong cached_tokens;
        public ulong input_us;
        public ulong output_us;
        public ulong first_token_us;
        public ulong bytes;
        public double input_rate;
        public double output_rate;
    }

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public unsafe delegate int qwen_logits_callback(float* logits, UIntPtr count, int* tokens, UIntPtr token_count, void* user);

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_token_logprob
    {
        public int token;
        public float logprob;
    }

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_score
    {
        public uint struct_size;
        public uint best_count;
        public ulong token_count;
        public double log_likelihood;
        public double perplexity;
    }

    /// <summary>Owns a qwen_conversation; frees it when nothing uses it any more.</summary>
    public sealed class ConversationHandle : SafeHandle
    {
        public ConversationHandle() : base(IntPtr.Zero, true) { }
        public override bool IsInvalid { get { return handle == IntPtr.Zero; } }
        protected override bool ReleaseHandle()
        {
            Native.qwen_conversation_free(handle);
            return true;
        }
    }

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_conversation_options
    {
        public uint struct_size;
        public uint flags;
        public int thinking;
        public uint thinking_budget;
        public uint max_tokens;
        public uint stop_count;
        public byte* system;
        public UIntPtr system_length;
        public byte* tools;
        public UIntPtr tools_length;
        public byte** stop;
        public UIntPtr* stop_lengths;
    }

    [StructLayout(LayoutKind.Sequential)]
    public unsafe struct qwen_piece
    {
        public uint struct_size;
        public int kind;
        public int finish;
        public uint is_whole;
        public byte* text;
        public UIntPtr text_length;
        public byte* name;
        public UIntPtr name_length;
        public byte* arguments;
        public UIntPtr arguments_length;
        public byte* id;
        public UIntPtr id_length;
        public byte* problem;
        public UIntPtr problem_length;
    }

    public static unsafe class Native
    {
        const string Library = "qwen35";

        public const int QWEN_OK = 0;
        public const int QWEN_END_OF_TURN = 1;
        public const int QWEN_LIMIT_REACHED = 2;
        public const int QWEN_CANCELLED = 3;
        public const int QWEN_WORKING = 4;
        public const int QWEN_ERROR_INVALID_ARGUMENT = -1;
        public const int QWEN_ERROR_INVALID_HANDLE = -2;
        public const int QWEN_ERROR_INVALID_STATE = -3;
        public const int QWEN_ERROR_BUFFER_TOO_SMALL = -4;
        public const int QWEN_ERROR_BUSY = -5;
        public const int QWEN_ERROR_IO = -6;
        public const int QWEN_ERROR_FORMAT = -7;
        public const int QWEN_ERROR_UNSUPPORTED = -8;
        public const int QWEN_ERROR_CONTEXT_OVERFLOW = -9;
        public const int QWEN_ERROR_TEMPLATE = -10;
        public const int QWEN_ERROR_NUMERIC = -11;
        public const int QWEN_ERROR_OUT_OF_MEMORY = -12;
        public const int QWEN_ERROR_FORKED = -13;
        public const int QWEN_ERROR_INTERNAL = -14;

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte* qwen_last_error();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte* qwen_status_name(int status);
        public const int QWEN_VERSION_MAJOR = 0;
        public const int QWEN_VERSION_MINOR = 1;
        public const int QWEN_VERSION_PATCH = 0;
        public const int QWEN_ABI_VERSION = 0;

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte* qwen_version();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern uint qwen_abi_version();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte* qwen_build_info();

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern byte* qwen_cpu_info();
        public static readonly UIntPtr QWEN_NUL = UIntPtr.Size == 8 ? (UIntPtr)ulong.MaxValue : (UIntPtr)uint.MaxValue;
        public const int QWEN_MODEL_TOKENIZER_ONLY = 1;
        public const int QWEN_ISA_AUTO = 0;
        public const int QWEN_ISA_SCALAR = 1;
        public const int QWEN_ISA_AVX2 = 2;
        public const int QWEN_ISA_AVX512 = 3;
        public const int QWEN_WEIGHTS_STORED = 0;
        public const int QWEN_WEIGHTS_INT8 = 1;
        public const int QWEN_WEIGHTS_INT4 = 2;
        public const int QWEN_COMPUTE_AUTO = 0;
        public const int QWEN_COMPUTE_EXACT = 1;
        public const int QWEN_COMPUTE_FAST = 2;
        public const int QWEN_LOG_NOTHING = 0;
        public const int QWEN_LOG_WARNING = 1;
        public const int QWEN_LOG_INFO = 2;
        public const int QWEN_LOG_DEBUG = 3;

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_model_options_init(qwen_model_options* options, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_model_open(byte* path, UIntPtr path_length, qwen_model_options* options, out ModelHandle model);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern void qwen_model_free(IntPtr model);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_model_get_info(ModelHandle model, qwen_model_info* info);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_model_end_tokens(ModelHandle model, int** tokens, UIntPtr* count);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_model_open_memory(void* data, UIntPtr length, qwen_release_callback release, void* user, qwen_model_options* options, out ModelHandle model);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_model_open_reader(ulong size, qwen_read_callback read, void* user, qwen_model_options* options, out ModelHandle model);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_model_warm_up(ModelHandle model, qwen_work_callback callback, void* user);
        public const int QWEN_FILE_MISSING = 1;

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_model_open_files(qwen_file_callbacks* files, void* user, qwen_model_options* options, out ModelHandle model);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_model_estimate(byte* path, UIntPtr path_length, qwen_model_options* options, ulong context, qwen_model_cost* cost);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_model_estimate_memory(void* data, UIntPtr length, qwen_model_options* options, ulong context, qwen_model_cost* cost);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_model_estimate_reader(ulong size, qwen_read_callback read, void* user, qwen_model_options* options, ulong context, qwen_model_cost* cost);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_model_estimate_files(qwen_file_callbacks* files, void* user, qwen_model_options* options, ulong context, qwen_model_cost* cost);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_pack(byte* source, UIntPtr source_length, byte* destination, UIntPtr destination_length, qwen_pack_options* options, qwen_work_callback callback, void* user, qwen_pack_info* info);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_pack_verify(byte* path, UIntPtr path_length, qwen_work_callback callback, void* user);
        public const int QWEN_TEXT_ADDED_TOKENS = 1;
        public const int QWEN_TEXT_SKIP_SPECIAL = 2;
        public const int QWEN_TOKEN_ADDED = 1;
        public const int QWEN_TOKEN_SPECIAL = 2;
        public const int QWEN_TOKEN_END_OF_TURN = 4;
        public const int QWEN_TOKEN_PADDING = 8;

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_tokenize(ModelHandle model, byte* text, UIntPtr length, uint flags, int* tokens, UIntPtr capacity, UIntPtr* needed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_detokenize(ModelHandle model, int* tokens, UIntPtr count, uint flags, byte* text, UIntPtr capacity, UIntPtr* needed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_token_bytes(ModelHandle model, int token, byte** bytes, UIntPtr* length);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_token_kind(ModelHandle model, int token, uint* kind);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_token_find(ModelHandle model, byte* spelling, UIntPtr length, int* token);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_stream_decoder_new(ModelHandle model, uint flags, out StreamDecoderHandle decoder);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern void qwen_stream_decoder_free(IntPtr decoder);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_stream_decoder_push(StreamDecoderHandle decoder, int token, byte** text, UIntPtr* length);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_stream_decoder_finish(StreamDecoderHandle decoder, byte** text, UIntPtr* length);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_stream_decoder_resume(StreamDecoderHandle decoder, int* tokens, UIntPtr count);
        public const int QWEN_CHAT_AS_TRANSFORMERS = 4;
        public const int QWEN_CHAT_HISTORY = 8;

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_chat_render(ModelHandle model, byte* json, UIntPtr length, uint flags, byte* rendered, UIntPtr capacity, UIntPtr* needed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_chat_tokenize(ModelHandle model, byte* json, UIntPtr length, uint flags, int* tokens, UIntPtr capacity, UIntPtr* needed);
        public const int QWEN_SET_TEMPERATURE = 1;
        public const int QWEN_SET_TOP_K = 2;
        public const int QWEN_SET_TOP_P = 4;
        public const int QWEN_SET_MIN_P = 8;
        public const int QWEN_SET_REPETITION_PENALTY = 16;
        public const int QWEN_SET_PRESENCE_PENALTY = 32;
        public const int QWEN_SET_FREQUENCY_PENALTY = 64;
        public const int QWEN_SET_PENALTY_WINDOW = 128;
        public const int QWEN_SET_SEED = 256;
        public const int QWEN_PRESET_CHAT = 0;
        public const int QWEN_PRESET_GREEDY = 1;
        public const int QWEN_PRESET_THINKING = 2;
        public const int QWEN_PRESET_PRECISE = 3;

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_sampling_options_init(qwen_sampling_options* options, UIntPtr size);
        public const int QWEN_KV_AUTO = 0;
        public const int QWEN_KV_FP32 = 1;
        public const int QWEN_KV_FP16 = 2;
        public const int QWEN_KV_INT8 = 3;
        public const int QWEN_OVERFLOW_REFUSE = 0;
        public const int QWEN_OVERFLOW_DROP_TURNS = 1;

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_options_init(qwen_session_options* options, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_new(ModelHandle model, qwen_session_options* options, out SessionHandle session);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern void qwen_session_free(IntPtr session);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_next_token(SessionHandle session, int* token);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_logits(SessionHandle session, float** logits, UIntPtr* count);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_position(SessionHandle session, UIntPtr* position);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_context_limit(SessionHandle session, UIntPtr* limit);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_kv(SessionHandle session, int* kv);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_tokens(SessionHandle session, int** tokens, UIntPtr* count);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_set_sampling(SessionHandle session, qwen_sampling_options* options);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_set_progress(SessionHandle session, qwen_progress_callback callback, void* user);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_reset(SessionHandle session);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_cancel(SessionHandle session);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_cancel_clear(SessionHandle session);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_feed(SessionHandle session, int* tokens, UIntPtr count);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_feed_text(SessionHandle session, byte* text, UIntPtr length, uint flags);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_feed_chat(SessionHandle session, byte* json, UIntPtr length, uint flags, UIntPtr* total, UIntPtr* computed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_enqueue(SessionHandle session, int* tokens, UIntPtr count);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_enqueue_text(SessionHandle session, byte* text, UIntPtr length, uint flags);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_enqueue_chat(SessionHandle session, byte* json, UIntPtr length, uint flags, UIntPtr* total, UIntPtr* remaining);
        public const int QWEN_REWIND_RANDOM = 1;

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_fork(SessionHandle session, out SessionHandle fork);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_mark(SessionHandle session, ulong* mark);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_unmark(SessionHandle session, ulong mark);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_marks(SessionHandle session, qwen_mark* marks, UIntPtr capacity, UIntPtr* needed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_rewind(SessionHandle session, ulong mark, uint flags);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_truncate(SessionHandle session, UIntPtr position, UIntPtr* computed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_set_tokens(SessionHandle session, int* tokens, UIntPtr count, UIntPtr* computed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_get_feed_info(SessionHandle session, qwen_feed_info* info);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_prefix_cache_get_info(ModelHandle model, qwen_prefix_cache_info* info);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_prefix_cache_clear(ModelHandle model, ulong cache_namespace);
        public const int QWEN_SAVE_WITHOUT_MARKS = 1;

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_set_attachment(SessionHandle session, void* data, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_attachment(SessionHandle session, void** data, UIntPtr* size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_save_file(SessionHandle session, byte* file, UIntPtr file_length, uint flags);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_restore_file(SessionHandle session, byte* file, UIntPtr file_length);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_save_memory(SessionHandle session, uint flags, void* data, UIntPtr capacity, UIntPtr* needed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_restore_memory(SessionHandle session, void* data, UIntPtr size);
        public const int QWEN_STEP_INPUT = 1;

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_step(SessionHandle session, ulong budget_us, uint flags, int* token, UIntPtr* remaining);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_batch_step(IntPtr* sessions, UIntPtr count, int* tokens, int* statuses);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_get_statistics(SessionHandle session, qwen_statistics* statistics);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_model_get_statistics(ModelHandle model, qwen_statistics* statistics);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_set_logits_callback(SessionHandle session, qwen_logits_callback callback, void* user);
        public const int QWEN_SCORE_KEEP = 8;
        public const int QWEN_EMBED_NORMALIZE = 16;
        public const int QWEN_POOLING_MEAN = 0;
        public const int QWEN_POOLING_LAST = 1;

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_logprobs(SessionHandle session, int* tokens, UIntPtr count, float* logprobs);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_top_logprobs(SessionHandle session, qwen_token_logprob* top, UIntPtr count);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_chosen_logprobs(SessionHandle session, float* logprob, qwen_token_logprob* top, UIntPtr count);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_score(SessionHandle session, int* tokens, UIntPtr count, uint flags, float* logprobs, qwen_score* score);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_score_text(SessionHandle session, byte* text, UIntPtr length, uint flags, qwen_score* score);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_embed(SessionHandle session, int* tokens, UIntPtr count, int pooling, uint flags, float* embedding, UIntPtr capacity, UIntPtr* needed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_session_embed_text(SessionHandle session, byte* text, UIntPtr length, int pooling, uint flags, float* embedding, UIntPtr capacity, UIntPtr* needed);
        public const int QWEN_THINKING_DEFAULT = 0;
        public const int QWEN_THINKING_ON = 1;
        public const int QWEN_THINKING_OFF = 2;

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_options_init(qwen_conversation_options* options, UIntPtr size);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_new(SessionHandle session, qwen_conversation_options* options, out ConversationHandle conversation);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern void qwen_conversation_free(IntPtr conversation);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_configure(ConversationHandle conversation, qwen_conversation_options* options);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_add(ConversationHandle conversation, byte* json, UIntPtr length);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_add_text(ConversationHandle conversation, byte* role, UIntPtr role_length, byte* text, UIntPtr length);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_add_tool_result(ConversationHandle conversation, byte* id, UIntPtr id_length, byte* result, UIntPtr length);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_history(ConversationHandle conversation, byte* json, UIntPtr capacity, UIntPtr* needed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_set_history(ConversationHandle conversation, byte* json, UIntPtr length);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_cancel(ConversationHandle conversation);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_cancel_clear(ConversationHandle conversation);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_send(ConversationHandle conversation, byte* json, UIntPtr length, UIntPtr* total, UIntPtr* computed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_send_text(ConversationHandle conversation, byte* text, UIntPtr length, UIntPtr* total, UIntPtr* computed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_regenerate(ConversationHandle conversation, UIntPtr* total, UIntPtr* computed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_settle(ConversationHandle conversation, UIntPtr* total, UIntPtr* computed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_resume(ConversationHandle conversation);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_undo(ConversationHandle conversation, UIntPtr* removed);
        public const int QWEN_PIECE_NONE = 0;
        public const int QWEN_PIECE_THINKING = 1;
        public const int QWEN_PIECE_TEXT = 2;
        public const int QWEN_PIECE_TOOL_CALL = 3;
        public const int QWEN_PIECE_END = 4;
        public const int QWEN_FINISH_NONE = 0;
        public const int QWEN_FINISH_END_OF_TURN = 1;
        public const int QWEN_FINISH_TOOL_CALLS = 2;
        public const int QWEN_FINISH_STOP = 3;
        public const int QWEN_FINISH_LENGTH = 4;
        public const int QWEN_FINISH_CONTEXT_FULL = 5;
        public const int QWEN_FINISH_CANCELLED = 6;

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_next(ConversationHandle conversation, qwen_piece* piece);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_enqueue(ConversationHandle conversation, byte* json, UIntPtr length, UIntPtr* total, UIntPtr* remaining);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_enqueue_text(ConversationHandle conversation, byte* text, UIntPtr length, UIntPtr* total, UIntPtr* remaining);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_step(ConversationHandle conversation, ulong budget_us, qwen_piece* piece, UIntPtr* remaining);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_save_file(ConversationHandle conversation, byte* file, UIntPtr file_length, uint flags);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_restore_file(ConversationHandle conversation, byte* file, UIntPtr file_length);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_save_memory(ConversationHandle conversation, uint flags, void* data, UIntPtr capacity, UIntPtr* needed);

        [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
        public static extern int qwen_conversation_restore_memory(ConversationHandle conversation, void* data, UIntPtr size);
    }
}
