// A conversation: chat.exe MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]. Ctrl-C cancels an answer.
using System;
using System.Collections.Generic;
using System.Text;
using System.Threading;
using Qwen35;

static class Chat
{
    // Text as a JSON string.
    static string Quote(string text)
    {
        var json = new StringBuilder("\"");
        foreach (char c in text)
        {
            if (c < ' ' || c == '"' || c == '\\') json.AppendFormat("\\u{0:x4}", (int)c);
            else json.Append(c);
        }
        return json.Append('"').ToString();
    }

    static string Message(string role, string content)
    {
        return "{\"role\":\"" + role + "\",\"content\":" + Quote(content) + "}";
    }

    static int Main(string[] arguments)
    {
        if (arguments.Length < 1 || arguments.Length > 3)
        {
            Console.Error.WriteLine("usage: chat.exe MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]");
            return 2;
        }
        int most = arguments.Length > 1 ? int.Parse(arguments[1]) : 64;
        int percent = arguments.Length > 2 ? int.Parse(arguments[2]) : 70;
        Console.OutputEncoding = new UTF8Encoding(false);
        Console.InputEncoding = new UTF8Encoding(false);
        var sampling = Sampling.Greedy; // no penalties
        sampling.Temperature = percent / 100f;
        sampling.TopK = 40;
        try
        {
            using (var model = new Model(arguments[0]))
            using (var session = new Session(model, 0, sampling)) Talk(session, most);
            return 0;
        }
        catch (QwenException error)
        {
            Console.Error.WriteLine("chat: {0} ({1})", error.Message, error.Name);
            return 1;
        }
    }

    static void Talk(Session session, int most)
    {
        CancellationTokenSource answering = null;
        Console.CancelKeyPress += (sender, press) =>
        {
            if (answering == null) return; // at the prompt it leaves
            press.Cancel = true;
            answering.Cancel();
        };
        var messages = new List<string>();
        for (string line; (line = Console.ReadLine()) != null;)
        {
            messages.Add(Message("user", line));
            var answer = new StringBuilder();
            answering = new CancellationTokenSource();
            try
            {
                session.FeedChat("{\"messages\":[" + string.Join(",", messages) +
                    "],\"enable_thinking\":false}", answering.Token);
                foreach (string piece in session.Stream(most, answering.Token))
                {
                    Console.Write(piece);
                    answer.Append(piece);
                }
            }
            catch (OperationCanceledException) { }
            answering = null;
            Console.WriteLine();
            messages.Add(Message("assistant", answer.ToString()));
        }
    }
}
