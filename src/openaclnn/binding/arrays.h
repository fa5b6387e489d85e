// SPDX-License-Identifier: Apache-2.0
// Python arrays as tensors, without copying: NumPy (bfloat16 through ml_dtypes), torch CPU tensors,
// DLPack producers.
//
// An array is acquired first, then viewed. Acquiring may run Python code (__dlpack__, class
// attributes, the garbage collector), which may resize or free the memory of any array. So all
// arguments of a call are acquired, and its numbers converted, before the first address is read;
// from then on no Python code runs until the kernel has run.
#pragma once

#include <nanobind/nanobind.h>

#include <string>
#include <vector>

#include "core/base/tensor.h"
#include "core/support/status.h"

namespace openaclnn::python {

namespace nb = nanobind;

struct DLTensor;

// Owns references. Not a Python list: creating one may run the garbage collector, which could clear
// it while a stream works on the arrays.
class KeepAlive {
 public:
  void append(nb::object object) { objects_.push_back(std::move(object)); }
  const std::vector<nb::object>& objects() const { return objects_; }

 private:
  std::vector<nb::object> objects_;
};

// Which argument of a call an array is.
struct ArgumentRef {
  const char* op;
  const char* parameter;
  bool written;
};

// Raises AclnnError with the calling thread's sentence.
[[noreturn]] void raise_status(Status status);

// Raises AclnnError: "op: parameter must what".
[[noreturn]] void refuse(const ArgumentRef& argument, const std::string& what);

// Raises TypeError: "sentence, but got value". An exception that is set becomes its cause.
[[noreturn]] void refuse_type(const std::string& sentence, nb::handle value);

// A value in a sentence: its repr, truncated.
std::string shown(nb::handle value);

enum class ArrayKind : uint8_t { numpy, torch, producer };

// Fills a DLTensor without running Python; not 0: failed, with a Python exception set.
using Exchange = int (*)(void* object, DLTensor* tensor);

// An acquired array; valid while its object and its KeepAlive are.
struct Array {
  PyObject* object;
  ArgumentRef argument;
  ArrayKind kind;
  Exchange exchange;     // of a torch tensor
  const DLTensor* lent;  // of a producer, and of a torch tensor without exchange
};

// Python code may run. Raises TypeError for values that are not arrays, and AclnnError for arrays
// that cannot be used.
Array acquire_array(nb::handle object, const ArgumentRef& argument, KeepAlive* keep);

// Fills `tensor`. No Python code runs, unless the view is refused, by AclnnError.
void view_array(const Array& array, Tensor* tensor);

// Makes a new array of the kind of `like`, which was seen as `view`, in its memory order if the
// shapes agree.
nb::object empty_array(const Array& like, const Tensor& view, aclDataType dtype, const Dims& shape);

// Converts a new array to the kind of `like`, if empty_array could only make a NumPy one (DLPack
// producers).
nb::object as_kind_of(const Array& like, nb::object array);

bool is_numpy_bool(nb::handle value);

// Returns the attribute, or an invalid object if it does not exist; other errors are raised.
nb::object attribute(nb::handle object, const char* name);

void init_arrays();

// ---- parts of the above ----

// Sets the address: element (0, …, 0) is at `origin`, and the storage is what the view spans.
void set_view(const ArgumentRef& argument, Tensor* tensor, char* origin);

}  // namespace openaclnn::python
