# SPDX-License-Identifier: Apache-2.0
"""What every public function is, as data, and what follows from it. Standard library only."""
