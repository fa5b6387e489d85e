# SPDX-License-Identifier: Apache-2.0
"""The one exception of the package."""

from __future__ import annotations

NAMES = {
    161001: "ACLNN_ERR_PARAM_NULLPTR",
    161002: "ACLNN_ERR_PARAM_INVALID",
    361001: "ACLNN_ERR_RUNTIME_ERROR",
    561003: "ACLNN_ERR_INNER_FIND_KERNEL_ERROR",
    561101: "ACLNN_ERR_INNER_CREATE_EXECUTOR",
}


class AclnnError(ValueError):
    """A refused call: `str(error)` is the sentence, `status` the code, `name` its C name.

    >>> try: openaclnn.leaky_relu(x, out=y)
    ... except openaclnn.AclnnError as error: print(error.status, error.name, error)
    """

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status

    @property
    def name(self) -> str:
        return NAMES.get(self.status, f"ACL_ERROR_{self.status}")

    def __reduce__(self) -> tuple[type[AclnnError], tuple[int, str]]:
        return AclnnError, (self.status, str(self))
