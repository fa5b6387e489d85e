# SPDX-License-Identifier: Apache-2.0
"""acl.media: the media hardware of an NPU, which a CPU lacks. Every function raises
NotImplementedError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from .absent import absent


def __getattr__(name: str) -> Callable[..., NoReturn]:
    if not name.startswith(("dvpp_", "vdec_", "venc_")):
        raise AttributeError(f"module 'acl.media' has no attribute {name!r}")
    return absent(
        f"media.{name}", "images and videos need the media hardware of an NPU; decode on the host"
    )
