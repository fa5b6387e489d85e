// SPDX-License-Identifier: Apache-2.0
// The arrays of a plan, kept alive and watched for a change of memory since phase 1.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "arrays.h"

namespace openaclnn::python {

namespace nb = nanobind;

class WatchedArrays {
 public:
  void keep(KeepAlive keep_alive) {
    keep_alive_ = std::move(keep_alive);
  }  // includes all watched arrays

  // The base of a view is watched too, because NumPy resizes the base.
  void watch(const Array& array, const char* parameter);

  // The parameter whose array was resized or has other memory now; nullptr: none. Runs no Python
  // code.
  const char* moved() const;

  int traverse(visitproc visit, void* data) const;
  void clear();

 private:
  // Address of the first element, and the span of all elements.
  struct Extent {
    const void* data;
    int64_t count, reach;
    bool operator==(const Extent&) const = default;
  };
  struct OfNumpy {
    PyObject* array;
    const void* data;
    int64_t bytes;
    const char* parameter;
  };
  struct Other {
    Array array;
    Extent extent;
    const char* parameter;
  };
  static int64_t bytes_of(PyObject* array);
  static Extent extent_of(const Array& array);

  KeepAlive keep_alive_;
  std::vector<OfNumpy> numpy_;
  std::vector<Other> others_;
};

}  // namespace openaclnn::python
