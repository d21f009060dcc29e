// examples/csharp as a program uses it: MODEL SLOW_MODEL.
using System;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Qwen35;

static class Test
{
    const string Hello = "[{\"role\": \"user\", \"content\": \"hello\"}]";

    static void Check(bool condition, string what)
    {
        if (!condition) throw new Exception("not so: " + what);
    }

    static T Throws<T>(Action action) where T : Exception
    {
        try { action(); }
        catch (T error) { return error; }
        throw new Exception("nothing was thrown, not " + typeof(T));
    }

    static string Answer(Model model, ulong seed)
    {
        using (var session = new Session(model, 0, new Sampling { Seed = seed }))
        {
            session.FeedChat(Hello);
            return string.Concat(session.Stream(10));
        }
    }

    // A conversation keeps its messages, ends by its length and goes on.
    static void Conversations(Model model)
    {
        using (var session = new Session(model, 0, Sampling.Greedy))
        {
            var options = new ConversationOptions
            {
                System = "Be brief.", Thinking = false, MaxTokens = 4, Stop = new[] { "never so", "nor so" },
            };
            using (var talk = new Conversation(session, options))
            {
                string text = string.Concat(talk.Ask("hello"));
                Check(talk.Finish == Finish.Length || talk.Finish == Finish.EndOfTurn, talk.Finish.ToString());
                Check(talk.History.Contains("Be brief.") && talk.History.Contains("hello"), talk.History);
                if (talk.Finish == Finish.Length)
                {
                    talk.Resume();
                    foreach (Piece piece in talk.Reply()) Check(piece.Kind == PieceKind.Text, piece.Text);
                }
                talk.Regenerate();
                Check(string.Concat(talk.Reply().Select(piece => piece.Text)).StartsWith(text), text);
                string whole = string.Concat(talk.Ask("more"));
                talk.Undo();
                Check(talk.Enqueue("more") > 0, "queued");
                string made = "";
                for (Piece piece; talk.Step(TimeSpan.FromMilliseconds(1), out piece);)
                    if (piece != null) made += piece.Text;
                Check(made == whole, made + " is not " + whole);
                Check(talk.Settle() >= 0 && talk.Settle() == 0, "settled");
                talk.AddToolResult("call", "{}");
                talk.Send();
                Check(talk.Reply().Count() >= 0 && talk.Undo() > 0, "undone");
                talk.Add("{\"role\": \"user\", \"content\": \"hello\"}");
                string history = talk.History;
                talk.History = "[]";
                talk.History = history;
                Check(talk.History == history, history);
                talk.Configure(new ConversationOptions { MaxTokens = 1 });
                using (var source = new CancellationTokenSource())
                {
                    talk.Send();
                    source.Cancel();
                    Throws<OperationCanceledException>(() => talk.Reply(source.Token).Count());
                }
                session.Cancel();
                Throws<OperationCanceledException>(() => talk.Reply().Count());
                Check(talk.Finish == Finish.Cancelled, talk.Finish.ToString());
                Throws<QwenException>(() => new Conversation(session, new ConversationOptions { Tools = "{" }));
                Throws<QwenException>(() => new Conversation(session, new ConversationOptions { Stop = new[] { "" } }));
            }
        }
    }

    static int[] Made(Session session, int count)
    {
        int id = -1;
        return Enumerable.Range(0, count).Select(i => { session.Next(out id); return id; }).ToArray();
    }

    // Forks, marks and saved sessions go on bit for bit; steps and batches give the same tokens.
    static void Branches(Model model, string file)
    {
        using (var session = new Session(model, 0, new Sampling { Seed = 7 }, markLimit: 8))
        {
            session.Feed(new[] { 1, 2, 3, 4, 5 });
            ulong mark = session.Mark();
            byte[] state = session.SaveBytes();
            session.Save(file);
            Check(session.ScoreText("hello").token_count > 0, "scored");
            Session one = session.Fork(), two = session.Fork(), three = session.Fork();
            int[] expected = Made(session, 4);
            Check(Made(one, 4).SequenceEqual(expected), "a fork");
            session.Rewind(mark, true);
            Check(Made(session, 4).SequenceEqual(expected), "a mark");
            session.RestoreBytes(state);
            Check(Made(session, 4).SequenceEqual(expected), "saved to memory");
            session.Restore(file);
            Check(Made(session, 4).SequenceEqual(expected), "saved to a file");
            session.Truncate(2);
            Check(session.Tokens.SequenceEqual(new[] { 1, 2 }), "cut");
            session.Unmark(session.Mark());
            Throws<QwenException>(() => session.Unmark(12345));
            Throws<QwenException>(() => session.RestoreBytes(new byte[] { 1, 2, 3 }));

            Advance step;
            while ((step = two.Step(TimeSpan.FromMilliseconds(2))).Status == Native.QWEN_WORKING) { }
            Check(step.Token == expected[0], "a step");
            var batch = Session.BatchStep(two, three, session, two);
            Check(batch[0].Token == expected[1] && batch[1].Token == expected[0], "a batch");
            Check(batch[2].Token >= 0 && batch[3].Status < 0 && batch[3].Token == -1, "listed twice");
            three.Reset();
            Check(three.EnqueueChat(Hello) > 0, "queued");
            three.Enqueue(new[] { 1 });
            while (three.Step(TimeSpan.Zero).Status == Native.QWEN_WORKING) { }
            Check(three.Statistics.output_tokens > 0, "counted");
            one.Dispose();
            Throws<ObjectDisposedException>(() => Session.BatchStep(two, one));
        }
    }

    // A conversation that does not fit loses its oldest turns, if that is asked for.
    static void Options(string path)
    {
        using (var model = new Model(path, 1, weights: Native.QWEN_WEIGHTS_INT8,
            compute: Native.QWEN_COMPUTE_EXACT, prefixCacheBytes: 1 << 20))
        {
            Check(model.Info.weights == Native.QWEN_WEIGHTS_INT8, "weights");
            Check(model.Info.compute == Native.QWEN_COMPUTE_EXACT, "compute");
            string turn = "{\"role\": \"user\", \"content\": \"hello hello hello hello\"}," +
                "{\"role\": \"assistant\", \"content\": \"hello\"},";
            string chat = "[" + string.Concat(Enumerable.Repeat(turn, 20)) + Hello.Substring(1);
            using (var session = new Session(model, 200))
                Check(Throws<QwenException>(() => session.FeedChat(chat)).Name == "QWEN_ERROR_CONTEXT_OVERFLOW", "full");
            using (var session = new Session(model, 200, null, 5, true, kv: Native.QWEN_KV_INT8)) session.FeedChat(chat);
            Throws<QwenException>(() => new Session(model, kv: 77));
        }
        Throws<QwenException>(() => new Model(path, weights: 77));
    }

    static void Main(string[] arguments)
    {
        var lost = Throws<QwenException>(() => new Model("/nowhere"));
        Check(lost.Name == "QWEN_ERROR_IO" && lost.Message.Contains("/nowhere"), lost.Message);
        var model = new Model(arguments[0], 1);
        Check(model.Info.threads == 1, "threads");
        foreach (string text in new[] { "", "hello world", "a\0b", "Gr\u00fc\u00dfe \U0001F469" })
            Check(model.Detokenize(model.Tokenize(text)) == text, text);
        Check(model.Tokenize("<|im_end|>", true).Length == 1, "an added token");
        Check(model.RenderChat(Hello).Contains("hello"), "a rendered chat");
        Throws<QwenException>(() => model.RenderChat("{"));
        Throws<QwenException>(() => new Session(model, 0, new Sampling { Temperature = -1 }));

        var together = Enumerable.Range(0, 6).Select(i => Task.Run(() => Answer(model, (ulong)i))).ToArray();
        Task.WaitAll(together);
        for (int i = 0; i < together.Length; i++)
            Check(Answer(model, (ulong)i) == together[i].Result, "the same answer alone");

        Conversations(model);
        string file = System.IO.Path.GetTempFileName();
        Branches(model, file);
        System.IO.File.Delete(file);
        Options(arguments[0]);

        var session = new Session(model, 0, Sampling.Greedy);
        model.Dispose(); // a session keeps what it needs
        int id;
        Throws<QwenException>(() => session.Next(out id));
        Check(session.FeedChat(Hello) > 0 && session.FeedChat(Hello) == 0, "fed once");
        float[] logits = session.Logits();
        session.Next(out id);
        Check(Array.IndexOf(logits, logits.Max()) == id && session.Tokens.Last() == id, "greedy");
        session.Reset();
        Check(session.Tokens.Length == 0, "empty");
        session.FeedText("more");
        session.Dispose();
        Throws<ObjectDisposedException>(() => session.Reset());

        using (var slow = new Model(arguments[1], 1, Native.QWEN_ISA_SCALAR))
        using (session = new Session(slow))
        {
            var tokens = Enumerable.Repeat(1, 4000).ToArray();
            for (int i = 0; i < 3; i++)
            {
                using (var source = new CancellationTokenSource(50))
                    Throws<OperationCanceledException>(() =>
                    {
                        for (;;)
                        {
                            session.Feed(tokens, source.Token);
                            session.Reset();
                        }
                    });
                session.Reset();
                session.Feed(new[] { 1, 2 }); // no cancel is left over
            }
        }
        Console.WriteLine("ok");
    }
}
