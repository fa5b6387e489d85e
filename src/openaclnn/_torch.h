// SPDX-License-Identifier: Apache-2.0
// What torch wants to be asked and told about the tensors of a call beyond their memory.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "core/base/tensor.h"
#include "core/ops/operator.h"

namespace openaclnn::python {

namespace nb = nanobind;

// Raises AclnnError for a tensor whose gradient is being recorded.
void refuse_recorded(nb::handle tensor, const char* op, const char* parameter);

// Raises AclnnError for a tensor whose memory, seen as `view`, is not its values.
void refuse_lazy(nb::handle tensor, const Tensor& view, const char* op, const char* parameter);

// See empty_array.
nb::object empty_torch(nb::handle like, const Tensor& view, aclDataType dtype, const Dims& shape);

class TorchTensors {
 public:
  void watch(nb::handle tensor, void* data) { watched_.push_back({nb::borrow(tensor), data}); }
  void written(nb::handle tensor) { written_[count_++] = tensor; }

  // Whether one that is watched was given other storage since, as may happen at any time.
  bool moved() const;

  // That tensors were written, so that a backward pass that saved one of them fails.
  void tell_autograd();

 private:
  struct Watched {
    nb::object tensor;
    void* data;
  };
  std::vector<Watched> watched_;
  nb::handle written_[kMaxOutputs];
  int count_ = 0;
  nb::object told_;  // a tuple of them, once autograd was told
};

}  // namespace openaclnn::python
