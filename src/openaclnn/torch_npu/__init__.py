# SPDX-License-Identifier: Apache-2.0
"""The published torch_npu wheel on openaclnn's libraries: its environment and its operators."""
