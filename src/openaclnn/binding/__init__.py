# SPDX-License-Identifier: Apache-2.0
"""The extension `_core`, and what it asks Python about tensors of torch."""
