# SPDX-License-Identifier: Apache-2.0
"""`python -m openaclnn` is the `openaclnn` command."""

import sys

from .commands.cli import main

sys.exit(main())
