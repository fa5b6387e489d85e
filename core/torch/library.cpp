// SPDX-License-Identifier: Apache-2.0
// The PyTorch operators: torch.ops.openaclnn.<row>, its out= overload and its kernels. One file,
// compiled on first use by openaclnn.torch, because torch's headers take most of the time.
#include <torch/library.h>

#include <memory>
#include <string>

#include "compute.h"
#include "functionalize.h"
#include "record.h"

namespace openaclnn::torch {
namespace {

// What PyTorch calls a row; nullptr: no overload with out=.
struct Schema {
  const char* name;  // of the row
  const char* schema;
  const char* out;
};

const Schema schemas[] = {
#include "schemas.inc"
};

using c10::DispatchKey;
using ::torch::CppFunction;

template <class Kernel, class... Arguments>
CppFunction kernel(DispatchKey key, Arguments&&... arguments) {
  return ::torch::dispatch(key, CppFunction::makeFromBoxedFunctor(std::make_unique<Kernel>(
                                    std::forward<Arguments>(arguments)...)));
}

// Refusals name tensors of these backends. Those of CUDA compute in src/openaclnn/torch/cuda.py.
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
    DispatchKey::XPU,
    DispatchKey::MPS,
    DispatchKey::PrivateUse1,
};

// The position of the row of the same name without the underscore.
int plain_form(const Row& row) {
  for (int i = 0; openaclnn_row(i) != nullptr; ++i) {
    if (row.python == std::string(openaclnn_row(i)->python) + "_") return i;
  }
  TORCH_CHECK(false, row.python, " has no plain form");
}

void implement(::torch::Library& library, const Row& row, const char* name, bool out) {
  library.impl(name, kernel<Compute>(DispatchKey::CPU, row, out));
  library.impl(name, kernel<Record>(DispatchKey::Autograd, row, out));
  for (const DispatchKey key : kStrange) library.impl(name, kernel<Refuse>(key, row));
  if (!out && !row.inplace) return;
  const int plain = row.inplace ? plain_form(row) : position_of(row);
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
  for (const Schema& schema : schemas) {
    const openaclnn::Row* const row = openaclnn_find(schema.name);
    TORCH_CHECK(row != nullptr, "libopenaclnn has no operator ", schema.name);
    library.def(schema.schema, tags);
    implement(library, *row, row->python, false);
    if (schema.out == nullptr) continue;
    library.def(schema.out, tags);
    implement(library, *row, (std::string(row->python) + ".out").c_str(), true);
  }
}
