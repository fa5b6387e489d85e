# SPDX-License-Identifier: Apache-2.0
"""`openaclnn home --aten`: an installation directory whose libraries have, beside openaclnn's own
operators, those that ATen computes. It lies in the cache and consists of links: to what openaclnn
installed, to PyTorch's libraries, and to the library that was compiled for them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from ..compiled import BuildError
from ..settings import home
from .installed import torch as installed_torch
from .library import library

NO_TORCH = "PyTorch is not installed; install it with: pip install torch"


def _link(place: Path, target: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def _headers(root: Path) -> list[str]:
    """The folders of headers."""
    return sorted(path.name for path in (root / "include").iterdir())


def _fill(folder: Path, torch: Path, library: Path) -> None:
    """Files that look for their own place are copied, because links would lead away from it."""
    root = home()
    for name in _headers(root):
        if name != "aclnnop":
            _link(folder / "include" / name, root / "include" / name)
    _link(folder / "include" / "aclnnop", root / "aten" / "aclnnop")
    together = root / "lib64" / "aten"
    for source, place in ((together, "lib64"), (together / "trace", "lib64/trace")):
        for file in source.glob("*.so"):
            _link(folder / place / file.name, file)
    for source, place in ((root / "lib64", "lib64"), (root / "lib64/trace", "lib64/trace")):
        for file in source.glob("*.so"):
            if not (folder / place / file.name).is_symlink():
                _link(folder / place / file.name, file)
    _link(folder / "lib64" / "torch", torch / "lib")
    _link(folder / "lib64" / library.name, library)
    _link(folder / "opp", root / "opp")
    _link(folder / "share" / "docs", root / "share" / "docs")
    for name in ("set_env.sh", "bin/setenv.bash", "bin/npu-smi"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(root / name, folder / name)
    for name in ("cmake", "pkgconfig"):
        shutil.copytree(root / "share" / name, folder / "share" / name)


@cache
def directory() -> Path:
    """The directory, made now if it is not there. BuildError says why not."""
    torch = installed_torch()
    if torch is None:
        raise BuildError(NO_TORCH)
    built = library().build()
    root = home()
    texts = [*sorted((root / "share" / "cmake").rglob("*.cmake")), root / "set_env.sh"]
    listed = sorted(path.name for path in (root / "lib64").rglob("*.so"))
    facts = [
        str(root),
        str(torch.folder),
        *listed,
        *_headers(root),
        *(text.read_text() for text in texts),
    ]
    digest = hashlib.sha256("\0".join(facts).encode()).hexdigest()[:8]
    made = built.parent / f"home-{digest}"
    if made.is_dir():
        return made
    try:
        with tempfile.TemporaryDirectory(dir=made.parent, prefix="home-") as folder:
            _fill(Path(folder) / "home", torch.folder, built)
            os.rename(Path(folder) / "home", made)  # at once: nobody sees half a directory
    except OSError as error:
        if not made.is_dir():  # somebody else made it meanwhile
            raise BuildError(f"the cache {made.parent} cannot be written: {error}") from None
    return made
