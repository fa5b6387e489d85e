// SPDX-License-Identifier: Apache-2.0
// The C interface of NumPy, whose table of functions arrays.cpp fills for all.
#pragma once

#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL openaclnn_numpy
#ifndef OPENACLNN_FILLS_NUMPY_TABLE
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
