# SPDX-License-Identifier: Apache-2.0
"""torch_npu's analyser of profiles, which may end before its last task.

CANNTimelineParser, a non-blocking task, looks every 0.1 s whether msprof has written a table, and
what draws the timeline depends on it. When only non-blocking tasks still run, the manager of tasks
sleeps 0.5 s and gives them up without reading what they sent meanwhile. A device's msprof works
for seconds after its first table; this one ends at once, so the timeline would be lost.
"""

from __future__ import annotations

import select
from types import ModuleType
from typing import Any

PATIENCE = 5000  # milliseconds for a task whose msprof has failed, and which never ends


def change(tasks: ModuleType) -> None:
    manager: Any = tasks.ConcurrentTasksManager
    listen = manager._ConcurrentTasksManager__listen

    def listen_to_all(self: Any) -> bool:
        running = self.listening_infos
        if running and all(info.task.is_non_blocking for info in running.values()):
            sent = select.poll()
            for fd in running:
                sent.register(fd, select.POLLIN)
            for fd, _ in sent.poll(PATIENCE):  # now the manager waits for the end of this task
                running[fd].task.mode &= ~tasks.ConcurrentMode.NON_BLOCKING
        return bool(listen(self))

    manager._ConcurrentTasksManager__listen = listen_to_all
