# SPDX-License-Identifier: Apache-2.0
"""What the command line reads and prints, a file for each command."""
