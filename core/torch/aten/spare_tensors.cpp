// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/spare_tensors.h"

#include <ATen/EmptyTensor.h>

#include <utility>

namespace openaclnn::aten {
namespace {

constexpr size_t kMostSpare = 16;  // of a thread

thread_local std::vector<at::Tensor> of_thread;

// Each access of a variable of a thread is a call, in a library that is loaded late; the compiler
// makes several where it could make one.
[[gnu::noinline]] std::vector<at::Tensor>& spare_tensors() { return of_thread; }

}  // namespace

at::Tensor tensor_of_memory(void* first, size_t bytes, at::IntArrayRef sizes,
                            at::IntArrayRef strides, at::ScalarType dtype) {
  at::DataPtr data(first, at::kCPU);
  at::Tensor made;
  std::vector<at::Tensor>& spare = spare_tensors();
  if (!spare.empty() && spare.back().scalar_type() == dtype) {
    made = std::move(spare.back());
    spare.pop_back();
    c10::StorageImpl* storage = made.storage().unsafeGetStorageImpl();
    storage->set_data_ptr_noswap(std::move(data));
    storage->set_nbytes(bytes);
  } else {  // as at::from_blob, without its guards and checks
    made = at::detail::make_tensor<c10::TensorImpl>(
        c10::Storage(c10::Storage::use_byte_size_t(), bytes, std::move(data)),
        c10::DispatchKeySet(c10::DispatchKey::CPU), c10::scalarTypeToTypeMeta(dtype));
  }
  if (made.sizes() != sizes || made.strides() != strides || made.storage_offset() != 0)
    made.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides, 0);
  return made;
}

void keep_spare_tensors(std::vector<c10::IValue>& values) {
  std::vector<at::Tensor>& spare = spare_tensors();
  for (c10::IValue& value : values) {
    if (spare.size() == kMostSpare) return;
    if (!value.isTensor()) continue;
    const at::Tensor& tensor = value.toTensor();
    const bool own = tensor.defined() && tensor.use_count() == 1 && tensor.has_storage() &&
                     tensor.storage().use_count() == 1 && !tensor.storage().resizable() &&
                     !tensor.is_conj() && !tensor.is_neg();
    if (own) spare.push_back(std::move(value).toTensor());
  }
}

}  // namespace openaclnn::aten
