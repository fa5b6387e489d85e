# SPDX-License-Identifier: Apache-2.0
"""What meta tensors and symbolic sizes are refused for: the sentences of real tensors."""

from __future__ import annotations

import pytest
from tests.support import RULES, all_rows, rows
from tests.torch.test_errors import refused
from tests.torch.torch_support import PLAIN, arguments, call, operator, tensors, torch
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

o = torch.ops.openaclnn


@pytest.mark.parametrize("op", all_rows())
def test_meta_tensors_go_with_meta_tensors_only(op):
    inputs = tensors(op, "FLOAT")
    imagined = operator(op)(*arguments(op, [x.to("meta") for x in inputs]))
    imagined = imagined if isinstance(imagined, tuple) else (imagined,)
    for y, z in zip(imagined, call(op, inputs), strict=True):
        assert (y.shape, y.dtype, y.stride()) == (z.shape, z.dtype, z.stride())
        assert y.is_meta
    for i, p in enumerate(op.input_tensors[1:], 1):
        mixed = [x.to("meta") if k == i else x for k, x in enumerate(inputs)]
        first = op.input_tensors[0].python_name
        what = f"{p.python_name} must be on the device of {first}, cpu, but is on meta"
        assert refused(lambda mixed=mixed: call(op, mixed)) == f"{op.python}: {what}"


@pytest.mark.parametrize("op", all_rows(lambda op: not op.inplace))
def test_meta_outputs_go_with_meta_inputs_only(op):
    inputs = tensors(op, "FLOAT")
    names = [a.name for a in operator(op, "out")._schema.arguments if a.kwarg_only]
    outs = dict(zip(names, [x.to("meta") for x in call(op, inputs)], strict=True))
    message = refused(lambda: operator(op, "out")(*arguments(op, inputs), **outs))
    assert message.startswith(f"{op.python}: {names[0]} must be on the device of ")


@pytest.mark.parametrize("op", all_rows(lambda op: op.shapes == "named"))
def test_named_shapes_of_meta_tensors(op):
    """Ranks, sizes that differ and sizes that are no multiples are refused in the same words."""

    def compare(inputs, attributes=None):
        imagined = [x.to("meta") for x in inputs]
        found, early = (refused(lambda v=v: call(op, v, attributes)) for v in (inputs, imagined))
        assert early == found
        return early

    plain = tensors(op, "FLOAT")
    for i, p in enumerate(op.input_tensors):
        shape = plain[i].shape
        others = [()] if p.form.rest else [(), (shape[0] + 1, *shape[1:]), (*shape, 2)]
        others += [(*shape[:-1], shape[-1] + 1)] if p.form.rest and i > 0 else []
        others += [shape[::-1]] if p.form.flat else []
        for other in others:
            inputs = [torch.rand(other) if k == i else x for k, x in enumerate(plain)]
            assert compare(inputs).startswith(f"{op.python}: {p.python_name} must have ")
    wrong = {p.python_name: (0, 5) for p in op.attributes if p.name in op.multiples.values()}
    wrong |= {"swish_scale": (float("inf"),), "data_format": ("NHWC",)}
    for name, values in wrong.items():
        for value in values:
            early = compare(plain, PLAIN[op.name] | {name: value})
            assert early.startswith(f"{op.python}: {name} must ")


@pytest.mark.parametrize("op", rows(lambda op: op.rules))
def test_rules_of_meta_tensors(op):
    """A fake kernel accepted them, and a compiled program failed when it ran."""
    names = {p.name: p.python_name for p in op.attributes}
    for broken, sentence in (RULES[name] for name in op.rules):
        attributes = PLAIN[op.name] | {names[name]: value for name, value in broken.items()}
        inputs = [x.to("meta") for x in tensors(op, "FLOAT")]
        message = refused(lambda inputs=inputs, a=attributes: call(op, inputs, a))
        words = sentence.split()
        assert message == f"{op.python}: {' '.join(names.get(word, word) for word in words)}"


@pytest.mark.parametrize("op", all_rows(lambda op: not op.inplace))
def test_outputs_of_meta_tensors(op):
    """A wrong tensor for an output is refused before anything runs."""
    inputs = tensors(op, "FLOAT")
    names = [a.name for a in operator(op, "out")._schema.arguments if a.kwarg_only]
    outs = dict(zip(names, call(op, inputs), strict=True))
    outs[names[0]] = torch.empty(7, 3)

    def given(device):
        there = {name: x.to(device) for name, x in outs.items()}
        arrays = [x.to(device) for x in inputs]
        return refused(lambda: operator(op, "out")(*arguments(op, arrays), **there))

    assert given("meta") == given("cpu")
    assert given("cpu").startswith(f"{op.python}: {names[0]} must have the ")


@pytest.mark.parametrize("op", all_rows())
def test_symbolic_sizes(op):
    """A call of symbolic sizes is refused like the one that is traced."""
    mode = FakeTensorMode(shape_env=ShapeEnv())
    inputs = tensors(op, "FLOAT")

    def traced(values):
        return [mode.from_tensor(x, static_shapes=False) for x in values]

    def example(n):
        return n.node.hint if isinstance(n, torch.SymInt) else n

    expected = call(op, inputs)
    for y, z in zip(call(op, traced(inputs)), expected, strict=True):
        assert (y.dtype, [example(n) for n in y.shape]) == (z.dtype, [*z.shape])
    wrong = [x.repeat(*(3,) * x.dim()) if i else x for i, x in enumerate(inputs)]
    if op.shapes == "broadcast" or len(wrong) == 1:
        return
    sentence = refused(lambda: call(op, wrong))
    assert refused(lambda: call(op, traced(wrong))) == sentence


@pytest.mark.parametrize("op", all_rows())
def test_sizes_that_data_give(op):
    """Whatever can be seen without them is checked, also where a statistic is flat."""
    environment = ShapeEnv()
    whole = [x.shape for x in tensors(op, "FLOAT")]
    with FakeTensorMode(shape_env=environment):
        size = environment.create_unbacked_symint()
        inputs = [
            torch.empty(size, *shape[1:]) if shape[0] == whole[0][0] else torch.empty(shape)
            for shape in whole
        ]
        flat = [
            x.flatten() if p.form.flat else x for p, x in zip(op.input_tensors, inputs, strict=True)
        ]
        for values in (inputs, flat):
            found = call(op, values)
            assert found[0].shape == (size, *whole[0][1:])
            with pytest.raises(ValueError, match=rf"^{op.python}: \w+ must have dtype "):
                call(op, [x.to(torch.int32) for x in values])
        if not op.inplace:
            names = [a.name for a in operator(op, "out")._schema.arguments if a.kwarg_only]
            outs = dict(zip(names, found, strict=True))
            operator(op, "out")(*arguments(op, inputs), **outs)
