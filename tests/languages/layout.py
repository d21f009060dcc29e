"""Prints the table of tests/bindings.rs as ctypes sees the interface."""

import ctypes

from qwen35 import _abi

for name, value in vars(_abi).items():
    if name.startswith("QWEN_"):
        print("const", name, value)
    elif isinstance(value, type) and issubclass(value, ctypes.Structure) and hasattr(value, "_fields_"):
        print("struct", name, ctypes.sizeof(value))
        for field, _ in value._fields_:
            place = getattr(value, field)
            print(f"field {name}.{field} {place.offset} {place.size}")
