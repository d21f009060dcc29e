"""How tokens are chosen."""

import ctypes
from dataclasses import dataclass
from typing import Any, Mapping, Optional

from . import _abi

PRESETS = {
    "chat": _abi.QWEN_PRESET_CHAT,
    "greedy": _abi.QWEN_PRESET_GREEDY,
    "thinking": _abi.QWEN_PRESET_THINKING,
    "precise": _abi.QWEN_PRESET_PRECISE,
}


@dataclass(frozen=True)
class Sampling:
    """A preset ("chat", "greedy", "thinking" or "precise"), and what replaces its values.

    See qwen_sampling_options in qwen35.h for each. `logit_bias` maps token ids to numbers
    added to their logits; -math.inf bans a token.
    """

    preset: str = "chat"
    temperature: Optional[float] = None
    top_k: Optional[int] = None
    top_p: Optional[float] = None
    min_p: Optional[float] = None
    repetition_penalty: Optional[float] = None
    presence_penalty: Optional[float] = None
    frequency_penalty: Optional[float] = None
    penalty_window: Optional[int] = None
    seed: Optional[int] = None
    logit_bias: Optional[Mapping[int, float]] = None

    def raw(self) -> "_abi.qwen_sampling_options":
        """For the C interface."""
        options = _abi.qwen_sampling_options()
        options.struct_size = ctypes.sizeof(options)
        if self.preset not in PRESETS:
            known = ", ".join(PRESETS)
            raise ValueError(f"preset {self.preset!r}: must be one of {known}")
        options.preset = PRESETS[self.preset]
        for name in _FIELDS:
            value: Any = getattr(self, name)
            if value is not None:
                if isinstance(value, int) and not 0 <= value < 2 ** (64 if name == "seed" else 32):
                    raise OverflowError(f"{name} {value} is out of range")
                setattr(options, name, value)
                options.set |= getattr(_abi, "QWEN_SET_" + name.upper())
        if self.logit_bias:
            entries = (_abi.qwen_logit_bias * len(self.logit_bias))(
                *(_abi.qwen_logit_bias(token, bias) for token, bias in self.logit_bias.items())
            )
            options.logit_bias = ctypes.cast(entries, ctypes.POINTER(_abi.qwen_logit_bias))
            options.logit_bias_count = len(entries)
            options.kept = entries
        return options


_FIELDS = [
    name
    for name in Sampling.__dataclass_fields__
    if name not in ("preset", "logit_bias")
]
