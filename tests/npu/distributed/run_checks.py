# SPDX-License-Identifier: Apache-2.0
"""Runs the checks of the modules that it is given, in each rank of a launch:
`run_checks.py collectives transfers`.
"""

import importlib
import sys

import ranks

for name in sys.argv[1:]:
    importlib.import_module(name)
ranks.run()
