// SPDX-License-Identifier: Apache-2.0
// Both phases of every row for torch_npu, and the Backend for C programs (core/aten/row.h tells how
// they relate). Phase 2 runs on the calling thread; with torch_npu's queue that is the thread of
// the queue.
#include <ATen/Parallel.h>

#include <atomic>

#include "aclnn/aclnn_base.h"
#include "core/aten/recordable.h"
#include "core/aten/traced.h"
#include "core/npu/queue.h"
#include "core/runtime/work_listener.h"
#include "core/support/handles.h"
#include "core/support/observer.h"
#include "core/support/product.h"
#include "core/support/status.h"
#include "core/runtime/stream.h"
#include "core/runtime/stream_library.h"
#include "core/torch/aten/composite.h"
#include "core/torch/aten/compute.h"
#include "core/torch/aten/limits.h"
#include "core/torch/aten/phase1.h"
#include "core/torch/aten/sentences.h"
#include "core/torch/aten/resolve.h"
#include "core/torch/aten/spare_tensors.h"
#include "core/torch/aten/guards.h"
#include "core/torch/aten/torch_version.h"

namespace openaclnn::aten {
namespace {

HandlePool<Call>& calls() { return pool_of<Call>(1 << 16); }

// Calls f() and turns exceptions into a status: an error of torch is a mistake in the arguments.
template <class F>
int32_t guarded(const Row& row, F f) {
  try {
    return f();
  } catch (const Refusal& refusal) {
    return fail(refusal.status, refusal.cause, row.name, "%s", refusal.what()).code();
  } catch (const c10::Error& error) {
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_value, row.name, "%s",
                first_line(error.what_without_backtrace()).c_str())
        .code();
  } catch (const std::bad_alloc&) {
    return fail(ACLNN_ERR_INNER, Reason::out_of_memory, row.name, "out of memory").code();
  } catch (const std::exception& error) {
    return fail(ACLNN_ERR_INNER, Reason::internal, row.name, "internal error: %s",
                first_line(error.what()).c_str())
        .code();
  }
}

std::vector<std::atomic<uint64_t>>& counts() {
  static constinit NoDestructor<std::vector<std::atomic<uint64_t>>> all;
  return all.get([] { return std::vector<std::atomic<uint64_t>>(static_cast<size_t>(row_count)); });
}

}  // namespace

Call prepared(const Row& row, const Value* values) {
  Call call{&row, {}, {}};
  call.values.reserve(static_cast<size_t>(row.parameter_count));
  for (int i = 0; i < row.parameter_count; ++i) call.take(row.parameters[i], values[i]);
  return call;
}

static int32_t plan_now(const Row& row, const Value* values, uint64_t* workspace_size,
                        void** executor) {
  if (workspace_size == nullptr || executor == nullptr)
    return fail(ACLNN_ERR_PARAM_NULLPTR, Reason::null_argument, row.name,
                "workspaceSize and executor must not be NULL")
        .code();
  const auto keep = [&](Call&& call) {
    Call* made = calls().create(std::move(call));
    if (made == nullptr)
      return fail(ACLNN_ERR_INNER_CREATE_EXECUTOR, Reason::no_resource, row.name,
                  "too many executors are alive")
          .code();
    *workspace_size = 0;
    *executor = made;
    return ACLNN_SUCCESS;
  };
  return guarded(row, [&] {
    const bool deferred = npu::phase1_queued() && !openaclnn_is_on_product();
    const int32_t code = guarded(row, [&] {
      Call call = prepared(row, values);
      if (!deferred) explained(call, [&] { check_call(call); });
      return keep(std::move(call));
    });
    return code == 0 || !deferred ? code : keep({&row, {}, {}, {}, take_failure(code)});
  });
}

namespace {

void compute_counted(const Call& call) {
  counts()[static_cast<size_t>(call.row - rows)].fetch_add(1, std::memory_order_relaxed);
  if (call.direct) return explained(call, [&] { compute(call); });  // by one kernel
  const KernelsOnly guard;
  explained(call, [&] {
    check_indices(call);
    compute(call);
  });
}

int32_t prepare_for_c(int index, const Value* values, void** call) {
  const Row& row = rows[index];
  return guarded(row, [&]() -> int32_t {
    auto made = std::make_unique<Call>(prepared(row, values));
    explained(*made, [&] { check_call(*made); });
    *call = made.release();
    return ACLNN_SUCCESS;
  });
}

int32_t compute_for_c(const void* call) {
  const Call& made = *static_cast<const Call*>(call);
  const WithoutWarnings quiet;
  return guarded(*made.row, [&] {
    compute_counted(made);
    return ACLNN_SUCCESS;
  });
}

void drop_for_c(void* call) {
  const std::unique_ptr<Call> own(static_cast<Call*>(call));
  keep_spare_tensors(own->values);
}

}  // namespace

namespace {

// A call that a graph repeats.
struct RecordedCall {
  Call call;

  void observe(const Stream& stream) const {
    if (!call.ranges.empty())
      openaclnn_works(call.row->name, call.ranges.data(), static_cast<int>(call.ranges.size()),
                      const_cast<Stream*>(&stream));
  }
  void run() const {
    const HostWork work(Stream::running_here(), call.row->name);
    const int32_t code = guarded(*call.row, [&] {
      const KernelsOnly guard;
      compute_counted(call);
      return ACLNN_SUCCESS;
    });
    if (code != 0) fail_context(take_failure(code));
  }
};

int32_t record_call(Call call, void* stream) {
  Task task = {[](void* own) { static_cast<RecordedCall*>(own)->run(); },
               [](void* own) { delete static_cast<RecordedCall*>(own); }, nullptr, call.row->name,
               TaskType::kernel};
  task.observe = [](void* own, const Stream& on) { static_cast<RecordedCall*>(own)->observe(on); };
  task.context = new RecordedCall{std::move(call)};
  return openaclnn_hand_over(stream, &task);
}

}  // namespace

int32_t perform(const Row& row, const std::function<Call()>& make, void* stream) {
  return guarded(row, [&]() -> int32_t {
    const KernelsOnly guard;
    Call call = make();
    if (!call.checked) explained(call, [&] { check_call(call); });
    if (openaclnn_records(stream)) {
      const Status status = check_recordable(row);
      return status.ok() ? record_call(std::move(call), stream) : status.code();
    }
    if (const int32_t gone = openaclnn_wait_for_stream(stream); gone != 0) return gone;
    if (!call.ranges.empty())
      openaclnn_works(row.name, call.ranges.data(), static_cast<int>(call.ranges.size()), stream);
    const HostWork work(stream, row.name);
    compute_counted(call);
    return ACLNN_SUCCESS;
  });
}

static int32_t run_now(const Row& row, void*, uint64_t, void* executor, void* stream) {
  HandlePool<Call>::Hold found(calls(), executor);
  int32_t code = 0;
  if (!found) {
    code =
        fail(ACLNN_ERR_PARAM_INVALID, {Reason::dead_handle, ObjectKind::executor}, row.name,
             "executor was already run or never created; call %sGetWorkspaceSize again", row.name)
            .code();
  } else if (found->row != &row) {
    code = fail(ACLNN_ERR_PARAM_INVALID, {Reason::foreign_handle, ObjectKind::executor}, row.name,
                "executor belongs to another operator; pass that of %sGetWorkspaceSize", row.name)
               .code();
  } else {
    found.withdraw(HandlePool<Call>::End::consumed);  // only one of several threads runs it
    code = found->refusal.code != 0 ? fail(found->refusal).code()
                                    : perform(row, [&] { return std::move(*found); }, stream);
  }
  return code == 0 ? code : npu::phase2_failed(code, stream);
}

int32_t plan_for_npu(int index, const Value* values, uint64_t* workspace_size, void** executor) {
  return traced_plan(rows[index], values, workspace_size, executor, plan_now, [](void* made) {
    HandlePool<Call>::Hold found(calls(), made);
    found.withdraw(HandlePool<Call>::End::consumed);
  });
}

int32_t run_for_npu(int index, void* workspace, uint64_t workspace_size, void* executor,
                    void* stream) {
  return traced_run(rows[index], workspace, workspace_size, executor, stream, run_now);
}

}  // namespace openaclnn::aten

using namespace openaclnn::aten;

// Looked up by core/aten for C programs.
extern "C" __attribute__((visibility("default"))) const Backend openaclnn_aten_backend = {
    rows_digest,   TORCH_ABI_VERSION, prepare_for_c,
    compute_for_c, drop_for_c,        [](int count) { at::set_num_threads(count); }};

// Tests call these three functions. They return the name of a row, or NULL after the last one; how
// often the row ran; and what this torch lacks for it, or "".
extern "C" __attribute__((visibility("default"))) const char* openaclnn_aten_name(int row) {
  return row >= 0 && row < row_count ? rows[row].name : nullptr;
}
extern "C" __attribute__((visibility("default"))) uint64_t openaclnn_aten_count(int row) {
  return counts()[static_cast<size_t>(row)].load();
}
extern "C" __attribute__((visibility("default"))) const char* openaclnn_aten_lacks(int row) {
  static thread_local std::string sentence;
  try {
    (void)resolve(rows[row]);
    sentence.clear();
  } catch (const std::exception& error) {
    sentence = error.what();
  }
  return sentence.c_str();
}
