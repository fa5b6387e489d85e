# SPDX-License-Identifier: Apache-2.0
"""Every row of the table: against the prototype in the headers, and with wrong arguments."""

from __future__ import annotations

import ctypes
import re

import pytest
from tests.pyacl.pyacl_support import FOLDER, acl, call

import openaclnn

ROWS = call.rows()
# How the headers spell what a kind passes; any other name is an enumeration, an int.
C_TYPES = {
    "uint8_t": "byte", "aclFloat16": "ushort", "int": "int", "int32_t": "int", "aclError": "ret",
    "uint32_t": "uint", "int64_t": "long", "uint64_t": "ulong", "size_t": "size", "float": "float",
    "char*": "text", "void": "none", "aclrtStream": "ptr", "aclrtEvent": "ptr",
    "aclrtContext": "ptr", "aclrtCallback": "ptr", "aclrtExceptionInfoCallback": "ptr",
    "aclmdlIODims*": "dims", "aclrtPtrAttributes*": "location",
}  # fmt: skip
LISTS = {
    "uint8_t*": "bytes", "int64_t*": "longs", "float*": "floats", "char**": "texts",
    "int*": "ints", "int64_t**": "ptrs", "aclTensorDesc**": "ptrs", "aclDataBuffer**": "ptrs",
    "int64_t[][2]": "pairs",
}  # fmt: skip


def prototypes():
    """C functions: what they return, and the types of their parameters."""
    found = {}
    for header in (openaclnn.home() / "include" / "acl").rglob("*.h"):
        text = re.sub(r"//.*|^ *#.*", "", header.read_text(encoding="utf-8"), flags=re.M)
        for result, name, words in re.findall(
            r"ACL_FUNC_VISIBILITY\s+([\w* ]+?)\s*\b(acl\w+)\(([^;]*?)\);", text
        ):
            found[name] = (spelled(result), [spelled(w, named=True) for w in words.split(",")])
    return found


def spelled(text, *, named=False):
    """The type, without const, spaces and the name of the parameter."""
    text = re.sub(r"\bconst\b", " ", text.replace("ACL_TENSOR_SHAPE_RANGE_NUM", "2"))
    if named and text.strip() != "void":
        text = re.sub(r"\w+\s*((\[\w*\])*)\s*$", r"\1", text)
    return "".join(text.split())


def kind_of(spelling):
    if spelling in C_TYPES:
        return C_TYPES[spelling]
    return "ptr" if spelling.endswith("*") else "int"


def is_kind(parameter, spelling):
    kind = next(name for name, known in call.KINDS.items() if known is parameter.kind)
    if parameter.role in (">", ">>"):
        if kind in ("pair", "dims", "location"):
            return spelling in ("int64_t*", "aclmdlIODims*", "aclrtPtrAttributes*")
        return spelling.endswith("*") and kind_of(spelling.removesuffix("*")) == kind
    if parameter.kind.is_list:
        return LISTS[spelling] == kind
    if parameter.role == "#":
        return spelling in ("int", "size_t")
    return kind_of(spelling) == kind


def test_rows_pass_what_the_headers_declare():
    declared = prototypes()
    wrong = []
    for row in ROWS:
        result, parameters = declared[row.function]
        given = [] if parameters == ["void"] else parameters
        if len(given) != len(row.parameters) or kind_of(result) != row.result:
            wrong.append(f"{row.name}: {result} {given}")
            continue
        wrong += [
            f"{row.name}: {parameter.name} {spelling}"
            for parameter, spelling in zip(row.parameters, given, strict=True)
            if not is_kind(parameter, spelling)
        ]
    assert wrong == []
    assert len(ROWS) > 150


def arguments(row):
    return [p for p in row.parameters if p.role in ("", "+")]


def valid(kind):
    return [] if kind.is_list else "" if kind.ctype is ctypes.c_char_p else 0


CASES = [(row, i) for row in ROWS for i in range(len(arguments(row)))]


@pytest.mark.parametrize("wrong", [None, object(), b"a", 0.5, "a", 1 << 64, -(1 << 64)])
def test_a_wrong_argument_is_an_exception_that_names_it(wrong):
    tried = 0
    for row, place in CASES:
        parameters = arguments(row)
        kind = parameters[place].kind
        fits = (kind.ctype is ctypes.c_char_p and isinstance(wrong, str)) or (
            kind.ctype is ctypes.c_float and isinstance(wrong, float | int)
        )
        if fits:
            continue
        given = [valid(p.kind) for p in parameters]
        given[place] = wrong
        expected = f"^acl.{row.name}: {parameters[place].name} must "
        with pytest.raises((TypeError, ValueError), match=expected):
            call.ALL[row.name](*given)
        tried += 1
    assert tried > 200


def test_a_wrong_item_of_a_list_is_an_exception():
    for row, place in CASES:
        parameters = arguments(row)
        if parameters[place].kind.is_list:
            given = [valid(p.kind) for p in parameters]
            given[place] = [object()]
            with pytest.raises(TypeError, match=f"^acl.{row.name}: {parameters[place].name} must"):
                call.ALL[row.name](*given)


def test_a_wrong_number_of_arguments_is_an_exception():
    for row in ROWS:
        parameters = arguments(row)
        for given in ([0] * (len(parameters) + 1), [0] * (len(parameters) - 1)):
            if len(given) > len(parameters) or not any(p.optional for p in parameters):
                expected = rf"^acl.{row.name}\(.*\) takes {len(parameters)} arguments, got"
                with pytest.raises(TypeError, match=expected):
                    call.ALL[row.name](*given, *[0] * (not parameters and not given))


def test_lists_that_belong_together_have_one_length():
    with pytest.raises(ValueError, match=r"execute_v2: inputs must have 1 items, but got 2"):
        acl.op.execute_v2("Identity", [1], [1, 2], [], [], 0, 0)


# Calls that end what other tests use, and the default stream, which 0 stands for.
ENDING = re.compile(r"init|finalize|rt\.(reset_device|destroy_context|stream_abort|_).*")
# Values with narrow types, and amounts of memory that the address would have to have.
SMALL = ("value", "truncate", "count", "width", "size", "length")


@pytest.mark.parametrize("number", [0, 1, 0x7FFFFFFF])
def test_no_number_ends_the_process(number):
    """Handles, addresses and indices that nobody made: a status, or nothing found."""
    for row in ROWS:
        if ENDING.fullmatch(row.name):
            continue
        given = [0 if p.name in SMALL else number for p in arguments(row)]
        for place, parameter in enumerate(arguments(row)):
            if valid(parameter.kind) != 0:
                given[place] = valid(parameter.kind)
        call.ALL[row.name](*given)
    acl.rt.set_device(0)


def test_every_function_is_where_its_name_says():
    for row in ROWS:
        module, _, name = row.name.rpartition(".")
        if not name.startswith("_"):
            owner = getattr(acl, module) if module else acl
            assert getattr(owner, name).__name__ == name
            assert f"acl.{row.name}(" in getattr(owner, name).__doc__
    from acl.rt import memcpy

    assert memcpy is acl.rt.memcpy
    assert not FOLDER.joinpath("openaclnn").exists()
