# SPDX-License-Identifier: Apache-2.0
"""`openaclnn demo`: every operator on revealing inputs, as text and as a page."""
