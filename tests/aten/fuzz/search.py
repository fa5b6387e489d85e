# SPDX-License-Identifier: Apache-2.0
"""Finds accepted calls: begins with written ones, draws candidates, reads what refusals say, goes
on from new refusals.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable

from .library import Outcome, Signature
from .plausible import Draw
from .values import CODES, Call, List, T
from .written import calls

CANDIDATES = 1500
ENOUGH = 8
SHAPE = re.compile(r"(\w+)(?:\[\d+\])? must have (?:the )?shape \[([\d, ]*)\]")
DTYPE = re.compile(r"must have a dtype that ([\w:]+) can be cast to")
LENGTH = re.compile(r"(\w+) must have (\d+) elements")
MISSING = re.compile(r"(\w+) must not be NULL")
RANK = re.compile(r"(\w+) must have (\d+) dims, but has shape \[([\d, ]*)\]")
# Names of torch, as sentences have them.
TORCH = {
    "float": "float", "double": "double", "half": "half", "bfloat16": "bfloat16", "bool": "bool",
    "long": "int64", "int": "int32", "short": "int16", "char": "int8", "byte": "uint8",
    "complexfloat": "complex64", "complexdouble": "complex128",
}  # fmt: skip


def repaired(call: Call, sentence: str, signature: Signature, chance: random.Random) -> Call:
    """What the refusal asks for."""
    places = {p.name: i for i, p in enumerate(signature.parameters)}
    if found := LENGTH.search(sentence):
        i = places.get(found[1])
        if i is not None and isinstance(call.args[i], List):
            items = (*call.args[i].items, *[1] * 6)[: int(found[2])]
            return call.having(i, List(call.args[i].kind, items))
    for pattern in (MISSING, RANK):
        found = pattern.search(sentence)
        i = places.get(found[1]) if found else None
        if i is not None and signature.parameters[i].kind == "tensor":
            rank = int(found[2]) if pattern is RANK else chance.randrange(1, 5)
            return with_tensor(call, i, chance, shape=_sizes(call, rank, chance))
    written = [i for i, p in enumerate(signature.parameters) if p.written]
    if not written:
        return call
    if found := SHAPE.search(sentence):
        shape = tuple(int(x) for x in found[2].split(",") if x.strip())
        named = places.get(found[1]) if found[1] != "out" else None
        at = chance.choice(written) if named is None else named
        return with_tensor(call, at, chance, shape=shape)
    if found := DTYPE.search(sentence):
        dtype = CODES.get(TORCH.get(found[1].lower().removeprefix("torch."), "float"), 0)
        return with_tensor(call, chance.choice(written), chance, dtype=dtype)
    return call


def with_tensor(call: Call, i: int, chance: random.Random, shape=None, dtype=None) -> Call:
    def made(t: T | None) -> T:
        t = t if t is not None else T(())
        return T(
            t.shape if shape is None else shape, t.dtype if dtype is None else dtype,
            fill=t.fill, salt=t.salt,
        )  # fmt: skip

    value = call.args[i]
    if isinstance(value, List):
        items = list(value.items)
        if value.kind != "tensors" or not items:
            return call
        k = chance.randrange(len(items))
        items[k] = made(items[k])
        return call.having(i, List(value.kind, tuple(items)))
    return call.having(i, made(value)) if value is None or isinstance(value, T) else call


def _sizes(call: Call, rank: int, chance: random.Random) -> tuple[int, ...]:
    """Of tensors of the call, mostly."""
    seen = [n for a in call.args if isinstance(a, T) for n in a.shape] or [2]
    return tuple(chance.choice(seen) for _ in range(rank))


def crossed(a: Call, b: Call, chance: random.Random) -> Call:
    """a with one or two arguments of b."""
    for i in chance.sample(range(len(a.args)), min(len(a.args), chance.choice((1, 1, 2)))):
        a = a.having(i, b.args[i])
    return a


def search(
    signature: Signature, seed: str, perform: Callable[[int, Call], Outcome | None]
) -> list[Call]:
    """perform runs candidate number n; None: it is skipped."""
    chance = random.Random(f"search {seed} {signature.name}")
    accepted: dict[tuple, Call] = {}
    frontier: dict[str, Call] = {}  # refused, by sentence
    found = 0
    candidate: Call | None = None
    written = list(calls(signature))
    for n in range(CANDIDATES):
        if candidate is None and written:
            candidate = written.pop()
        elif candidate is None:
            candidate = Draw(signature, chance).call()
            if frontier and chance.random() < 0.4:
                candidate = crossed(chance.choice(list(frontier.values())), candidate, chance)
        tried, candidate = candidate, None
        outcome = perform(n, tried)
        if outcome is None:
            continue
        if outcome.accepted:
            kinds = tuple(map(_kind, tried.args))
            accepted.setdefault(kinds, tried)
            found += 1
            if len(accepted) >= ENOUGH or (found >= 4 * ENOUGH):
                break
            continue
        kind = re.sub(r"-?\d+(\.\d+)?", "0", outcome.sentence)
        is_new = kind not in frontier
        if is_new or chance.random() < 0.1:
            frontier[kind] = tried
        better = repaired(tried, outcome.sentence, signature, chance)
        if better != tried and (is_new or chance.random() < 0.8):
            candidate = better
    return list(accepted.values())


def _kind(value: object) -> object:
    """Accepted calls that differ in this are kept."""
    if isinstance(value, List):
        return (len(value.items), *map(_kind, value.items[:2]))
    return (value.dtype, len(value.shape)) if isinstance(value, T) else type(value)
