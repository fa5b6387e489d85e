// SPDX-License-Identifier: Apache-2.0
// Plans and streams as Python objects: one class for every operator.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "arrays.h"
#include "core/base/executor.h"
#include "core/ops/operator.h"

namespace openaclnn::python {

namespace nb = nanobind;

inline void check(Status status) {
  if (!status.ok()) raise_status(status);
}

inline const Operator& operator_at(long index) {
  if (index < 0 || index >= operator_count) throw nb::index_error("no such operator");
  return *operators[index];
}

class Workspace {
 public:
  explicit Workspace(size_t bytes = 0)
      : data_(bytes == 0 ? nullptr : std::aligned_alloc(kWorkspaceAlignment, bytes)) {
    if (bytes != 0 && data_ == nullptr) throw std::bad_alloc();
  }
  void* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  std::unique_ptr<void, Free> data_;
};

// Adds the classes Stream and Plan.
void define_plans(nb::module_& m);

}  // namespace openaclnn::python
