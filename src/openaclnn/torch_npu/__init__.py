# SPDX-License-Identifier: Apache-2.0
"""The published torch_npu wheel on the libraries of openaclnn: its environment and its operators."""
