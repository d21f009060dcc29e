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
