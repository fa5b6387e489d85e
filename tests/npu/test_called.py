# SPDX-License-Identifier: Apache-2.0
"""The functions torch_npu.npu_* that the code of models calls most: the device computes 50."""

from __future__ import annotations

from tests.npu import called


def test_at_least_50_of_the_most_called_functions_are_compared_by_value():
    rows = called.most()
    assert len(rows) == called.MOST
    assert sum(bool(test) for _, _, test in rows) >= 50
    assert {name for name, _, test in rows if not test} == called.NEWER & dict(
        called.counts()
    ).keys()


def test_the_table_is_that_of_the_counts_and_the_tests():
    text = called.PAGE.read_text(encoding="utf-8")
    assert called.page(text) == text, "run: python -m tests.npu.called"
