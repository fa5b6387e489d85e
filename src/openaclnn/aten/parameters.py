# SPDX-License-Identifier: Apache-2.0
"""The parameters of a row, and what they accept.

    self, out!, x: tensors, alpha: scalar      a tensor unless a kind follows; ! marks outputs
    bias?                may be NULL; for operators of ATen, their own schema says it
    self[N?,C,*]         the shape: a name is the same size wherever it stands in the row; N? may be
                         missing, then everywhere; * is the same dims everywhere, ... any dims;
                         a number is a number; H+ is at least 1
    gamma[normalizedShape], gradOutput[self], q[T,heads]
                         the name of another parameter is its number, its list or its shape
    mean[(N,group)]      as many elements, in whatever dims
    padding[2]: ints     the length of a list, which must not be NULL; [...] is any length
    self: float tensor   floating-point numbers; `index tensor` has integers
    y: packed tensor!    INT4 too, which other outputs may not be
    scalesH: scale double  0 or less, or not so small that an index overflows
    mropeSection: unset ints  any numbers: torch_npu passes uninitialised memory for its default
    target: index tensor < C, indices: index tensor < H*W or ignoreIndex
                         every index is in [0, C), or is the number of ignoreIndex
    saveMean[C] if train needed where the flag is true, ignored otherwise
    runningMean[C] unless training
                         may be NULL only where the flag is true
    group: int >= 1, reduction: int in 0..2, kernelSize: ints >= 1
                         the range of a number, or of all numbers of a list
    C: int % group       a multiple of another number

What ATen itself checks for every caller needs no limit here; NULL is not checked against limits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Kinds of parameters: their C type and the C++ name of their kind.
KINDS = {
    "tensor": ("const void*", "tensor"),
    "tensors": ("const void*", "tensors"),
    "scalar": ("const void*", "scalar"),
    "scalars": ("const void*", "scalars"),
    "ints": ("const void*", "ints"),
    "bools": ("const void*", "bools"),
    "floats": ("const void*", "floats"),
    "text": ("const void*", "text"),
    "int": ("int64_t", "integer"),
    "int32": ("int32_t", "integer"),
    "byte": ("int8_t", "integer"),
    "double": ("double", "real"),
    "float": ("float", "real"),
    "bool": ("bool", "flag"),
    "dtype": ("int32_t", "dtype"),
}


# What the words before a kind mean.
OF = {
    "float": "floating-point numbers",
    "index": "integers",
    "packed": "INT4 too",
    "scale": "0 or less, or at least 1e-6",
    "unset": "any numbers where it is ignored",
}


@dataclass(frozen=True)
class Parameter:
    name: str
    kind: str
    written: bool
    nullable: bool = False
    shape: tuple[str, ...] | None = None  # None: any
    flat: bool = False  # of the shape only the number of elements counts
    of: str = "any"  # or float, index, packed, scale, unset
    least: int | None = None
    most: int | None = None
    multiple: str | None = None  # the parameter that divides it
    below: str | None = None  # "C", "H*W": the bound of the elements of an index tensor
    condition: str | None = None  # the flag without which it is ignored
    unless: str | None = None  # the flag with which it may be NULL
    ignored: str | None = None  # the parameter whose number is accepted beside them

    @property
    def bound(self) -> tuple[str, ...]:
        """The factors of `below`."""
        return tuple(self.below.split("*")) if self.below else ()

    @property
    def accepts(self) -> str:
        """The limits as people read them: "shape [N?, C]; from 0 to 2"."""
        found = []
        if self.shape is not None:
            sizes = ", ".join(self.shape)
            if self.kind != "tensor":
                found.append("any length" if sizes == "..." else f"{sizes} elements")
            elif self.flat:
                found.append(f"as many elements as [{sizes}]")
            else:
                found.append(f"shape [{sizes}]")
        if self.of != "any":
            found.append(OF[self.of])
        if self.below is not None:
            also = f" or {self.ignored}" if self.ignored else ""
            found.append(f"from 0, below {self.below}{also}")
        if self.most is not None:
            found.append(f"from {self.least} to {self.most}")
        elif self.least is not None:
            found.append(f"at least {self.least}")
        if self.multiple is not None:
            found.append(f"a multiple of {self.multiple}")
        if self.nullable:
            found.append("may be NULL")
        if self.unless is not None:
            found.append(f"may be NULL if {self.unless}")
        return "; ".join(found) + (f", if {self.condition}" if self.condition else "")


PARAMETER = re.compile(
    r"(?P<name>\w+)(?:\[(?P<shape>[^\]]*)\])?(?P<written>!?)(?P<nullable>\??)"
    r"(?:: (?:(?P<of>float|index|packed|scale|unset) )?"
    r"(?P<kind>\w+)(?P<also_written>!?)(?P<also_nullable>\??))?"
    r"(?: < (?P<below>\w+(?:\*\w+)*)(?: or (?P<ignored>\w+))?"
    r"| >= (?P<at_least>-?\d+)| in (?P<least>-?\d+)\.\.(?P<most>-?\d+))?"
    r"(?: % (?P<multiple>\w+))?"
    r"(?: if (?P<condition>\w+)| unless (?P<unless>\w+))?"
)
SIZE = re.compile(r"\w+[?+]?|\*|\.\.\.")


def _shape(text: str | None) -> tuple[tuple[str, ...] | None, bool]:
    """The sizes, and whether they are flat."""
    if text is None:
        return None, False
    flat = text.startswith("(") and text.endswith(")")
    sizes = tuple(filter(None, text.strip("()").split(",")))
    if not all(map(SIZE.fullmatch, sizes)) or len({"*", "..."} & set(sizes)) > 1:
        raise ValueError(f"not a shape: [{text}]")
    return sizes, flat


def parameter(text: str) -> Parameter:
    match = PARAMETER.fullmatch(text)
    if match is None:
        raise ValueError(f"not a parameter: {text}")
    kind = match["kind"] or "tensor"
    if kind not in KINDS:
        raise ValueError(
            f"parameter {text}: kinds must be one of {', '.join(KINDS)}, but got {kind}"
        )
    shape, flat = _shape(match["shape"])
    least, most = match["at_least"] or match["least"], match["most"]
    return Parameter(
        name=match["name"],
        kind=kind,
        written=bool(match["written"] or match["also_written"]),
        nullable=bool(match["nullable"] or match["also_nullable"]),
        shape=shape,
        flat=flat,
        of=match["of"] or "any",
        least=None if least is None else int(least),
        most=None if most is None else int(most),
        condition=match["condition"],
        unless=match["unless"],
        multiple=match["multiple"],
        below=match["below"],
        ignored=match["ignored"],
    )
