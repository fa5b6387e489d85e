# SPDX-License-Identifier: Apache-2.0
"""`openaclnn verify`: cases from the rows, put to anything that computes them, and judged.

cases.py      a case, and how it is written down      generate.py, values.py  cases from the rows
provider_names.py  what computes cases           torch_provider.py       eager PyTorch
runner.py     cases against providers               library.py, worker/     a library, in a child
child.py      the child process                     python_provider.py      a function, in a child
sample.py     some elements of each result          findings.py             findings by cause
evidence.py   what elements and cases have          rules.py, steps.py, causes.py  the causes
condition.py, conditions.py, case_conditions.py     what may set cases apart
wording.py    a cause in words                      request.py              what the child gets
report.py, report_data.py  what people and programs read
"""
