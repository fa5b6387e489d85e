// SPDX-License-Identifier: Apache-2.0
// The PyTorch operators: torch.ops.openaclnn.<row>, its out= overload and its kernels. One file,
// compiled on first use by openaclnn.torch, because torch's headers take most of the time.
#include <torch/library.h>

#include <memory>
#include <string>

#include "compute.h"
#include "functionalize.h"
#include "record.h"
#include "row.h"

namespace openaclnn::torch {
#include "rows.inc"

namespace {

using c10::DispatchKey;
using ::torch::CppFunction;

template <class Kernel, class... Arguments>
CppFunction kernel(DispatchKey key, Arguments&&... arguments) {
  return ::torch::dispatch(key, CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(
                                    std::forward<Arguments>(arguments)...)));
}

// Refusals name tensors of these backends.
constexpr DispatchKey kStrange[] = {
    DispatchKey::SparseCPU,
    DispatchKey::SparseCsrCPU,
    DispatchKey::MkldnnCPU,
    DispatchKey::QuantizedCPU,
    DispatchKey::QuantizedCUDA,
    DispatchKey::NestedTensorCPU,
    DispatchKey::NestedTensorCUDA,
    DispatchKey::SparseCUDA,
    DispatchKey::SparseCsrCUDA,
    DispatchKey::CUDA,
    DispatchKey::XPU,
    DispatchKey::MPS,
    DispatchKey::PrivateUse1,
};

// The row of the same name without the underscore.
int plain_form(const Row& row) {
  for (int i = 0; i < row_count; ++i) {
    if (row.name == std::string(rows[i].name) + "_") return i;
  }
  TORCH_CHECK(false, row.name, " has no plain form");
}

void implement(::torch::Library& library, const Row& row, const char* name, bool out) {
  library.impl(name, kernel<Compute>(DispatchKey::CPU, row, out));
  library.impl(name, kernel<Record>(DispatchKey::Autograd, row, out));
  for (const DispatchKey key : kStrange) library.impl(name, kernel<Refuse>(key, row));
  if (!out && !row.inplace) return;
  const int plain = row.inplace ? plain_form(row) : static_cast<int>(&row - rows);
  library.impl(name, kernel<CountWrites>(DispatchKey::ADInplaceOrView, row, out));
  library.impl(name, kernel<Functionalize>(DispatchKey::Functionalize, row, plain, out));
}

}  // namespace
}  // namespace openaclnn::torch

TORCH_LIBRARY(openaclnn, library) {
  using namespace openaclnn::torch;
  library.set_python_module("openaclnn.torch.fakes");
  // Overloads with out= have no at::Tag::out: torch 2.13's Inductor would call them with arguments
  // in another order.
  const std::vector<at::Tag> tags = {at::Tag::pt2_compliant_tag};
  for (const Row* row = rows; row != rows + row_count; ++row) {
    library.def(row->schema, tags);
    implement(library, *row, row->name, false);
    if (row->out_schema == nullptr) continue;
    library.def(row->out_schema, tags);
    implement(library, *row, (std::string(row->name) + ".out").c_str(), true);
  }
}
