# SPDX-License-Identifier: Apache-2.0
"""What the hand-written C headers declare: functions (rows/headers.py), enumerations, structures,
callbacks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from rows import ROOT, load

headers = load("rows.headers")
ENUM = re.compile(r"typedef enum \{([^}]*)\} (\w+);")
RECORD = re.compile(r"^\} (\w+);", re.M)
CALLBACK = re.compile(r"typedef [^;(]*\(\*(\w+)\)\(")
NUMBERS = ("char", "int", "float", "double", "bool", "size_t", "aclFloat16", "aclError")
NUMBERS += tuple(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64))
HANDLE = re.compile(r"typedef void\* (\w+);")


@dataclass
class Parameter:
    type: str
    name: str
    array: str = ""  # "[][2]"

    @property
    def declaration(self) -> str:
        return f"{self.type} {self.name}{self.array}"

    @property
    def is_pointer(self) -> bool:
        return self.type.endswith("*") or bool(self.array)

    @property
    def is_result(self) -> bool:
        """Whether the call writes where it points: a number, an enumerator or a pointer."""
        target = self.type[:-1].strip()
        if not self.type.endswith("*") or "const" in self.type or target == "char":
            return False
        return target.endswith("*") or target in NUMBERS or target in handles() | {*enumerations()}


@dataclass
class Function:
    result: str
    name: str
    parameters: list[Parameter]

    @property
    def declaration(self) -> str:
        return ", ".join(p.declaration for p in self.parameters) or "void"

    @property
    def is_variadic(self) -> bool:
        return any(p.type == "..." for p in self.parameters)


def parameter(text: str) -> Parameter:
    text = re.sub(r"\s+", " ", text).strip()
    if text == "...":
        return Parameter("...", "")
    match = re.fullmatch(r"(.*?)(\w+)((?:\[\w*\])*)", text)
    assert match, text
    return Parameter(match[1].strip(), match[2], match[3])


def function(result: str, name: str, parameters: str) -> Function:
    texts = [text for text in parameters.split(",") if text.strip() not in ("", "void")]
    return Function(result.strip(), name, [parameter(text) for text in texts])


@cache
def texts() -> dict[str, str]:
    """The headers by their path below include/."""
    return headers.texts(ROOT / "include")


@cache
def declared(beginning: str = "") -> tuple[Function, ...]:
    """The functions of the headers whose path begins so."""
    return tuple(
        function(own.result, own.name, own.parameters)
        for path, text in texts().items()
        if path.startswith(beginning)
        for own in headers.declarations(path, text)
    )


@cache
def enumerations() -> dict[str, list[str]]:
    """Enumerators by type; of those with the same value the first."""
    found: dict[str, list[str]] = {}
    for text in texts().values():
        for body, name in ENUM.findall(text):
            first: dict[str, str] = {}
            for enumerator, value in re.findall(r"(\w+) = (-?\w+)", body):
                first.setdefault(value, enumerator)
            found[name] = list(first.values())
    return found


def _named(pattern: re.Pattern[str]) -> set[str]:
    return {name for text in texts().values() for name in pattern.findall(text)}


@cache
def records() -> set[str]:
    """Structures and unions that are passed by value."""
    return _named(RECORD) - {*enumerations()}


@cache
def callbacks() -> set[str]:
    return _named(CALLBACK)


@cache
def handles() -> set[str]:
    return _named(HANDLE)


def c_headers() -> list[str]:
    """Those that programs include, which include all others."""
    return [path for path in texts() if not path.startswith(("acl/rt/", "aclnnop/"))]
