# SPDX-License-Identifier: Apache-2.0
"""What was found, as data for programs: `openaclnn verify --json`."""

from __future__ import annotations

import os
import platform
from typing import Any

import numpy as np

from ..reference.comparison import element_data, number
from ..settings import config
from .finding import Finding
from .report import Report
from .runner import FAILED, LEFT_OUT, PASSED, Result


def environment() -> dict[str, Any]:
    now = config()
    return {
        "openaclnn": now["version"],
        "product": now["product"],
        "kernels": now["kernels"],
        "threads": now["threads"],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
    }


def _result_data(report: Report, r: Result) -> dict[str, Any]:
    data: dict[str, Any] = {"id": r.case.id, "provider": r.provider, "status": r.status}
    if r.status == PASSED:
        return data | {"error": number(r.error), "unit": r.unit}
    data["sentence"] = r.message
    if r.status == FAILED:
        data |= {
            "kind": r.kind,
            "error": number(r.error),
            "unit": r.unit,
            "worst": [element_data(element) for element in r.worst],
            "causes": [
                {"defect": c.defect.number, "title": c.defect.title, "elements": c.elements}
                for c in r.causes
            ],
            "unexplained": r.unexplained,
            "case": r.case.as_data(),
            "command": report.command(r),
        }
    return data


def _such_cases(found: Finding) -> dict[str, int] | None:
    """None where the cause is one of elements, not of cases."""
    return {"failed": len(found.results), "all": found.such} if found.such else None


def _finding_data(report: Report, provider: str, op: str, found: Finding) -> dict[str, Any]:
    return {
        "provider": provider,
        "operator": op,
        "kind": found.kind,
        "cause": found.cause,
        "such_cases": _such_cases(found),
        "dtypes": found.dtypes,
        "cases": [r.case.id for r in found.results],
        "example": found.example.case.id,
        "command": report.command(found.example),
    }


def as_data(report: Report) -> dict[str, Any]:
    counts = [
        {
            "operator": op,
            "dtype": dtype,
            "provider": provider,
            **{status: sum(r.status == status for r in rs) for status in (PASSED, FAILED)},
            "left_out": sum(r.status == LEFT_OUT for r in rs),
            "worst": number(max((r.error for r in rs), default=0.0)),
            "unit": next((r.unit for r in rs if r.unit), ""),
        }
        for op, dtype, provider, rs in report.groups()
    ]
    return {
        "schema": "openaclnn-verify-1",
        "seed": report.seed,
        "standard": report.standard.name,
        "passed": not report.failed and report.compared > 0,
        "seconds": round(report.seconds, 3),
        "environment": environment(),
        "summary": counts,
        "findings": [
            _finding_data(report, provider, op, found)
            for provider, op in report.failing
            for found in report.findings(provider, op)
        ],
        "results": [_result_data(report, r) for r in report.results],
    }
