// SPDX-License-Identifier: Apache-2.0
// Both phases of every row for C programs: executors are openaclnn's own, their work is ATen's.
#include <memory>
#include <new>

#include "aclnn/aclnn_base.h"
#include "core/aten/calling.h"
#include "core/aten/backend.h"
#include "core/aten/recordable.h"
#include "core/aten/traced.h"
#include "core/ops/foreign.h"
#include "core/base/list.h"
#include "core/runtime/stream_library.h"

namespace openaclnn::aten {
namespace {

// The result of prepare, freed by drop.
using OwnedCall = std::unique_ptr<void, void (*)(void*)>;

class AtenWork : public ForeignWork {
 public:
  AtenWork(const Row& row, const Backend& backend, OwnedCall call)
      : row_(row), backend_(backend), call_(std::move(call)) {
    moves = row.computed == Row::Computed::moved;
  }
  int32_t run() const override {
    return with_stack_room(row_.name, [this] {
      compute_alone_after_fork(backend_);
      return backend_.compute(call_.get());
    });
  }

 private:
  const Row& row_;
  const Backend& backend_;
  OwnedCall call_;
};

// For the observer: the tensors, which prepare has checked.
void add_tensors(AtenWork& work, const Row& row, const Value* values) {
  if (!openaclnn_is_checked()) [[likely]]
    return;
  for (int i = 0; i < row.parameter_count; ++i) {
    const Parameter& parameter = row.parameters[i];
    if (values[i].pointer == nullptr) continue;
    bool written = parameter.written;
    if (row.inplace) {  // the first parameter is also the output
      if (written) continue;
      written = i == 0;
    }
    if (parameter.kind == Kind::tensor) {
      work.add(parameter.name, static_cast<const aclTensor*>(values[i].pointer), written);
    } else if (parameter.kind == Kind::tensors) {
      const HandlePool<aclTensorList>::Hold list(tensor_lists(), values[i].pointer);
      for (size_t k = 0; list && k < list->size; ++k) {
        if ((*list)[k] == nullptr) continue;
        work.add_element(parameter.name, k, (*list)[k], written);
      }
    }
  }
}

int32_t plan_now(const Row& row, const Value* values, uint64_t* workspace_size, void** executor) {
  if (workspace_size == nullptr || executor == nullptr)
    return fail(ACLNN_ERR_PARAM_NULLPTR, Reason::null_argument, row.name, "%s must not be NULL",
                workspace_size == nullptr ? "workspaceSize" : "executor")
        .code();
  const Backend* backend = nullptr;
  void* call = nullptr;
  const int32_t code = with_stack_room(row.name, [&] {
    if (const Status status = find_backend(row.name, &backend); !status.ok()) return status.code();
    compute_alone_after_fork(*backend);
    return backend->prepare(static_cast<int>(&row - rows), values, &call);
  });
  if (code != 0) return code;
  OwnedCall owned(call, backend->drop);
  try {
    const auto work = std::make_shared<AtenWork>(row, *backend, std::move(owned));
    add_tensors(*work, row, values);
    aclOpExecutor* made = nullptr;
    if (const Status status = plan_foreign(row.name, &row, work, &made); !status.ok())
      return status.code();
    *workspace_size = 0;
    *executor = made;
    return ACLNN_SUCCESS;
  } catch (const std::bad_alloc&) {
    return fail(ACLNN_ERR_INNER, Reason::out_of_memory, row.name, "out of memory").code();
  }
}

int32_t run_now(const Row& row, void* workspace, uint64_t workspace_size, void* executor,
                void* stream) {
  if (openaclnn_records(stream)) {
    if (const Status status = check_recordable(row); !status.ok()) return status.code();
  }
  return run_foreign(row.name, &row, workspace, workspace_size, executor, stream);
}

}  // namespace

int32_t plan_for_c(int index, const Value* values, uint64_t* workspace_size, void** executor) {
  return traced_plan(rows[index], values, workspace_size, executor, plan_now, [](void* made) {
    (void)aclDestroyAclOpExecutor(static_cast<aclOpExecutor*>(made));
  });
}

int32_t run_for_c(int index, void* workspace, uint64_t workspace_size, void* executor,
                  void* stream) {
  return traced_run(rows[index], workspace, workspace_size, executor, stream, run_now);
}

}  // namespace openaclnn::aten
