# SPDX-License-Identifier: Apache-2.0
"""The child process of `openaclnn verify`; __main__.py says what it is."""
