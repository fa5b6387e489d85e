// SPDX-License-Identifier: Apache-2.0
// What torch wants to be asked and told about the tensors of a call beyond their memory.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

namespace openaclnn::python {

namespace nb = nanobind;

class TorchTensors {
 public:
  void add(nb::handle tensor, void* data, bool written);

  // Whether one was given other storage since it was added, as may happen at any time.
  bool moved() const;

  // That tensors were written, so that a backward pass that saved one of them fails.
  void tell_autograd() const;

 private:
  struct Tensor {
    nb::object object;
    void* data;
  };
  std::vector<Tensor> tensors_;
  nb::object written_;  // a list, once there is something in it
};

}  // namespace openaclnn::python
