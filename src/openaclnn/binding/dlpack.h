// SPDX-License-Identifier: Apache-2.0
// DLPack, version 1: a plain C struct behind a capsule, and the table of functions by which a
// library fills one without going through Python (0.03 µs a tensor against 0.4).
#pragma once

#include <cstdint>

#include "arrays.h"

namespace openaclnn::python {

struct DLTensor {
  void* data;
  struct {
    int32_t type, id;
  } device;
  int32_t ndim;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  uint64_t flags;
  DLTensor tensor;
};

// Borrows the memory of a producer; runs Python code. Returned when `keep` is dropped.
const DLTensor* borrow(nb::handle producer, nb::handle dlpack, const ArgumentRef& argument,
                       KeepAlive* keep);

// Whether it is in CPU memory and has a dtype of the aclnn API.
bool is_usual(const DLTensor& source);

// See view_array.
void view_dlpack(const DLTensor& source, const ArgumentRef& argument, Tensor* tensor);

}  // namespace openaclnn::python
