// SPDX-License-Identifier: Apache-2.0
// The Python values of one call as the arguments of phase 1.
#pragma once

#include <nanobind/nanobind.h>

#include <new>
#include <span>

#include "arrays.h"
#include "watched_arrays.h"
#include "torch.h"
#include "core/ops/operator.h"

namespace openaclnn::python {

namespace nb = nanobind;

// Room for an object that most calls do not need.
template <class T>
struct Uninitialized {
  alignas(T) unsigned char bytes[sizeof(T)];
  T* make() { return new (bytes) T; }
  T* get() { return std::launder(reinterpret_cast<T*>(bytes)); }
};

enum class Outputs : uint8_t { allocate_missing, given };
enum class Keep : uint8_t { nothing, arrays };  // what outlives the call object

// Everything that runs Python code comes first: numbers are converted, arrays acquired, torch is
// asked. Then the arrays are viewed. If foreign code makes outputs, all arrays are viewed again.
class Call {
 public:
  // `values` come in the order of the row.
  Call(const Operator& op, std::span<PyObject* const> values, Outputs outputs, Keep keep);

  const Argument* arguments() const { return argument_; }
  TorchTensors& torch() { return torch_; }
  WatchedArrays take_watched();  // with Keep::arrays
  nb::object take_result();      // the outputs: as given, or new and in the kind of the first input

 private:
  ArgumentRef argument(int i) const;
  bool may_be_none(int i, Outputs outputs) const;
  void acquire(int i, nb::handle value, Outputs outputs);
  void convert(int i, nb::handle value);
  bool has_tensor(int i) const;
  void view();
  bool ask_lazy();
  void make_output(int i);

  const Operator& op_;
  const Keep keep_;
  KeepAlive keep_alive_;
  TorchTensors torch_;
  int first_input_ = -1;
  nb::object result_[kMaxOutputs];  // in the order of the row
  bool result_is_new_[kMaxOutputs] = {};
  int outputs_ = 0;
  Argument argument_[kMaxParameters];
  Array array_[kMaxParameters];
  Uninitialized<Tensor> tensor_[kMaxParameters];
  Uninitialized<Scalar> scalar_[kMaxParameters];
};

}  // namespace openaclnn::python
