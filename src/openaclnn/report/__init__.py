# SPDX-License-Identifier: Apache-2.0
"""Text, tables, charts and pages for people; nothing here knows an operator."""
