// SPDX-License-Identifier: Apache-2.0
#include "watched_arrays.h"

#include "dlpack.h"
#include "numpy.h"

namespace openaclnn::python {
namespace {

PyArrayObject* numpy(PyObject* array) { return reinterpret_cast<PyArrayObject*>(array); }

}  // namespace

int64_t WatchedArrays::bytes_of(PyObject* array) {
  npy_intp bytes = PyArray_ITEMSIZE(numpy(array));
  for (int i = 0; i < PyArray_NDIM(numpy(array)); ++i) bytes *= PyArray_DIM(numpy(array), i);
  return bytes;
}

// A tensor without accessible memory has no extent.
WatchedArrays::Extent WatchedArrays::extent_of(const Array& array) {
  if (array.exchange == nullptr) {  // torch before 2.9: Python would run
    const nb::handle tensor = array.object;
    const nb::object address = tensor.attr("data_ptr")();
    return {PyLong_AsVoidPtr(address.ptr()), nb::cast<int64_t>(tensor.attr("numel")()), 0};
  }
  DLTensor shown;
  if (array.exchange(array.object, &shown) != 0) {
    PyErr_Clear();
    return {nullptr, -1, 0};
  }
  Extent extent{static_cast<char*>(shown.data) + shown.byte_offset, 1, 0};
  for (int i = 0; i < shown.ndim; ++i) {
    extent.count *= shown.shape[i];
    if (shown.strides != nullptr) extent.reach += (shown.shape[i] - 1) * shown.strides[i];
  }
  return extent;
}

void WatchedArrays::watch(const Array& array, const char* parameter) {
  if (array.kind == ArrayKind::torch || array.exchange != nullptr)
    others_.push_back({array, extent_of(array), parameter});
  if (array.kind != ArrayKind::numpy) return;
  for (PyObject* at = array.object; at != nullptr && PyArray_Check(at);
       at = PyArray_BASE(numpy(at))) {
    numpy_.push_back({at, PyArray_DATA(numpy(at)), bytes_of(at), parameter});
  }
}

const char* WatchedArrays::moved() const {
  for (const OfNumpy& seen : numpy_) {
    if (PyArray_DATA(numpy(seen.array)) != seen.data || bytes_of(seen.array) != seen.bytes)
      return seen.parameter;
  }
  for (const Other& seen : others_) {
    if (extent_of(seen.array) != seen.extent) return seen.parameter;
  }
  return nullptr;
}

int WatchedArrays::traverse(visitproc visit, void* data) const {
  const auto arg = data;
  for (const nb::object& object : keep_alive_.objects()) Py_VISIT(object.ptr());
  return 0;
}

void WatchedArrays::clear() {
  numpy_.clear();
  others_.clear();
  const KeepAlive last =
      std::exchange(keep_alive_, {});  // destructors may run Python code, which must find none here
}

}  // namespace openaclnn::python
