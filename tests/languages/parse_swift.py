"""Checks Swift files without Swift: by tree-sitter's grammar, and that every call of the C
interface has as many arguments as the function has parameters. Fails with the places.

Arguments: the folder with the packages tree_sitter and tree_sitter_swift, the C header, and the
files.
"""

import re
import sys

sys.path.insert(0, sys.argv[1])
import tree_sitter
import tree_sitter_swift

parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_swift.language()))
header = re.sub(r"/\*.*?\*/", "", open(sys.argv[2], encoding="utf-8").read(), flags=re.S)
parameters = {
    name: 0 if inside.strip() == "void" else inside.count(",") + 1
    for name, inside in re.findall(r"\b(qwen_\w+)\(([^()]*)\);", header)
}
assert len(parameters) > 50, parameters


def faults(node, file):
    place = f"{file}:{node.start_point[0] + 1}:{node.start_point[1] + 1}"
    if node.is_error or node.is_missing:
        yield f"{place}: {node.text[:60]!r} is no Swift"
    if node.type == "call_expression" and node.children[0].text.startswith(b"qwen_"):
        name = node.children[0].text.decode()
        suffix = node.children[1].children[0]
        found = sum(child.type == "value_argument" for child in suffix.children)
        # Structs are made by calls too, without arguments.
        expected = parameters.get(name, 0)
        if found != expected:
            yield f"{place}: {name} takes {expected} arguments, not {found}"
    for child in node.children:
        yield from faults(child, file)


def parse(text):
    return parser.parse(text).root_node


found = [
    fault
    for file in sys.argv[3:]
    for fault in faults(parse(open(file, "rb").read()), file)
]
# It does see what is wrong.
assert list(faults(parse(b"func broken( { let }"), "broken"))
assert list(faults(parse(b"let x = qwen_session_free(a, b)"), "broken"))
sys.exit("\n".join(found) if found else 0)
