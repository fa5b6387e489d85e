# SPDX-License-Identifier: Apache-2.0
"""`openaclnn.compare`: compares what a kernel computed with what it should have computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..plan import find
from ..rows.schema import Op
from ..rows.suggestions import did_you_mean, near
from .arrays import Array
from .comparison import Compared, Comparison, Element
from .dtypes import array_of, as_dtype, dtype_of
from .evaluation import CANONICAL_NAN, refused
from .formulas import ROUNDED
from .judge import Output, outputs, wide
from .patterns import common
from .standards import chosen
from .verdicts import Verdict, judged

# The distances that are counted together, by their upper end in ULP. ROUNDED: as near as rounding
# can come, so that only what is beyond it is a misrounded value.
EDGES = (0.0, ROUNDED, 1.0, 2.0, 4.0, 16.0, 64.0, 256.0, 1024.0)
LABELS = ("exact", "rounded", *(f"<= {edge:g}" for edge in EDGES[2:]), "> 1024", "special")


def compare(
    mine: Any,
    name: str,
    /,
    *arguments: Any,
    standard: str | None = None,
    ulp: float | None = None,
    level: str | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    benchmark: Any = None,
    dtype: Any = None,
    worst: int = 5,
    **named: Any,
) -> Comparison:
    """Compares `mine`, the results of a kernel, with those of the operator `name`.

        x = np.linspace(-4, 4, 1000, dtype=np.float16)
        print(openaclnn.compare(my_elu(x), "elu", x, alpha=1.5))
        assert openaclnn.compare(my_elu(x), "elu", x, alpha=1.5)

    After the name come the inputs and attributes of the operator's Python function. `mine` is an
    array, or a tuple for several outputs; the input of an in-place operator is what it was before.
    `standard` is "ours" (the default; with `ulp` as the limit, if given), "float" (what computing
    in FLOAT allows), "single", "double" (with `benchmark`, what another implementation got, and
    `level`), "either" of these two, "allclose" (with `rtol` and `atol`), or "peer" (with
    `benchmark`, from which results may be `ulp` away, 0 by default). An option of another
    standard is refused.
    A function that ATen computes ("aclnnSoftmax") takes the arguments of its C function without
    the outputs. It is judged against the same function in float64, by "single" or, where that
    fails, "double" with what openaclnn computes as benchmark; integers are equal.
    `dtype` says what raw bits are, and what `mine` would be if its array were not wider.
    """
    if isinstance(mine, str):
        raise TypeError(f"compare takes the results before the name: compare(mine, {mine!r}, …)")
    _, op = find(name, "compare")
    judged_by = chosen(
        "ours", standard=standard, ulp=ulp, level=level, rtol=rtol, atol=atol,
        benchmark=benchmark is not None,
    )  # fmt: skip
    check_worst(worst)
    kind = None if dtype is None else dtype_of(dtype)
    given = _bound(op, arguments, named)
    inputs = [array_of(given[p.python_name], p.python_name, kind) for p in op.input_tensors]
    attributes = {p.python_name: given[p.python_name] for p in op.attributes}
    if (why := refused(op, [x.shape for x in inputs], attributes)) is not None:
        raise ValueError(why)
    got = _results(op, mine, "mine", kind)
    others = [None] * len(got) if benchmark is None else _results(op, benchmark, "benchmark", kind)
    by_name = dict(zip((p.result_name for p in op.outputs), others, strict=True))
    every = [
        judged(output, judged_by, by_name[output.name])
        for output in outputs(op, inputs, attributes, got, some=True)
    ]
    failing = [output.name for output, verdict in every if not verdict.passed]
    found = tuple(compared(*one, worst, failing) for one in every)
    return Comparison(op, attributes, judged_by, found)


def check_worst(worst: Any) -> None:
    if isinstance(worst, bool) or not isinstance(worst, int) or worst < 0:
        raise ValueError(f"worst must be a number of elements, but got {worst!r}")


def _bound(op: Op, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Inputs and attributes by Python name, as the operator's function takes them."""
    taken = [p for p in op.parameters if p.role != "output"]
    names = [p.python_name for p in taken]
    takes = f"compare: {op.python} takes {', '.join(names)}"
    if len(arguments) > len(taken):
        raise TypeError(f"{takes}, but got {len(arguments)} arguments")
    given = dict(zip(names, arguments, strict=False))
    for key, value in named.items():
        if key not in names:
            hint = did_you_mean(near(key, names))
            raise TypeError(f"{takes}, but got {key!r}{hint}")
        if key in given:
            raise TypeError(f"{takes}, but got {key!r} twice")
        given[key] = value
    given |= {
        p.python_name: p.default for p in taken if p.has_default and p.python_name not in given
    }
    for p in op.input_tensors:  # a number here is the attribute that follows a forgotten input
        value = given.get(p.python_name)
        if isinstance(value, int | float | np.generic):
            raise TypeError(
                f"{takes}; {p.python_name} must be an array or a tensor, but is the number "
                f"{value}: is {p.python_name} missing?"
            )
    missing = [key for key in names if key not in given]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise TypeError(f"{takes}, but {' and '.join(missing)} {verb} missing")
    for p in op.attributes:
        value = given[p.python_name]
        if hasattr(value, "shape") and not isinstance(value, np.generic):
            raise TypeError(
                f"{takes}; {p.python_name} must be a number, but is an array of shape "
                f"{list(value.shape)}: is an attribute missing before it?"
            )
        number = isinstance(value, int | float | bool | np.generic)
        if not (number or (p.kind == "text" and (value is None or isinstance(value, str)))):
            raise TypeError(f"compare: {p.python_name} must be a number, but got {value!r}")
        if isinstance(value, np.generic):
            given[p.python_name] = value.item()
    return given


def _results(op: Op, given: Any, who: str, dtype: str | None) -> list[Array | None]:
    """An array for each output; in the dtype asked for, when their array is a wider one."""
    names = [p.result_name for p in op.outputs]
    several = list(given) if isinstance(given, tuple | list) and len(names) > 1 else [given]
    if len(several) != len(names):
        arrays = "1 array" if len(several) == 1 else f"{len(several)} arrays"
        raise TypeError(
            f"{who} must be a tuple ({', '.join(names)}), but has {arrays}; None is not judged"
        )
    found: list[Array | None] = []
    for p, x in zip(op.outputs, several, strict=True):
        name = who if len(names) == 1 else f"{who}, {p.result_name},"
        array = None if x is None else array_of(x, name, dtype)
        if array is not None and dtype is not None and not p.companion:
            array = as_dtype(array, dtype, name)
        found.append(array)
    if all(array is None for array in found):
        raise TypeError(f"{' or '.join(names)} must be an array or a tensor, but got None")
    return found


def compared(output: Output, found: Verdict, worst: int, failing: Sequence[str] = ()) -> Compared:
    """`failing`: the outputs that are wrong."""
    return Compared(
        output,
        found,
        histogram(output.ulp),
        {kind: n for kind, where in output.special.items() if (n := int(np.count_nonzero(where)))},
        worst_elements(output, found, worst),
        common(output, found.wrong, failing),
    )


def histogram(ulp: Array) -> dict[str, int]:
    """How many elements are this far off; "special": NaN, infinity or sign is not what is due."""
    flat = ulp.reshape(-1)
    places = np.where(np.isinf(flat), len(EDGES) + 1, np.searchsorted(EDGES, flat, side="left"))
    counts = np.bincount(places, minlength=len(LABELS))
    return {label: int(n) for label, n in zip(LABELS, counts, strict=True) if n}


def worst_elements(output: Output, found: Verdict, count: int) -> tuple[Element, ...]:
    """Those that fail before others, then the farthest off; the first of equals."""
    far = output.of_promise.reshape(-1)  # long double may hold what no double does
    flat = output.ulp.reshape(-1)
    order = np.lexsort((-flat, -far, ~found.wrong.reshape(-1)))[:count]
    return tuple(element_at(output, int(i)) for i in order if flat[i] > 0)


def element_at(output: Output, position: int) -> Element:
    index = tuple(int(i) for i in np.unravel_index(position, output.got.shape))
    inputs = {}
    if output.terms is None:  # a sum has too many
        for p, x in zip(output.op.input_tensors, output.inputs, strict=True):
            value = np.broadcast_to(x, output.got.shape)[index]
            inputs[p.python_name] = shown(value)
    return Element(
        index,
        inputs,
        float(output.expected[index]),
        _due(output, index),
        shown(output.got[index]),
        float(output.ulp[index]),
    )


def _due(output: Output, index: tuple[int, ...]) -> tuple[float, str]:
    """Any NaN is right where one is due; the bits are those that openaclnn makes."""
    value, bits = shown(output.nearest[index])
    if value != value:
        bits = f"0x{CANONICAL_NAN[output.dtype]:0{len(bits) - 2}x}"
    return value, bits


def shown(value: Any) -> tuple[float, str]:
    """A number and its bits in hexadecimal."""
    array = np.asarray(value)
    bits = int(array.view(f"u{array.dtype.itemsize}"))
    return float(wide(array)), f"0x{bits:0{2 * array.dtype.itemsize}x}"
