// A conversation: chat.exe MODEL [MOST_TOKENS [TEMPERATURE_PERCENT]]. Ctrl-C cancels an answer.
using System;
using System.Text;
using System.Threading;
using Qwen35;

static class Chat
{
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
        catch (DllNotFoundException error)
        {
            Console.Error.WriteLine("chat: {0}", error.Message);
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
        var options = new ConversationOptions { Thinking = false, MaxTokens = (uint)most };
        using (var talk = new Conversation(session, options))
            for (string line; (line = Console.ReadLine()) != null;)
            {
                answering = new CancellationTokenSource();
                try
                {
                    foreach (string piece in talk.Ask(line, answering.Token)) Console.Write(piece);
                }
                catch (OperationCanceledException) { }
                answering = null;
                Console.WriteLine();
            }
    }
}
