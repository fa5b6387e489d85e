# SPDX-License-Identifier: Apache-2.0
"""How fast an operator is beside a baseline and beside a copy: what `openaclnn bench` and the
repository's benchmarks measure with."""
