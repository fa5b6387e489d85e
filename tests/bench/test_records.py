# SPDX-License-Identifier: Apache-2.0
"""`openaclnn bench --compare`: two records row by row. Nothing is measured here."""

from __future__ import annotations

import json

import pytest

from openaclnn.bench import measure
from openaclnn.bench.compare_records import compare
from openaclnn.commands.cli import main


def run(words, capsys):
    status = main(["bench", *words])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def record(low, median, high, baseline=1.0, shape=(4,)):
    return {
        "op": "elu",
        "attributes": {},
        "rows": [
            {
                "dtype": "FLOAT",
                "shape": list(shape),
                "seconds": {"ours": {"low": low, "median": median, "high": high}},
                "ratios": {"ours": 1.0, "torch": baseline / median},
            }
        ],
    }


@pytest.mark.parametrize(
    ("new", "verdict", "faster"),
    [
        ((0.4, 0.5, 0.6), "faster", 2.0),
        ((1.9, 2.0, 2.1), "slower", 0.5),
        ((0.5, 0.5, 0.95), "same", 2.0),  # the quartiles meet
        ((1.0, 1.0, 1.0), "same", 1.0),
    ],
)
def test_verdicts(new, verdict, faster):
    (found,) = compare(record(0.9, 1.0, 1.1), record(*new))
    assert (found["verdict"], found["times_faster"]) == (verdict, faster)
    assert found["times_faster_beside"] == faster  # the baseline took as long as before


def test_a_slow_day_of_the_machine_is_seen_beside_the_baseline():
    (found,) = compare(record(0.9, 1.0, 1.1, baseline=1.0), record(1.9, 2.0, 2.1, baseline=2.0))
    assert (found["times_faster"], found["times_faster_beside"]) == (0.5, 1.0)


def test_compare_command(tmp_path, capsys):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    for path, median in ((old, 1.0), (new, 2.0)):
        data = record(median, median, median) | {"schema": measure.SCHEMA}
        path.write_text(json.dumps(data))
    status, out, _ = run(["--compare", str(old), str(new)], capsys)
    assert status == 1
    assert "slower" in out
    assert run(["--compare", str(new), str(old)], capsys)[0] == 0
    old.write_text(json.dumps(json.loads(old.read_text()) | {"about": {"load_average_before": 9}}))
    _, _, err = run(["--compare", str(new), str(old)], capsys)
    assert f"load average 9.0 in {old}: the machine is busy, distrust these times" in err
    status, out, err = run(["--compare", str(new), str(old), "--json", "-"], capsys)
    assert json.loads(out)["rows"][0]["verdict"] == "faster"
    assert "faster" in err


def test_records_of_different_things_are_not_compared():
    other = record(1, 1, 1) | {"attributes": {"alpha": 2.0}}
    with pytest.raises(ValueError, match="one operator with the same attributes"):
        compare(record(1, 1, 1), other)
    with pytest.raises(ValueError, match="no dtype and shape in common"):
        compare(record(1, 1, 1), record(1, 1, 1, shape=(5,)))
