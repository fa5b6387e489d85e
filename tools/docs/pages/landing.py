# SPDX-License-Identifier: Apache-2.0
"""What the front pages of the site have beyond the READMEs: the four doors as cards."""

from __future__ import annotations

import re

# By page: title of a door, what is behind it, and the page.
DOORS = {
    "index.md": (
        ("Train with PyTorch", "GroupNorm and SiLU as one operator: exact, with less memory.",
         "tutorials/train_a_unet.html"),
        ("Run torch_npu code", 'device="npu" on any machine, your tests in CI.',
         "tutorials/npu_ci.html"),
        ("Port C and C++", "Build, run and debug programs that call aclnn.",
         "tutorials/porting.html"),
        ("Judge a kernel", "A golden reference that says which cases fail, and why.",
         "tutorials/own_kernel.html"),
    ),
    "zh.md": (
        ("用 PyTorch 训练", "GroupNorm 和 SiLU 合并为一个算子：精确、省内存。",
         "tutorials/train_a_unet.zh-CN.html"),
        ("运行 torch_npu 代码", '在任何机器上使用 device="npu"，在 CI 中运行测试。',
         "tutorials/npu_ci.zh-CN.html"),
        ("移植 C/C++ 程序", "编译、运行和调试调用 aclnn 的程序。",
         "tutorials/porting.zh-CN.html"),
        ("检验 kernel", "对照标准答案，指出哪些用例失败以及原因。",
         "tutorials/own_kernel.zh-CN.html"),
    ),
}  # fmt: skip


def with_doors(markdown: str, page: str) -> str:
    """The cards follow the title and the first paragraph."""
    cards = "".join(
        f'<a class="door" href="{link}"><strong>{title}</strong><span>{text}</span></a>\n'
        for title, text, link in DOORS[page]
    )
    first = re.match(r"# .*\n\n.*\n\n", markdown)
    assert first is not None, f"{page} must begin with a title and a paragraph"
    return f'{first[0]}<div class="doors">\n{cards}</div>\n\n{markdown[first.end() :]}'
