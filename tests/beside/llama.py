"""libqwen35 and llama.cpp's library in one process: PACKAGE first|second (when ours comes).

With QWEN_GGUF, a model file, llama-cpp-python computes with it; else it fails to open one.
"""

import importlib
import os
import sys
import threading

package, order = sys.argv[1:]
# Threads of llama-cpp-python that silence themselves at once can lose the process's own.
output = os.dup(1)


def ours() -> str:
    import qwen35

    with qwen35.Model("examples/demo-model", threads=2) as model:
        with model.session(sampling=qwen35.Sampling("greedy")) as session:
            session.feed_chat(
                [{"role": "user", "content": "What is the capital of France?"}],
                enable_thinking=False,
            )
            return "".join(session.stream(40))


def theirs() -> None:
    """Starts its backend, and has it fail to open a model, which runs its C++ exceptions."""
    llama = importlib.import_module(package)
    if package == "llama_cpp" and "QWEN_GGUF" in os.environ:
        model = llama.Llama(os.environ["QWEN_GGUF"], n_ctx=64, n_threads=2, verbose=False)
        model.eval([1, 2, 3, 4, 5])
        assert model.sample(temp=0) >= 0
        model.close()
    elif package == "llama_cpp":
        llama.llama_backend_init()
        assert b"CPU" in llama.llama_print_system_info()
        model = llama.llama_model_load_from_file(
            b"/no/such/file.gguf", llama.llama_model_default_params()
        )
        assert not model
    else:
        assert "CPU" in llama.get_system_info()
        params = llama.CommonParams()
        params.model.path = "/no/such/file.gguf"
        try:
            llama.Server(params)
        except Exception:
            return
        raise AssertionError("a model that is not there was opened")


if order == "first":
    before = ours()
    theirs()
else:
    theirs()
    before = ours()
assert "Paris" in before, before
# At the same time, and afterwards the same as before.
threads = [threading.Thread(target=theirs) for _ in range(2)]
for thread in threads:
    thread.start()
during = ours()
for thread in threads:
    thread.join()
assert during == before == ours()
maps = open("/proc/self/maps").read()
assert "libqwen35.so" in maps and "llama" in maps
os.write(output, f"libqwen35 {order}, with {package}: ok\n".encode())
