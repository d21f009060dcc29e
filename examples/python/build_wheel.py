"""Makes the wheel `qwen35`: build_wheel.py LIBRARY FOLDER. Needs objdump and strip (binutils).

The same inputs give the same bytes. The name says the oldest glibc that the library runs on.
"""

import base64
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SUMMARY = "Qwen3.5 language models on x86-64 CPUs"


def read(*parts: str) -> bytes:
    with open(os.path.join(*parts), "rb") as file:
        return file.read()


def glibc(library: str) -> str:
    """The newest symbol version of glibc that the library asks for, as in "2_34"."""
    symbols = subprocess.run(
        ["objdump", "-T", library], check=True, capture_output=True, text=True
    ).stdout
    found = [(int(a), int(b)) for a, b in re.findall(r"GLIBC_(\d+)\.(\d+)", symbols)]
    if not found:
        sys.exit(f"build_wheel.py: no symbol versions of glibc in {library}")
    return "{}_{}".format(*max(found))


def stripped(library: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "library")
        subprocess.run(["strip", "--strip-debug", "-o", path, library], check=True)
        return read(path)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: build_wheel.py LIBRARY FOLDER")
    library, folder = sys.argv[1:]
    cargo = read(ROOT, "Cargo.toml").decode()
    version = re.search(r'^version = "(.*)"', cargo, re.M).group(1)  # type: ignore[union-attr]
    tag = f"py3-none-manylinux_{glibc(library)}_x86_64"
    info = f"qwen35-{version}.dist-info"
    files = {
        f"qwen35/{name}": read(HERE, "qwen35", name)
        for name in sorted(os.listdir(os.path.join(HERE, "qwen35")))
        if name.endswith((".py", ".typed"))
    }
    files["qwen35/libqwen35.so.0"] = stripped(library)
    files[f"{info}/licenses/LICENSE"] = read(ROOT, "LICENSE")
    files[f"{info}/licenses/third-party-licenses.txt"] = read(
        ROOT, "packaging", "third-party-licenses.txt"
    )
    # Of what the linker added, see packaging/portable.sh.
    more = os.path.join(os.path.dirname(os.path.abspath(library)), "licenses")
    for name in sorted(os.listdir(more)) if os.path.isdir(more) else ():
        files[f"{info}/licenses/{name}"] = read(more, name)
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: qwen35\nVersion: {version}\nSummary: {SUMMARY}\n"
        "License: Apache-2.0\nRequires-Python: >=3.8\n"
        "Classifier: Typing :: Typed\nClassifier: Operating System :: POSIX :: Linux\n"
    ).encode()
    files[f"{info}/WHEEL"] = (
        f"Wheel-Version: 1.0\nGenerator: libqwen35\nRoot-Is-Purelib: false\nTag: {tag}\n"
    ).encode()
    record = f"{info}/RECORD"
    lines = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}\n")
    files[record] = "".join(lines + [f"{record},,\n"]).encode()
    path = os.path.join(folder, f"qwen35-{version}-{tag}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            wheel.writestr(entry, data)
    print(path)


if __name__ == "__main__":
    main()
