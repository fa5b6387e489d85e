// SPDX-License-Identifier: Apache-2.0
// Python arrays as tensors, without copying: NumPy (bfloat16 through ml_dtypes), torch CPU tensors,
// DLPack producers.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "core/base/tensor.h"
#include "core/runtime/status.h"

namespace openaclnn::python {

namespace nb = nanobind;

// Objects to hold on to; a list of Python only once there is one (a call without costs 25 ns less).
class Kept {
 public:
  void append(nb::handle object) {
    if (!list_.is_valid()) list_ = nb::list();
    nb::borrow<nb::list>(list_).append(object);
  }

 private:
  nb::object list_;
};

// Raises AclnnError with the calling thread's sentence.
[[noreturn]] void raise_status(Status status);

// Raises AclnnError: "op: parameter must what".
[[noreturn]] void refuse(const char* op, const char* parameter, const std::string& what);

// Raises TypeError: "sentence, but got value".
[[noreturn]] void refuse_type(const std::string& sentence, nb::handle value);

// Fills `tensor` with a view of `array`; the view lives as long as `array` and what is appended to
// `keep`. Raises TypeError for what is no array, AclnnError for arrays that cannot be used.
void view_array(nb::handle array, const char* op, const char* parameter, bool written,
                Tensor* tensor, Kept* keep);

// A new array of the kind of `like`, which was seen as `view`, and in its memory order where the
// shapes agree.
nb::object empty_array(nb::handle like, const Tensor& view, aclDataType dtype, const Dims& shape);

// A new array as the kind of `like`, where empty_array could only make a NumPy one (DLPack
// producers).
nb::object as_kind_of(nb::handle like, nb::object array);

void init_arrays();

// ---- parts of the above ----

// The view of an array whose element (0, …, 0) is at `origin`: storage is exactly what it spans.
void set_view(Tensor* tensor, char* origin);

// _dlpack.cpp: torch tensors and DLPack producers.
bool is_torch(nb::handle array);
void view_dlpack(nb::handle array, const char* op, const char* parameter, bool written,
                 Tensor* tensor, Kept* keep);

}  // namespace openaclnn::python
