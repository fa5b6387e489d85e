# SPDX-License-Identifier: Apache-2.0
"""Functions of the runtime (acl, hccl), as the installed headers declare them."""

from __future__ import annotations

import json
import textwrap
from functools import cache

from ..report.text_table import Paint
from ..rows.headers import Declaration, declarations, texts
from ..rows.suggestions import near
from ..settings import home


@cache
def functions() -> dict[str, Declaration]:
    return {
        own.name: own
        for path, text in texts(home() / "include").items()
        if path.startswith(("acl/", "aclnn/", "hccl/"))
        for own in declarations(path, text)
    }


def nearest(name: str) -> str | None:
    return near(name, functions(), cutoff=0.8)


def as_json(own: Declaration) -> str:
    data = {
        "name": own.name,
        "header": own.header,
        "prototype": own.prototype,
        "about": own.about,
    }
    return json.dumps(data, indent=2)


def _wrapped(own: Declaration) -> str:
    return textwrap.fill(own.prototype, 92, subsequent_indent="    ")


def section(own: Declaration) -> str:
    """As Markdown."""
    about = f"{own.about}\n\n" if own.about else ""
    code = f'```c\n#include "{own.header}"\n{_wrapped(own)};\n```\n'
    return f"## {own.name}\n\nOf the runtime. {about}".rstrip() + f"\n\n{code}"


def show(own: Declaration, paint: Paint) -> None:
    print(f"{paint(own.name, 'bold', 'cyan')}, of the runtime\n")
    if own.about:
        print(textwrap.fill(own.about, 92) + "\n")
    print(f'    #include "{own.header}"')
    print(textwrap.indent(_wrapped(own), "    "))
    print("\nWhat it does here:  openaclnn docs runtime")
