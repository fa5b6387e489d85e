// SPDX-License-Identifier: Apache-2.0
// Checks of a call's torch tensors beyond their memory, and reports to autograd. torch_refusals.py
// knows the kinds that cannot be used and their sentences; the fast checks here select the few
// tensors for which it is asked.
#pragma once

#include <nanobind/nanobind.h>

#include "arrays.h"
#include "core/base/tensor.h"
#include "core/ops/operator.h"

namespace openaclnn::python {

namespace nb = nanobind;

// Raises AclnnError if torch_refusals.py knows why the tensor cannot be used.
void ask_torch_kind(nb::handle tensor, const ArgumentRef& argument);

// ask_torch_kind for a tensor that cannot be used: always raises.
[[noreturn]] void refuse_torch(nb::handle tensor, const ArgumentRef& argument);

// Raises AclnnError for a tensor that cannot be used as a number.
void ask_torch_number(nb::handle tensor, const ArgumentRef& argument);

// For a torch without exchange (before 2.9): what __dlpack__ lends.
const DLTensor* borrow_torch(nb::handle tensor, const ArgumentRef& argument, KeepAlive* keep);

// Raises AclnnError for a tensor whose memory, seen as `view`, is not its values. Returns whether
// torch had to be asked, which lets other threads run.
bool refuse_lazy(const Array& tensor, const Tensor& view);

// See empty_array.
nb::object empty_torch(nb::handle like, const Tensor& view, aclDataType dtype, const Dims& shape);

// The torch tensors among the arguments of a call; borrowed references.
class TorchTensors {
 public:
  bool none() const { return count_ == 0; }
  void add(const Array& array) { acquired_[count_++] = {array.object, array.argument}; }

  // Raises AclnnError for a tensor that torch records, traces or protects at this moment.
  void ask();

  // ask() for each run of a plan, without gradients, which phase 1 has checked.
  void ask_again() const;
  void prepare_to_ask_again();

  // Reports that tensors were written, so that a backward pass that saved one of them fails.
  void bump_versions();

  int traverse(visitproc visit, void* data) const;
  void clear();

 private:
  struct Acquired {
    PyObject* tensor;
    ArgumentRef argument;
  };
  Acquired acquired_[kMaxParameters];
  int count_ = 0;
  bool protected_ = false;  // one that is written was made in inference mode
  nb::object written_;      // a tuple of those that are written, once autograd was notified
};

}  // namespace openaclnn::python
