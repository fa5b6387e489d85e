# SPDX-License-Identifier: Apache-2.0
"""What was found as JUnit XML."""

from __future__ import annotations

from xml.etree import ElementTree

from .report import Report, explanation
from .runner import FAILED, LEFT_OUT


def junit(report: Report) -> str:
    """A test suite for each provider and operator in a dtype, a test case for each case."""
    top = ElementTree.Element("testsuites", name="openaclnn verify")
    for op, dtype, provider, results in report.groups():
        suite = ElementTree.SubElement(top, "testsuite", name=f"{provider}.{op}.{dtype}")
        counted = {"failures": FAILED, "skipped": LEFT_OUT}
        suite.set("tests", str(len(results)))
        for name, status in counted.items():
            suite.set(name, str(sum(r.status == status for r in results)))
        for r in results:
            case = ElementTree.SubElement(suite, "testcase", name=r.case.id)
            case.set("classname", f"{provider}.{op}.{dtype}")
            case.set("time", f"{r.seconds:.6f}")
            if r.status == FAILED:
                failure = ElementTree.SubElement(case, "failure", type=r.kind)
                failure.set("message", _printable(r.message))
                lines = [r.case.text(), explanation(r), report.command(r)]
                failure.text = _printable("\n".join(filter(None, lines)))
            elif r.status == LEFT_OUT:
                ElementTree.SubElement(case, "skipped", message=_printable(r.sentence))
    ElementTree.indent(top)
    return ElementTree.tostring(top, encoding="unicode", xml_declaration=True) + "\n"


def _printable(text: str) -> str:
    """Without what XML cannot hold: a library may write anything."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
