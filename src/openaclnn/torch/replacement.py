# SPDX-License-Identifier: Apache-2.0
"""What `replace` did to a model, for people."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NoReturn

NO_SILU = "no SiLU alone takes its result"
NOT_CALLED = (
    "no method calls it as self.NAME(x) (but perhaps in a loop), "
    "so what takes its result is unknown"
)
OTHER = "may compute something else"
ON_INSTANCE = "overrides forward on the instance"
WIDE = "float64 parameters, whose gradients no Ascend product has"
IN_PLACE = "replace changes the model itself and returns a report: go on with the model"
MODEL = "(the model)"  # its own name is empty
# Texts of reasons, and what to do.
ADVICE = {
    (NO_SILU, NOT_CALLED, OTHER): (
        "If a SiLU follows one of these directly, call openaclnn.torch.group_norm_swish there, "
        "use register_replacement for its class, or compile with fuse_pass."
    ),
    ("has hooks", ON_INSTANCE): (
        "Call replace before what adds hooks or sets forward, such as fully_shard or accelerate."
    ),
    (WIDE,): "For float64, call openaclnn.set_product(None) before replace.",
}


@dataclass
class Replacement:
    """What `replace` did, by name of the module, and what it left, with the reason."""

    replaced: dict[str, str] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(IN_PLACE)

    def __getattr__(self, name: str) -> NoReturn:
        more = "" if name.startswith("_") else f"; {IN_PLACE}"
        raise AttributeError(f"{type(self).__name__} has no attribute {name}{more}")

    def __str__(self) -> str:
        lines = _grouped(self.replaced)
        lines += _grouped({k: f"left as it is, because {why}" for k, why in self.left.items()})
        for texts, advice in ADVICE.items():
            if any(text in why for text in texts for why in self.left.values()):
                lines.append(advice)
        return "\n".join(lines) or "nothing to replace"


def _grouped(texts: dict[str, str]) -> list[str]:
    """One line for all names that differ in numbers only and say the same."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, text in texts.items():
        key = tuple(re.sub(r"(?<![^.])\d+(?![^.])", "*", part) for part in (name, text))
        groups.setdefault((key[0], key[1]), []).append(name)
    lines = []
    for (pattern, text), names in groups.items():
        if len(names) == 1:
            lines.append(f"{names[0]}: {texts[names[0]]}")
        else:
            lines.append(f"{pattern} ({len(names)}): {text}")
    return lines
