// Sessions that branch, go back, are saved, and advance a little at a time.
using System;
using System.Threading;

namespace Qwen35
{
    /// <summary>What an advance came to: Status is QWEN_OK, QWEN_END_OF_TURN, QWEN_LIMIT_REACHED,
    /// QWEN_WORKING (the time is over) or, in a batch, also QWEN_CANCELLED or an error.</summary>
    public struct Advance
    {
        public int Status;
        /// <summary>The token, or -1.</summary>
        public int Token;
    }

    public sealed unsafe partial class Session
    {
        // Takes a handle over.
        Session(Model model, SessionHandle handle)
        {
            this.model = model;
            this.handle = handle;
            Calls.Check(Native.qwen_stream_decoder_new(model.Handle,
                (uint)Native.QWEN_TEXT_SKIP_SPECIAL, out decoder));
        }

        /// <summary>An independent session that stands where this one does. What is computed is
        /// shared. The model must not be disposed.</summary>
        public Session Fork()
        {
            SessionHandle made;
            Calls.Check(Native.qwen_session_fork(handle, out made));
            return new Session(model, made);
        }

        /// <summary>Keeps the present position for Rewind().</summary>
        public ulong Mark()
        {
            ulong mark;
            Calls.Check(Native.qwen_session_mark(handle, &mark));
            return mark;
        }

        public void Unmark(ulong mark) { Calls.Check(Native.qwen_session_unmark(handle, mark)); }

        /// <summary>Goes back to a mark, bit for bit; nothing is computed.</summary>
        /// <param name="random">The random stream goes back too.</param>
        public void Rewind(ulong mark, bool random = false)
        {
            uint flags = random ? (uint)Native.QWEN_REWIND_RANDOM : 0;
            Calls.Check(Native.qwen_session_rewind(handle, mark, flags));
        }

        /// <summary>Cuts the sequence to its first tokens; says how many were computed again for
        /// that.</summary>
        public int Truncate(int position, CancellationToken token = default(CancellationToken))
        {
            UIntPtr computed = UIntPtr.Zero;
            Run(token, () =>
            {
                UIntPtr count;
                int status = Native.qwen_session_truncate(handle, (UIntPtr)position, &count);
                computed = count;
                return status;
            });
            return (int)computed;
        }

        /// <summary>Saves the session to a file, which is replaced at once. Restored, it goes on
        /// bit for bit.</summary>
        public void Save(string path)
        {
            UIntPtr length;
            fixed (byte* data = Calls.Bytes(path, out length))
                Calls.Check(Native.qwen_session_save_file(handle, data, length, 0));
        }

        /// <summary>Puts the session where a saved one of the same model was.</summary>
        public void Restore(string path)
        {
            UIntPtr length;
            fixed (byte* data = Calls.Bytes(path, out length))
                Calls.Check(Native.qwen_session_restore_file(handle, data, length));
        }

        public byte[] SaveBytes()
        {
            UIntPtr needed;
            Calls.Check(Native.qwen_session_save_memory(handle, 0, null, UIntPtr.Zero, &needed));
            var state = new byte[(int)needed];
            fixed (byte* to = state)
                Calls.Check(Native.qwen_session_save_memory(handle, 0, to, needed, &needed));
            return state;
        }

        public void RestoreBytes(byte[] state)
        {
            fixed (byte* data = state)
                Calls.Check(Native.qwen_session_restore_memory(handle, data, (UIntPtr)state.Length));
        }

        /// <summary>Appends tokens for Step() to compute; returns at once.</summary>
        public void Enqueue(int[] tokens)
        {
            fixed (int* data = tokens)
                Calls.Check(Native.qwen_session_enqueue(handle, data, (UIntPtr)tokens.Length));
        }

        /// <summary>As FeedChat(), but leaves what is not computed yet to Step(). Returns how many
        /// tokens that are.</summary>
        public int EnqueueChat(string json)
        {
            UIntPtr length, remaining;
            fixed (byte* data = Calls.Bytes(json, out length))
                Calls.Check(Native.qwen_session_enqueue_chat(handle, data, length, 0, null, &remaining));
            return (int)remaining;
        }

        /// <summary>Goes on for about that long: with what is queued, then with the next token.
        /// For frame loops: call it once per frame until Status is not QWEN_WORKING.</summary>
        public Advance Step(TimeSpan budget, CancellationToken token = default(CancellationToken))
        {
            if (budget < TimeSpan.Zero) throw new ArgumentOutOfRangeException("budget", "must not be negative");
            var made = new Advance();
            made.Status = Run(token, () =>
            {
                int id;
                int status = Native.qwen_session_step(handle, (ulong)budget.Ticks / 10, 0, &id, null);
                made.Token = id;
                return status;
            });
            return made;
        }

        /// <summary>Advances sessions of one model by one token each and reads the weights once
        /// for all. One that cannot go on says so in its place and does not disturb the
        /// others.</summary>
        public static Advance[] BatchStep(params Session[] sessions)
        {
            int count = sessions.Length, held = 0;
            var handles = new IntPtr[count + 1];
            int[] tokens = new int[count + 1], statuses = new int[count + 1];
            try
            {
                foreach (Session session in sessions)
                {
                    bool done = false;
                    session.handle.DangerousAddRef(ref done); // throws if it is disposed
                    handles[held++] = session.handle.DangerousGetHandle();
                }
                fixed (IntPtr* places = handles)
                fixed (int* ids = tokens, results = statuses)
                    if (count > 0)
                        Calls.Check(Native.qwen_batch_step(places, (UIntPtr)count, ids, results));
            }
            finally
            {
                for (int i = 0; i < held; i++) sessions[i].handle.DangerousRelease();
            }
            var advances = new Advance[count];
            for (int i = 0; i < count; i++)
                advances[i] = new Advance { Status = statuses[i], Token = tokens[i] };
            return advances;
        }

        /// <summary>How likely a text is after the sequence, which must not be empty. The session
        /// stays as it is.</summary>
        public qwen_score ScoreText(string text, CancellationToken token = default(CancellationToken))
        {
            UIntPtr length;
            byte[] bytes = Calls.Bytes(text, out length);
            var score = new qwen_score { struct_size = (uint)sizeof(qwen_score) };
            IntPtr place = (IntPtr)(&score);
            Run(token, () =>
            {
                fixed (byte* data = bytes)
                    return Native.qwen_session_score_text(handle, data, length, 0, (qwen_score*)place);
            });
            return score;
        }

        /// <summary>What the session has done since it was made.</summary>
        public qwen_statistics Statistics
        {
            get
            {
                var raw = new qwen_statistics { struct_size = (uint)sizeof(qwen_statistics) };
                Calls.Check(Native.qwen_session_get_statistics(handle, &raw));
                return raw;
            }
        }
    }
}
