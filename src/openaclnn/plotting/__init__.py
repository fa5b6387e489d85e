# SPDX-License-Identifier: Apache-2.0
"""The curve of an operator, its derivative and its error: drawn as text or picture."""
