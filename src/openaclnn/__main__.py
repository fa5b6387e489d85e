# SPDX-License-Identifier: Apache-2.0
"""`python -m openaclnn` is the `openaclnn` command."""

import sys

from .cli import main

sys.exit(main())
