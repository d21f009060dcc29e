// Qwen3.5 language models on x86-64 CPUs, for C#.
//
//   using (var model = new Model("path/to/Qwen3.5-0.8B"))
//   using (var session = new Session(model))
//   {
//       session.FeedChat("[{\"role\": \"user\", \"content\": \"Hello!\"}]");
//       foreach (string piece in session.Stream(100)) Console.Write(piece);
//   }
//
// Branches.cs has forks, marks, saving and steps; Conversation.cs keeps the messages.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

namespace Qwen35
{
    /// <summary>A failure: the negative qwen_status, its name, and the library's message.</summary>
    public sealed class QwenException : Exception
    {
        public int Status { get; private set; }
        public string Name { get; private set; }

        public QwenException(int status, string name, string message) : base(message)
        {
            Status = status;
            Name = name;
        }
    }

    static unsafe class Calls
    {
        // Throws for an error; gives positive outcomes back.
        public static int Check(int status)
        {
            if (status >= 0) return status;
            throw new QwenException(status, Text(Native.qwen_status_name(status)),
                Text(Native.qwen_last_error()));
        }

        public static void CheckLibrary()
        {
            uint found;
            try { found = Native.qwen_abi_version(); }
            catch (DllNotFoundException error)
            {
                throw new DllNotFoundException("libqwen35.so was not found (" + error.Message +
                    "). Run `make install` (and ldconfig), or set LD_LIBRARY_PATH", error);
            }
            if (found != Native.QWEN_ABI_VERSION)
                throw new NotSupportedException("libqwen35 has ABI " + found +
                    ", this program needs " + Native.QWEN_ABI_VERSION);
        }

        public static string Text(byte* text)
        {
            int length = 0;
            while (text[length] != 0) length++;
            return Text(text, (UIntPtr)length);
        }

        public static string Text(byte* text, UIntPtr length)
        {
            byte[] copy = new byte[(int)length];
            if (copy.Length > 0) Marshal.Copy((IntPtr)text, copy, 0, copy.Length);
            return Encoding.UTF8.GetString(copy);
        }

        // UTF-8, with room for one byte so that there is always an address.
        public static byte[] Bytes(string text, out UIntPtr length)
        {
            byte[] bytes = new UTF8Encoding(false, true).GetBytes(text + "\0");
            length = (UIntPtr)(bytes.Length - 1);
            return bytes;
        }
    }

    /// <summary>An opened checkpoint. Many threads may use one at once.</summary>
    public sealed unsafe class Model : IDisposable
    {
        internal readonly ModelHandle Handle;

        /// <param name="threads">That compute; 0: as many as the process may use.</param>
        /// <param name="weights">A QWEN_WEIGHTS constant: as stored, or quantized now.</param>
        /// <param name="compute">A QWEN_COMPUTE constant.</param>
        /// <param name="prefixCacheBytes">For beginnings that sessions share.</param>
        public Model(string path, uint threads = 0, int isa = Native.QWEN_ISA_AUTO,
            bool tokenizerOnly = false, int weights = Native.QWEN_WEIGHTS_STORED,
            int compute = Native.QWEN_COMPUTE_AUTO, ulong prefixCacheBytes = 0)
        {
            Calls.CheckLibrary();
            var options = new qwen_model_options
            {
                struct_size = (uint)sizeof(qwen_model_options),
                flags = tokenizerOnly ? (uint)Native.QWEN_MODEL_TOKENIZER_ONLY : 0,
                threads = threads,
                isa = isa,
                weights = weights,
                compute = compute,
                prefix_cache_bytes = prefixCacheBytes,
            };
            UIntPtr length;
            fixed (byte* place = Calls.Bytes(path, out length))
                Calls.Check(Native.qwen_model_open(place, length, &options, out Handle));
        }

        /// <summary>Frees it. Sessions that are open keep what they need.</summary>
        public void Dispose() { Handle.Dispose(); }

        public qwen_model_info Info
        {
            get
            {
                var info = new qwen_model_info { struct_size = (uint)sizeof(qwen_model_info) };
                Calls.Check(Native.qwen_model_get_info(Handle, &info));
                return info;
            }
        }

        /// <param name="addedTokens">Spellings such as "&lt;|im_end|&gt;" become those tokens;
        /// not for text that a user wrote.</param>
        public int[] Tokenize(string text, bool addedTokens = false)
        {
            uint flags = addedTokens ? (uint)Native.QWEN_TEXT_ADDED_TOKENS : 0;
            UIntPtr length, needed;
            fixed (byte* data = Calls.Bytes(text, out length))
            {
                Calls.Check(Native.qwen_tokenize(Handle, data, length, flags, null, UIntPtr.Zero, &needed));
                var tokens = new int[(int)needed];
                if (tokens.Length > 0)
                    fixed (int* to = tokens)
                        Calls.Check(Native.qwen_tokenize(Handle, data, length, flags, to, needed, &needed));
                return tokens;
            }
        }

        public string Detokenize(int[] tokens, bool skipSpecial = false)
        {
            uint flags = skipSpecial ? (uint)Native.QWEN_TEXT_SKIP_SPECIAL : 0;
            UIntPtr count = (UIntPtr)tokens.Length, needed;
            fixed (int* data = tokens)
            {
                Calls.Check(Native.qwen_detokenize(Handle, data, count, flags, null, UIntPtr.Zero, &needed));
                if (needed == UIntPtr.Zero) return "";
                fixed (byte* to = new byte[(int)needed])
                {
                    Calls.Check(Native.qwen_detokenize(Handle, data, count, flags, to, needed, &needed));
                    return Calls.Text(to, needed);
                }
            }
        }

        /// <summary>A conversation (JSON) as the checkpoint's template writes it.</summary>
        public string RenderChat(string json)
        {
            UIntPtr length, needed;
            fixed (byte* data = Calls.Bytes(json, out length))
            {
                Calls.Check(Native.qwen_chat_render(Handle, data, length, 0, null, UIntPtr.Zero, &needed));
                fixed (byte* to = new byte[(int)needed + 1])
                {
                    Calls.Check(Native.qwen_chat_render(Handle, data, length, 0, to, needed, &needed));
                    return Calls.Text(to, needed);
                }
            }
        }
    }

    /// <summary>How tokens are chosen: a preset, and what replaces its values.</summary>
    public sealed class Sampling
    {
        public int Preset = Native.QWEN_PRESET_CHAT;
        public float? Temperature, TopP, MinP;
        public float? RepetitionPenalty, PresencePenalty, FrequencyPenalty;
        public uint? TopK, PenaltyWindow;
        public ulong? Seed;
        /// <summary>Added to logits; negative infinity bans a token.</summary>
        public readonly Dictionary<int, float> LogitBias = new Dictionary<int, float>();

        public static Sampling Greedy { get { return new Sampling { Preset = Native.QWEN_PRESET_GREEDY }; } }

        internal unsafe void Use(SessionHandle session)
        {
            var raw = new qwen_sampling_options
            {
                struct_size = (uint)sizeof(qwen_sampling_options),
                preset = Preset,
                temperature = Temperature ?? 0, top_p = TopP ?? 0, min_p = MinP ?? 0,
                repetition_penalty = RepetitionPenalty ?? 0,
                presence_penalty = PresencePenalty ?? 0,
                frequency_penalty = FrequencyPenalty ?? 0,
                top_k = TopK ?? 0, penalty_window = PenaltyWindow ?? 0, seed = Seed ?? 0,
            };
            if (Temperature.HasValue) raw.set |= Native.QWEN_SET_TEMPERATURE;
            if (TopP.HasValue) raw.set |= Native.QWEN_SET_TOP_P;
            if (MinP.HasValue) raw.set |= Native.QWEN_SET_MIN_P;
            if (RepetitionPenalty.HasValue) raw.set |= Native.QWEN_SET_REPETITION_PENALTY;
            if (PresencePenalty.HasValue) raw.set |= Native.QWEN_SET_PRESENCE_PENALTY;
            if (FrequencyPenalty.HasValue) raw.set |= Native.QWEN_SET_FREQUENCY_PENALTY;
            if (TopK.HasValue) raw.set |= Native.QWEN_SET_TOP_K;
            if (PenaltyWindow.HasValue) raw.set |= Native.QWEN_SET_PENALTY_WINDOW;
            if (Seed.HasValue) raw.set |= Native.QWEN_SET_SEED;
            var entries = new qwen_logit_bias[LogitBias.Count + 1];
            int count = 0;
            foreach (var entry in LogitBias)
                entries[count++] = new qwen_logit_bias { token = entry.Key, bias = entry.Value };
            fixed (qwen_logit_bias* data = entries)
            {
                raw.logit_bias = data;
                raw.logit_bias_count = (UIntPtr)count;
                Calls.Check(Native.qwen_session_set_sampling(session, &raw));
            }
        }
    }

    /// <summary>A sequence being continued, used by one thread at a time. A cancelled call
    /// throws OperationCanceledException; the session can be used on.</summary>
    public sealed unsafe partial class Session : IDisposable
    {
        readonly Model model;
        readonly SessionHandle handle;
        readonly StreamDecoderHandle decoder;

        internal SessionHandle Handle { get { return handle; } }

        /// <param name="contextLimit">The most tokens; 0: what the model was made for.</param>
        /// <param name="cacheNamespace">Shares beginnings with the sessions that have the same
        /// number, through the model's prefix cache; 0: with none.</param>
        /// <param name="dropTurns">A conversation that does not fit loses its oldest turns; else
        /// it is an error.</param>
        /// <param name="markLimit">Most marks held; 0: 4.</param>
        /// <param name="kv">How keys and values are stored: a QWEN_KV constant.</param>
        public Session(Model model, ulong contextLimit = 0, Sampling sampling = null,
            ulong cacheNamespace = 0, bool dropTurns = false, uint markLimit = 0,
            int kv = Native.QWEN_KV_AUTO)
        {
            this.model = model;
            var options = new qwen_session_options
            {
                struct_size = (uint)sizeof(qwen_session_options),
                context_limit = contextLimit,
                cache_namespace = cacheNamespace,
                overflow = dropTurns ? Native.QWEN_OVERFLOW_DROP_TURNS : Native.QWEN_OVERFLOW_REFUSE,
                mark_limit = markLimit,
                kv = kv,
            };
            Calls.Check(Native.qwen_session_new(model.Handle, &options, out handle));
            Calls.Check(Native.qwen_stream_decoder_new(model.Handle,
                (uint)Native.QWEN_TEXT_SKIP_SPECIAL, out decoder));
            if (sampling != null) sampling.Use(handle);
        }

        public void Dispose()
        {
            handle.Dispose();
            decoder.Dispose();
        }

        internal delegate int Call();

        internal int Run(CancellationToken token, Call call)
        {
            token.ThrowIfCancellationRequested();
            bool asked = false;
            int status;
            // Dispose() of the registration waits for the callback, so none comes later.
            using (token.Register(() => { asked = true; Cancel(); }))
                status = Calls.Check(call());
            if (status == Native.QWEN_CANCELLED) throw new OperationCanceledException(token);
            if (asked) Forget();
            return status;
        }

        // Takes back a cancel that came after the end of its call.
        void Forget() { Native.qwen_session_cancel_clear(handle); }

        /// <summary>Cancels the call in progress, or the next one. Any thread, any time.</summary>
        public void Cancel() { Native.qwen_session_cancel(handle); }

        public void Feed(int[] tokens, CancellationToken token = default(CancellationToken))
        {
            Run(token, () =>
            {
                fixed (int* data = tokens)
                    return Native.qwen_session_feed(handle, data, (UIntPtr)tokens.Length);
            });
        }

        public void FeedText(string text, CancellationToken token = default(CancellationToken))
        {
            UIntPtr length;
            byte[] bytes = Calls.Bytes(text, out length);
            Run(token, () =>
            {
                fixed (byte* data = bytes)
                    return Native.qwen_session_feed_text(handle, data, length, 0);
            });
        }

        /// <summary>Makes the session hold exactly this conversation (JSON), ready for the
        /// answer. Call it once per turn with all messages so far; what is held already is not
        /// computed again. Returns how many tokens were computed.</summary>
        public int FeedChat(string json, CancellationToken token = default(CancellationToken))
        {
            UIntPtr length, computed = UIntPtr.Zero;
            byte[] bytes = Calls.Bytes(json, out length);
            Run(token, () =>
            {
                UIntPtr count;
                int status;
                fixed (byte* data = bytes)
                    status = Native.qwen_session_feed_chat(handle, data, length, 0, null, &count);
                computed = count;
                return status;
            });
            return (int)computed;
        }

        /// <summary>Chooses the next token; the status is QWEN_OK, QWEN_END_OF_TURN (with a
        /// token that ends the turn) or QWEN_LIMIT_REACHED (without one, -1).</summary>
        public int Next(out int id, CancellationToken token = default(CancellationToken))
        {
            int chosen = -1;
            int status = Run(token, () =>
            {
                int place;
                int result = Native.qwen_session_next_token(handle, &place);
                chosen = place;
                return result;
            });
            id = chosen;
            return status;
        }

        string Push(int id)
        {
            byte* text;
            UIntPtr length;
            Calls.Check(Native.qwen_stream_decoder_push(decoder, id, &text, &length));
            return Calls.Text(text, length);
        }

        string Finish()
        {
            byte* text;
            UIntPtr length;
            Calls.Check(Native.qwen_stream_decoder_finish(decoder, &text, &length));
            return Calls.Text(text, length);
        }

        /// <summary>A copy of the ids of the sequence.</summary>
        public int[] Tokens
        {
            get
            {
                int* data;
                UIntPtr count;
                Calls.Check(Native.qwen_session_tokens(handle, &data, &count));
                var tokens = new int[(int)count];
                if (tokens.Length > 0) Marshal.Copy((IntPtr)data, tokens, 0, tokens.Length);
                return tokens;
            }
        }

        /// <summary>A copy of the logits of the token after the sequence.</summary>
        public float[] Logits(CancellationToken token = default(CancellationToken))
        {
            float[] copy = null;
            Run(token, () =>
            {
                float* data;
                UIntPtr count;
                int status = Native.qwen_session_logits(handle, &data, &count);
                if (status != Native.QWEN_OK) return status;
                copy = new float[(int)count];
                Marshal.Copy((IntPtr)data, copy, 0, copy.Length);
                return status;
            });
            return copy;
        }

        public void SetSampling(Sampling sampling) { sampling.Use(handle); }

        public void Reset() { Calls.Check(Native.qwen_session_reset(handle)); }
    }

    // Iterators cannot be unsafe.
    public sealed partial class Session
    {
        /// <summary>Text of the next tokens in whole characters, made while it is
        /// walked.</summary>
        public IEnumerable<string> Stream(int mostTokens = int.MaxValue,
            CancellationToken token = default(CancellationToken))
        {
            Finish(); // of a walk that was left
            int id;
            for (int i = 0; i < mostTokens && Next(out id, token) == Native.QWEN_OK; i++)
            {
                string piece = Push(id);
                if (piece.Length > 0) yield return piece;
            }
            string rest = Finish();
            if (rest.Length > 0) yield return rest;
        }
    }
}
