# SPDX-License-Identifier: Apache-2.0
"""What kernels should compute, and how far results are from it."""
