# SPDX-License-Identifier: Apache-2.0
"""Golden values of the functions that ATen computes: the same function on inputs in DOUBLE.

arguments.py   the arguments of a C function from Python    calling.py   a call of it, in a child
values.py      golden and benchmark of a call               judging.py   results against both
compare.py     `openaclnn.compare`                          samples.py   calls from calls/*.txt
cases.py       cases of `openaclnn verify`                  running.py   who computes them
"""
