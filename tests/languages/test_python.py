"""The package in examples/python as a program uses it: MODEL SLOW_MODEL. Also run by the wheel."""

import os
import signal
import sys
import tempfile
import threading
import time
import unittest

import qwen35

MODEL, SLOW = sys.argv[1:3]
GREEDY = qwen35.Sampling("greedy")
CHAT = [{"role": "user", "content": "hello"}]


class Tokens(unittest.TestCase):
    def test_text(self) -> None:
        with qwen35.Model(MODEL) as model:
            for text in ["", "hello world", "a\0b", "Grüße 👩‍👧 \ufdfd"]:
                tokens = model.tokenize(text)
                self.assertEqual(model.detokenize(tokens), text)
                self.assertEqual(b"".join(map(model.token_bytes, tokens)).decode(), text)
            end = model.find_token("<|im_end|>")
            assert end is not None
            self.assertIn(end, model.end_tokens)
            self.assertEqual(model.tokenize("<|im_end|>", added_tokens=True), [end])
            self.assertNotIn(end, model.tokenize("<|im_end|>"))
            self.assertEqual(model.detokenize([end], skip_special=True), "")
            self.assertIsNone(model.find_token("nothing"))
            self.assertTrue(model.token_kind(end) & 2)
            rendered = model.render_chat(CHAT, enable_thinking=True)
            self.assertTrue(rendered.endswith("<think>\n"), rendered)
            self.assertIn(end, model.tokenize_chat(CHAT))
            self.assertTrue(model.info.has_weights)
            self.assertEqual(model.info.layer_count > 0, True)

    def test_errors(self) -> None:
        with self.assertRaises(qwen35.Error) as caught:
            qwen35.Model("/nowhere")
        self.assertEqual(caught.exception.name, "QWEN_ERROR_IO")
        self.assertIn("/nowhere", str(caught.exception))
        self.assertRaises(ValueError, qwen35.Model, MODEL, isa="mmx")
        with qwen35.Model(MODEL) as model:
            self.assertRaises(qwen35.Error, model.detokenize, [10**6])
            self.assertRaises(OverflowError, model.detokenize, [2**40])
            self.assertRaises(ValueError, model.session, sampling=qwen35.Sampling("no"))
            self.assertRaises(qwen35.Error, model.render_chat, [{"role": "wizard", "content": ""}])
        self.assertRaises(ValueError, model.tokenize, "closed")
        only = qwen35.Model(MODEL, tokenizer_only=True)
        self.assertRaises(qwen35.Error, only.session)
        self.assertFalse(only.info.has_weights)


class Sessions(unittest.TestCase):
    def setUp(self) -> None:
        self.model = qwen35.Model(MODEL)

    def test_sequences(self) -> None:
        with self.model.session(sampling=GREEDY) as session:
            self.model.close()  # a session keeps what it needs
            self.assertRaises(qwen35.Error, session.next)
            fed = session.feed_chat(CHAT)
            self.assertEqual((fed.total, fed.computed), (session.position,) * 2)
            best = max(range(len(session.logits())), key=session.logits().__getitem__)
            found = session.next()
            assert found is not None
            self.assertEqual(found.token, best)
            self.assertEqual(session.tokens[-1], best)
            session.reset()
            self.assertEqual(session.position, 0)
            session.feed([1, 2, 3])
            session.feed_text("more")
            self.assertGreater(session.position, 3)
        self.assertRaises(ValueError, session.next)

    def test_streams(self) -> None:
        def answer(most: int) -> str:
            with self.model.session(sampling=GREEDY) as session:
                session.feed_chat(CHAT)
                return "".join(session.stream(most))

        long = answer(20)
        self.assertTrue(long)
        with self.model.session(sampling=GREEDY) as session:
            session.feed_chat(CHAT)
            stream = session.stream()
            first = next(stream)
            before = session.position
            stream.close()
            self.assertEqual(session.position, before)  # nothing was made ahead
            self.assertTrue(long.startswith(first))
        with self.model.session(sampling=GREEDY, context_limit=30) as session:
            session.feed([1] * 25)
            list(session.stream())
            self.assertLessEqual(session.position, 30)

    def test_sampling(self) -> None:
        def tokens(**how: object) -> list:
            with self.model.session(sampling=qwen35.Sampling(**how)) as session:  # type: ignore
                session.feed([1, 2, 3])
                return [session.next() for _ in range(8)]

        self.assertEqual(tokens(seed=5), tokens(seed=5))
        self.assertNotEqual(tokens(seed=5), tokens(seed=6))
        self.assertEqual(tokens(preset="greedy"), tokens(temperature=0.0, presence_penalty=0.0))
        first = tokens(preset="greedy")[0]
        banned = {first.token: float("-inf")}
        self.assertNotEqual(tokens(preset="greedy", logit_bias=banned)[0], first)
        self.assertRaises(OverflowError, tokens, top_k=-1)

    def test_session_options(self) -> None:
        with qwen35.Model(
            MODEL, threads=1, weights="int8", compute="exact", prefix_cache_bytes=1 << 22
        ) as model:
            self.assertEqual((model.info.weights, model.info.compute), ("int8", "exact"))
            long = [
                {"role": role, "content": "hello hello hello hello"}
                for _ in range(20)
                for role in ("user", "assistant")
            ] + CHAT
            with model.session(context_limit=200) as session:
                with self.assertRaises(qwen35.Error) as caught:
                    session.feed_chat(long)
                self.assertEqual(caught.exception.name, "QWEN_ERROR_CONTEXT_OVERFLOW")
            with model.session(
                context_limit=200, cache_namespace=5, overflow="drop_turns", overflow_reserve=20,
                mark_limit=2, kv="int8",
            ) as session:
                self.assertLessEqual(session.feed_chat(long).total, 180)
                self.assertGreater(session.feed_info.dropped_messages, 0)
                session.reset()
                session.feed([1] * 100)
                session.mark()
                session.mark()
                self.assertRaises(qwen35.Error, session.mark)
            for _ in range(2):
                with model.session(cache_namespace=5) as session:
                    session.feed_chat([{"role": "user", "content": "hello " * 100}])
                    last = session.feed_info
            self.assertGreater(last.cached, 0)
            self.assertGreater(model.prefix_cache.hits, 0)
            model.clear_prefix_cache()
            self.assertEqual(model.prefix_cache.entries, 0)
            for wrong in ({"overflow": "no"}, {"kv": "int3"}, {"mark_limit": -1}, {"cache_namespace": -1}):
                self.assertRaises(ValueError, model.session, **wrong)
        self.assertRaises(qwen35.Error, lambda: self.model.prefix_cache)
        self.assertRaises(ValueError, qwen35.Model, MODEL, weights="int3")

    def test_progress(self) -> None:
        with self.model.session() as session:
            seen = []
            session.set_progress(lambda done, total: seen.append((done, total)))
            session.feed([1] * 50)
            self.assertEqual(seen[-1][1], 50)
            session.set_progress(lambda done, total: False)
            self.assertRaises(qwen35.Cancelled, session.feed, [1] * 50)
            session.set_progress(lambda done, total: 1 // 0)
            self.assertRaises(ZeroDivisionError, session.feed, [1] * 50)
            session.set_progress(None)
            session.feed([1] * 50)

    def test_threads(self) -> None:
        """Several threads, each with a session, get what one gets alone."""

        def work(number: int, results: dict) -> None:
            with self.model.session(sampling=qwen35.Sampling(seed=number)) as session:
                session.feed_chat(CHAT)
                results[number] = "".join(session.stream(10))

        together: dict = {}
        threads = [threading.Thread(target=work, args=(i, together)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        alone: dict = {}
        for i in range(6):
            work(i, alone)
        self.assertEqual(together, alone)


class Conversations(unittest.TestCase):
    def setUp(self) -> None:
        self.model = qwen35.Model(MODEL)
        self.session = self.model.session(sampling=GREEDY)

    def test_replies(self) -> None:
        with qwen35.Conversation(self.session, system="Be brief.", max_tokens=8) as talk:
            fed = talk.send("hello")
            self.assertGreater(fed.total, 0)
            pieces = list(talk.reply())
            self.assertIn(talk.finish, ("length", "end_of_turn"))
            text = "".join(piece.text for piece in pieces if piece.kind == "text")
            history = talk.history
            self.assertEqual([m["role"] for m in history], ["system", "user", "assistant"])
            self.assertEqual(history[-1]["content"].strip(), text.strip())
            talk.regenerate()
            self.assertEqual("".join(p.text for p in talk.reply()), text)
            self.assertEqual(talk.undo(), 2)
            talk.history = history
            self.assertEqual(talk.history, history)
            list(talk.ask("and more"))
            said = talk.history[-1]["content"]
            talk.undo()
            self.assertGreater(talk.enqueue("and more").remaining, 0)
            pieces, step = [], talk.step(0)
            while step.status != "ended":
                pieces += [step.piece.text] if step.piece else []
                step = talk.step(0.001)
            self.assertEqual("".join(pieces).strip(), said.strip())
            self.assertIn(talk.finish, ("length", "end_of_turn"))
            talk.history = history
            talk.settle()
            self.assertEqual(talk.settle().computed, 0)
            talk.configure(max_tokens=1)
            list(talk.ask("more"))
            self.assertRaises(qwen35.Error, talk.add, 5)
        self.assertRaises(ValueError, talk.send, "closed")

    def test_saving(self) -> None:
        with qwen35.Conversation(self.session, max_tokens=8) as talk:
            talk.send("Hello")
            pieces = talk.reply()
            next(pieces)
            saved = talk.save_to_bytes(marks=False)
            with tempfile.TemporaryDirectory() as folder:
                file = os.path.join(folder, "saved")
                talk.save(file)
                expected = [piece.text for piece in pieces]
                with self.model.session() as other, qwen35.Conversation(other) as again:
                    for restore in (
                        lambda: again.restore(file),
                        lambda: again.restore_from_bytes(saved),
                    ):
                        restore()
                        self.assertEqual([piece.text for piece in again.reply()], expected)
                        self.assertEqual(again.history, talk.history)
        talk.cancel()  # closed: nothing is cancelled

    def test_options(self) -> None:
        tools = [{"type": "function", "function": {"name": "f"}}]
        # The toy's template has no tools; that they are not an array of objects is seen at once.
        qwen35.Conversation(self.session, tools=tools, thinking=False, stop=["a", "b\0c"])
        self.assertRaises(qwen35.Error, qwen35.Conversation, self.session, stop=[""])
        self.assertRaises(TypeError, qwen35.Conversation, self.session, tools=3)

    def test_judging(self) -> None:
        self.session.feed([1, 2, 3])
        score = self.session.score("hello world")
        self.assertLess(score.log_likelihood, 0)
        self.assertEqual(self.session.position, 3)
        self.session.score("hello", keep=True)
        self.assertGreater(self.session.position, 3)
        top = self.session.top_logprobs(3)
        self.assertEqual(len(top), 3)
        self.assertGreaterEqual(top[0][1], top[1][1])
        self.session.reset()
        embedding = self.session.embed("hello")
        self.assertAlmostEqual(sum(x * x for x in embedding), 1, places=4)

    def test_logits_callback(self) -> None:
        self.session.feed([1, 2, 3])
        seen = []

        def only(logits: memoryview, tokens: list) -> None:
            seen.append(tokens)
            for i in range(len(logits)):
                if i != 7:
                    logits[i] = float("-inf")

        self.session.set_logits_callback(only)
        found = self.session.next()
        assert found is not None
        self.assertEqual((found.token, seen), (7, [[1, 2, 3]]))
        self.session.set_logits_callback(lambda logits, tokens: 1 // 0)
        self.assertRaises(ZeroDivisionError, self.session.next)
        self.session.set_logits_callback(None)
        assert self.session.next() is not None


class Branches(unittest.TestCase):
    def setUp(self) -> None:
        self.model = qwen35.Model(MODEL)
        self.session = self.model.session(sampling=qwen35.Sampling(seed=3))
        self.session.feed([1, 2, 3])

    def made(self, session: qwen35.Session) -> list:
        return [session.next() for _ in range(6)]

    def test_forks(self) -> None:
        self.session.attachment = b"a\0b"
        with self.session.fork() as fork:
            self.assertEqual(fork.attachment, b"a\0b")
            self.session.attachment = b""
            self.assertEqual((self.session.attachment, fork.attachment), (b"", b"a\0b"))
            expected = self.made(self.session)
            self.session.close()
            self.assertEqual(self.made(fork), expected)
            self.model.close()
            self.assertRaises(ValueError, fork.fork)  # its decoder would need the model
            self.assertRaises(ValueError, self.session.fork)

    def test_marks(self) -> None:
        mark = self.session.mark()
        self.assertIn(qwen35.Mark(mark, 3, False), self.session.marks)
        expected = self.made(self.session)
        self.session.rewind(mark, random=True)
        self.assertEqual(self.session.tokens, [1, 2, 3])
        self.assertEqual(self.made(self.session), expected)
        self.session.rewind(mark)
        self.assertNotEqual(self.made(self.session), expected)
        self.assertEqual(self.session.truncate(5), 2)
        self.assertEqual(self.session.position, 5)
        self.session.unmark(mark)
        self.assertRaises(qwen35.Error, self.session.rewind, mark)
        self.assertRaises(qwen35.Error, self.session.truncate, 50)

    def test_saving(self) -> None:
        state = self.session.save_to_bytes(marks=False)
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "saved")
            self.session.save(file)
            expected = self.made(self.session)
            with self.model.session() as other:
                other.restore(file)
                self.assertEqual(self.made(other), expected)
                other.restore_from_bytes(state)
                self.assertEqual(self.made(other), expected)
                with self.assertRaises(qwen35.Error) as caught:
                    other.restore_from_bytes(state[:-1])
                self.assertEqual(caught.exception.name, "QWEN_ERROR_FORMAT")
                self.assertRaises(qwen35.Error, other.restore, folder)
                self.assertEqual(other.position, 9)

    def test_steps(self) -> None:
        with self.model.session(sampling=GREEDY) as whole:
            whole.feed([1] * 60)
            expected = whole.next()
            assert expected is not None
            whole.reset()
            self.assertRaises(qwen35.Error, whole.step, 0.0)
            self.assertRaises(ValueError, whole.step, -1.0)
            whole.enqueue([1] * 60)
            working, step = 0, whole.step(0.0)
            while step.status == "working":
                self.assertIsNone(step.token)
                working, step = working + 1, whole.step(0.0)
            self.assertGreater(working, 3)
            self.assertEqual(step.token, expected.token)
            whole.enqueue_text("hello")
            step = whole.step(float("inf"), input_only=True)
            self.assertEqual(step, qwen35.Step("done", None, 0))
            queued = whole.enqueue_chat(CHAT)
            self.assertGreater(queued.remaining, 0)
            self.assertEqual(queued.total, whole.position)
            whole.enqueue([1] * 200)
            whole.cancel()
            self.assertRaises(qwen35.Cancelled, whole.step, 1.0)

    def test_batches(self) -> None:
        self.assertEqual(qwen35.batch_step([]), [])
        sessions = [self.model.session(sampling=qwen35.Sampling(seed=n)) for n in range(3)]
        alone = []
        for n, session in enumerate(sessions):
            session.feed([1] * (n + 1))
            alone.append(self.made(session.fork()))
        together = [qwen35.batch_step(sessions) for _ in range(6)]
        for n in range(3):
            self.assertEqual([step[n].token for step in together], [t.token for t in alone[n]])
        empty = self.model.session()
        sessions[1].cancel()
        sessions[2].set_logits_callback(lambda logits, tokens: 1 // 0)
        steps = qwen35.batch_step([sessions[0], empty, sessions[1], sessions[0], sessions[2]])
        self.assertIn(steps[0].status, ("done", "end_of_turn"))
        self.assertEqual([s.status for s in steps[1:]], ["failed", "cancelled", "failed", "cancelled"])
        assert isinstance(steps[1].error, qwen35.Error)
        self.assertEqual(steps[1].error.name, "QWEN_ERROR_INVALID_STATE")
        self.assertIsInstance(steps[4].error, ZeroDivisionError)
        with qwen35.Model(MODEL) as other, other.session() as stranger:
            self.assertRaises(qwen35.Error, qwen35.batch_step, [sessions[0], stranger])

    def test_statistics(self) -> None:
        self.made(self.session)
        for found in (self.session.statistics, self.model.statistics):
            self.assertEqual((found.sessions, found.input_tokens, found.output_tokens), (1, 3, 6))
            self.assertGreater(found.bytes, 0)
            self.assertGreater(found.output_rate, 0)


class LongCalls(unittest.TestCase):
    def setUp(self) -> None:
        self.model = qwen35.Model(SLOW, threads=1, isa="scalar")
        self.session = self.model.session(sampling=GREEDY)

    def test_other_threads_run_meanwhile(self) -> None:
        ticks, stop = [0], threading.Event()

        def tick() -> None:
            while not stop.wait(0.001):
                ticks[0] += 1

        thread = threading.Thread(target=tick)
        thread.start()
        before = time.monotonic()
        self.session.feed([1] * 200)
        took = time.monotonic() - before
        counted = ticks[0]
        stop.set()
        thread.join()
        self.assertGreater(counted, 3, f"other threads stood still for {took} s")

    def test_cancel_from_another_thread(self) -> None:
        threading.Timer(0.05, self.session.cancel).start()
        self.assertRaises(qwen35.Cancelled, self.session.feed, [1] * 4000)
        self.assertLess(self.session.position, 4000)
        with self.assertRaises(qwen35.Error):  # it does not fit any more: it was not forgotten
            self.session.feed([1] * 5000)
        self.session.feed([1, 2])

    def test_interrupts(self) -> None:
        # Shells start background jobs with Ctrl-C ignored, and Python leaves that as it is.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for _ in range(3):
            threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
            before = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                while True:
                    self.session.feed([1] * 4000)
            self.assertLess(time.monotonic() - before, 5)
            self.session.reset()
            self.session.feed([1, 2])  # no cancel is left over
            assert self.session.next() is not None

    def test_a_busy_session(self) -> None:
        thread = threading.Thread(target=self.feed_until_cancelled)
        thread.start()
        time.sleep(0.05)
        with self.assertRaises(qwen35.Error) as caught:
            self.session.feed([1])
        self.assertEqual(caught.exception.name, "QWEN_ERROR_BUSY")
        self.session.close()  # ends the call inside
        thread.join(10)
        self.assertFalse(thread.is_alive())

    def feed_until_cancelled(self) -> None:
        try:
            self.session.feed([1] * 4000)
        except qwen35.Cancelled:
            pass

    def test_after_fork(self) -> None:
        self.session.feed([1, 2, 3])
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            status = 1
            try:
                self.session.feed([1] * 50)
            except qwen35.Error as error:
                if error.name == "QWEN_ERROR_FORKED":
                    with qwen35.Model(MODEL) as model, model.session() as session:
                        session.feed([1, 2, 3])
                        status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.session.feed([1])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
