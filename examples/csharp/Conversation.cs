// Conversations over a session: replies in pieces, thoughts and tool calls apart.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;

namespace Qwen35
{
    public enum PieceKind
    {
        Thinking = Native.QWEN_PIECE_THINKING,
        Text = Native.QWEN_PIECE_TEXT,
        ToolCall = Native.QWEN_PIECE_TOOL_CALL,
    }

    public enum Finish
    {
        None = Native.QWEN_FINISH_NONE,
        EndOfTurn = Native.QWEN_FINISH_END_OF_TURN,
        ToolCalls = Native.QWEN_FINISH_TOOL_CALLS,
        Stop = Native.QWEN_FINISH_STOP,
        Length = Native.QWEN_FINISH_LENGTH,
        ContextFull = Native.QWEN_FINISH_CONTEXT_FULL,
        Cancelled = Native.QWEN_FINISH_CANCELLED,
    }

    /// <summary>A piece of a reply. The last four are of a tool call; one that is not whole must
    /// not be carried out.</summary>
    public sealed class Piece
    {
        public PieceKind Kind { get; internal set; }
        public string Text { get; internal set; }
        public string Name { get; internal set; }
        /// <summary>A JSON object, typed by the tool's schema.</summary>
        public string Arguments { get; internal set; }
        public string Id { get; internal set; }
        /// <summary>What is wrong with the call; empty for a proper one.</summary>
        public string Problem { get; internal set; }
        public bool IsWhole { get; internal set; }
    }

    /// <summary>How a conversation is held; what is not set is the default.</summary>
    public sealed class ConversationOptions
    {
        public string System;
        /// <summary>A JSON array of tools, as in the OpenAI API.</summary>
        public string Tools;
        /// <summary>Whether the model thinks first; null: as the template has it.</summary>
        public bool? Thinking;
        /// <summary>Most tokens of thoughts, and of a reply; 0: no limit.</summary>
        public uint ThinkingBudget, MaxTokens;
        /// <summary>Texts at which an answer ends.</summary>
        public string[] Stop = new string[0];

        // Calls with the options as C has them; memory is lent for the call.
        internal unsafe void Use(Action<IntPtr> call)
        {
            var pinned = new List<GCHandle>();
            try
            {
                var raw = new qwen_conversation_options
                {
                    struct_size = (uint)sizeof(qwen_conversation_options),
                    thinking = !Thinking.HasValue ? Native.QWEN_THINKING_DEFAULT
                        : Thinking.Value ? Native.QWEN_THINKING_ON : Native.QWEN_THINKING_OFF,
                    thinking_budget = ThinkingBudget,
                    max_tokens = MaxTokens,
                };
                if (System != null) raw.system = Lend(pinned, System, out raw.system_length);
                if (Tools != null) raw.tools = Lend(pinned, Tools, out raw.tools_length);
                var texts = new IntPtr[Stop.Length + 1];
                var lengths = new UIntPtr[Stop.Length + 1];
                for (int i = 0; i < Stop.Length; i++)
                    texts[i] = (IntPtr)Lend(pinned, Stop[i], out lengths[i]);
                fixed (IntPtr* places = texts)
                fixed (UIntPtr* sizes = lengths)
                {
                    raw.stop = (byte**)places;
                    raw.stop_lengths = sizes;
                    raw.stop_count = (uint)Stop.Length;
                    call((IntPtr)(&raw));
                }
            }
            finally
            {
                foreach (GCHandle handle in pinned) handle.Free();
            }
        }

        static unsafe byte* Lend(List<GCHandle> pinned, string text, out UIntPtr length)
        {
            var handle = GCHandle.Alloc(Calls.Bytes(text, out length), GCHandleType.Pinned);
            pinned.Add(handle);
            return (byte*)handle.AddrOfPinnedObject();
        }
    }

    /// <summary>Messages, and the session that computes the replies.</summary>
    public sealed unsafe partial class Conversation : IDisposable
    {
        readonly ConversationHandle handle;
        readonly Session session;

        public Conversation(Session session, ConversationOptions options = null)
        {
            this.session = session;
            ConversationHandle made = null;
            (options ?? new ConversationOptions()).Use(raw => Calls.Check(
                Native.qwen_conversation_new(session.Handle, (qwen_conversation_options*)raw, out made)));
            handle = made;
        }

        /// <summary>Frees it; the session stays.</summary>
        public void Dispose() { handle.Dispose(); }

        /// <summary>Why the last reply ended.</summary>
        public Finish Finish { get; private set; }

        /// <summary>Goes on by other options from the next reply on.</summary>
        public void Configure(ConversationOptions options)
        {
            options.Use(raw => Calls.Check(
                Native.qwen_conversation_configure(handle, (qwen_conversation_options*)raw)));
        }

        /// <summary>Adds messages (JSON) without having them answered yet.</summary>
        public void Add(string json)
        {
            UIntPtr length;
            fixed (byte* data = Calls.Bytes(json, out length))
                Calls.Check(Native.qwen_conversation_add(handle, data, length));
        }

        /// <summary>Adds the result of a tool call; Send() has it answered.</summary>
        public void AddToolResult(string id, string result)
        {
            UIntPtr length, size;
            fixed (byte* name = Calls.Bytes(id, out length), data = Calls.Bytes(result, out size))
                Calls.Check(Native.qwen_conversation_add_tool_result(handle, name, length, data, size));
        }

        /// <summary>Starts the reply to all messages so far.</summary>
        public void Send(CancellationToken token = default(CancellationToken))
        {
            session.Run(token, () => Native.qwen_conversation_send(handle, null, UIntPtr.Zero, null, null));
        }

        /// <summary>Adds a user's message and starts the reply.</summary>
        public void Send(string text, CancellationToken token = default(CancellationToken))
        {
            UIntPtr length;
            byte[] bytes = Calls.Bytes(text, out length);
            session.Run(token, () =>
            {
                fixed (byte* data = bytes)
                    return Native.qwen_conversation_send_text(handle, data, length, null, null);
            });
        }

        /// <summary>Drops the last reply and starts another one.</summary>
        public void Regenerate(CancellationToken token = default(CancellationToken))
        {
            session.Run(token, () => Native.qwen_conversation_regenerate(handle, null, null));
        }

        /// <summary>Computes now, while the user reads and types, what the next message would wait
        /// for. Returns how many tokens that were.</summary>
        public int Settle(CancellationToken token = default(CancellationToken))
        {
            UIntPtr computed = UIntPtr.Zero;
            session.Run(token, () =>
            {
                UIntPtr count;
                int status = Native.qwen_conversation_settle(handle, null, &count);
                computed = count;
                return status;
            });
            return (int)computed;
        }

        /// <summary>Goes on with a reply that ended by its length or was cancelled.</summary>
        public void Resume() { Calls.Check(Native.qwen_conversation_resume(handle)); }

        /// <summary>Takes the last turn back; says how many messages that were.</summary>
        public int Undo()
        {
            UIntPtr removed;
            Calls.Check(Native.qwen_conversation_undo(handle, &removed));
            return (int)removed;
        }

        /// <summary>The messages so far, as a JSON array.</summary>
        public string History
        {
            get
            {
                UIntPtr needed;
                Calls.Check(Native.qwen_conversation_history(handle, null, UIntPtr.Zero, &needed));
                fixed (byte* to = new byte[(int)needed + 1])
                {
                    Calls.Check(Native.qwen_conversation_history(handle, to, needed, &needed));
                    return Calls.Text(to, needed);
                }
            }
            set
            {
                UIntPtr length;
                fixed (byte* data = Calls.Bytes(value, out length))
                    Calls.Check(Native.qwen_conversation_set_history(handle, data, length));
            }
        }

        // The next piece, or null at the end.
        Piece Next(CancellationToken token)
        {
            var raw = new qwen_piece { struct_size = (uint)sizeof(qwen_piece) };
            IntPtr place = (IntPtr)(&raw);
            try
            {
                session.Run(token, () => Native.qwen_conversation_next(handle, (qwen_piece*)place));
            }
            finally
            {
                Finish = (Finish)raw.finish; // also of a reply that was cancelled
            }
            return Made(ref raw);
        }

        static Piece Made(ref qwen_piece raw)
        {
            if (!Enum.IsDefined(typeof(PieceKind), raw.kind)) return null;
            return new Piece
            {
                Kind = (PieceKind)raw.kind,
                Text = Calls.Text(raw.text, raw.text_length),
                Name = Calls.Text(raw.name, raw.name_length),
                Arguments = Calls.Text(raw.arguments, raw.arguments_length),
                Id = Calls.Text(raw.id, raw.id_length),
                Problem = Calls.Text(raw.problem, raw.problem_length),
                IsWhole = raw.is_whole != 0,
            };
        }

        /// <summary>As Send(), but computes nothing: Step() does that. Returns how many tokens
        /// there are to compute.</summary>
        public int Enqueue(string text)
        {
            UIntPtr length, remaining;
            fixed (byte* data = Calls.Bytes(text, out length))
                Calls.Check(Native.qwen_conversation_enqueue_text(handle, data, length, null, &remaining));
            return (int)remaining;
        }

        /// <summary>Goes on with the reply for about that long. For frame loops: call it once per
        /// frame until it returns false; Finish then says why.</summary>
        /// <param name="piece">The next piece, or null if there is none yet.</param>
        public bool Step(TimeSpan budget, out Piece piece, CancellationToken token = default(CancellationToken))
        {
            if (budget < TimeSpan.Zero) throw new ArgumentOutOfRangeException("budget", "must not be negative");
            var raw = new qwen_piece { struct_size = (uint)sizeof(qwen_piece) };
            IntPtr place = (IntPtr)(&raw);
            int status = Native.QWEN_CANCELLED;
            try
            {
                status = session.Run(token, () => Native.qwen_conversation_step(handle,
                    (ulong)budget.Ticks / 10, (qwen_piece*)place, null));
            }
            finally
            {
                Finish = status == Native.QWEN_CANCELLED ? Finish.Cancelled : (Finish)raw.finish;
            }
            piece = Made(ref raw);
            return piece != null || status == Native.QWEN_WORKING;
        }
    }

    // Iterators cannot be unsafe.
    public sealed partial class Conversation
    {
        /// <summary>The pieces of the reply that was started, made while they are walked. Then
        /// Finish says why it ended.</summary>
        public IEnumerable<Piece> Reply(CancellationToken token = default(CancellationToken))
        {
            for (Piece piece; (piece = Next(token)) != null;) yield return piece;
        }

        /// <summary>Sends a user's message and gives the text of the answer in pieces.</summary>
        public IEnumerable<string> Ask(string text, CancellationToken token = default(CancellationToken))
        {
            Send(text, token);
            foreach (Piece piece in Reply(token))
                if (piece.Kind == PieceKind.Text) yield return piece.Text;
        }
    }
}
