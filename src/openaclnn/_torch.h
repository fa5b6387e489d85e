// SPDX-License-Identifier: Apache-2.0
// What torch wants to be asked and told about the tensors of a call beyond their memory.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "core/base/tensor.h"

namespace openaclnn::python {

namespace nb = nanobind;

// Raises AclnnError for a tensor whose gradient is being recorded, or whose memory is not its
// values.
void refuse_torch(nb::handle tensor, const char* op, const char* parameter);

// See empty_array.
nb::object empty_torch(nb::handle like, const Tensor& view, aclDataType dtype, const Dims& shape);

class TorchTensors {
 public:
  void watch(nb::handle tensor, void* data) { watched_.push_back({nb::borrow(tensor), data}); }
  void written(nb::handle tensor);

  // Whether one that is watched was given other storage since, as may happen at any time.
  bool moved() const;

  // That tensors were written, so that a backward pass that saved one of them fails.
  void tell_autograd() const;

 private:
  struct Watched {
    nb::object tensor;
    void* data;
  };
  std::vector<Watched> watched_;
  nb::object written_;  // a list, once there is something in it
};

}  // namespace openaclnn::python
