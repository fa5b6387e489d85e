// SPDX-License-Identifier: Apache-2.0
#include "core/ops/launch.h"

#include <memory>
#include <mutex>

#include "aclnn/aclnn_base.h"
#include "core/base/object.h"
#include "core/base/plan_observer.h"
#include "core/runtime/device.h"
#include "core/runtime/work_listener.h"
#include "core/support/observer.h"
#include "core/runtime/stream.h"

namespace openaclnn {

namespace {

// A queued run.
struct Run {
  Run(const char* its_name, const Executor& executor, void* its_workspace, ForkSafeLock* its_lock)
      : plan(executor), workspace(its_workspace), name(its_name), run_mutex(its_lock) {}

  // A graph records it, and the observer hears of each replay.
  void record(const aclOpExecutor& executor, const void* program_workspace, uint64_t size) {
    ran = true;
    accesses = plan_observer->recorded(executor, program_workspace, size);
  }
  void observe(const Stream& on) const {
    if (plan_observer != nullptr && accesses != nullptr)
      plan_observer->replayed(name, accesses.get(), on);
  }

  ~Run() {
    if (!ran && plan_observer != nullptr) [[unlikely]]
      plan_observer->dropped(name, plan);
  }
  void now() const {
    ran = true;
    std::unique_lock<ForkSafeLock> lock;
    if (run_mutex != nullptr) lock = std::unique_lock(*run_mutex);
    const Work work(name);
    plan.run(workspace);
  }

  Executor plan;
  void* workspace;
  const char* name;
  ForkSafeLock* run_mutex;
  mutable bool ran = false;
  std::shared_ptr<const void> accesses;  // of PlanObserver::recorded
};

void submit(std::unique_ptr<Run> run, Stream& stream) {
  Task task = {[](void* context) { static_cast<Run*>(context)->now(); },
               [](void* context) { delete static_cast<Run*>(context); }, run.get()};
  task.call = run->name, task.type = TaskType::kernel;
  task.observe = [](void* context, const Stream& on) { static_cast<Run*>(context)->observe(on); };
  stream.submit(task);
  run.release();  // owned by the stream now
}

}  // namespace

void enqueue(const char* name, const Executor& executor, void* workspace, Stream& stream,
             ForkSafeLock* run_mutex) {
  submit(std::make_unique<Run>(name, executor, workspace, run_mutex), stream);
}

namespace {

template <bool kWatched>
Status launch_as(const char* name, const void* maker, void* workspace, uint64_t workspace_size,
                 aclOpExecutor* handle, void* stream_handle, Busy busy) {
  if (handle == nullptr)
    return fail(ACLNN_ERR_PARAM_NULLPTR, {Reason::null_argument, ObjectKind::executor}, name,
                "executor must not be NULL");
  if (workspace == nullptr && workspace_size > 0) {
    return fail(ACLNN_ERR_PARAM_NULLPTR, {Reason::null_argument, ObjectKind::device_memory}, name,
                "workspace must not be NULL when workspaceSize is %llu",
                static_cast<unsigned long long>(workspace_size));
  }
  HandlePool<aclOpExecutor>::Hold executor(executors(), handle);
  if (!executor) {
    notify_refused(name, ObjectKind::executor, "executor", handle);
    return fail(ACLNN_ERR_PARAM_INVALID, {Reason::dead_handle, ObjectKind::executor}, name,
                "executor was already run, destroyed or never created; call "
                "%sGetWorkspaceSize again, or make it repeatable",
                name);
  }
  if (executor->maker() != maker) {
    return fail(ACLNN_ERR_PARAM_INVALID, {Reason::foreign_handle, ObjectKind::executor}, name,
                "executor belongs to another operator; pass that of %sGetWorkspaceSize", name);
  }
  if (kWatched && plan_observer != nullptr) {
    Status status = plan_observer->inspect(name, *executor, workspace, workspace_size);
    if (!status.ok()) return status;
  }
  if (Status status = executor->check_workspace(name, workspace, workspace_size); !status.ok()) {
    return status;
  }
  if (Status status = executor->check_addresses(name); !status.ok()) return status;
  PinnedStream stream;
  Status found = find_stream(stream_handle, &stream, name);
  if (found.ok()) found = check_running(*stream);
  if (!found.ok()) return with_call(Status(ACLNN_ERR_RUNTIME_ERROR), name);
  const bool records = stream->records();
  const void* const program_workspace = workspace;
  if (kWatched && plan_observer != nullptr) {
    if (!records) plan_observer->launches(name, *executor, workspace, workspace_size, *stream);
    workspace = reachable(workspace);
  }
  // From here on, other threads find the executor consumed; if it is repeatable, they wait for this
  // run.
  const bool consumes = !executor->repeatable;
  if (consumes) executor.withdraw(HandlePool<aclOpExecutor>::End::consumed);
  const auto notify_consumed = [&] {
    if (kWatched && consumes) notify_ending(name, kKindOf<aclOpExecutor>, handle);
  };
  // runs here when the stream is idle; a copy is made only when it has to wait
  if (executor->brief() && executor->fits_stack()) {
    struct Inline {
      const Executor* executor;
      void* workspace;
      const char* name;
    } now{&*executor, workspace, name};
    const auto run_now = [](void* context) {
      auto* self = static_cast<Inline*>(context);
      std::conditional_t<kWatched, Work, const char*> work(self->name);
      self->executor->run(self->workspace);
      (void)work;
    };
    if (stream->run_if_idle(run_now, &now)) {
      notify_consumed();
      return {};
    }
  }
  if (!kWatched && busy == Busy::wait && !records) {
    if (consumes) executor.restore();
    executor.release();  // a task may destroy it
    stream.release();
    wait_quietly(stream_handle);
    return launch_as<kWatched>(name, maker, workspace, workspace_size, handle, stream_handle,
                               Busy::queue);
  }
  try {
    auto run = std::make_unique<Run>(name, *executor, workspace, nullptr);
    if (kWatched && records && plan_observer != nullptr)
      run->record(*executor, program_workspace, workspace_size);
    if (!consumes) executor.release();  // without memory, submit waits for the stream
    submit(std::move(run), *stream);
  } catch (...) {
    if (consumes) executor.restore();
    throw;
  }
  notify_consumed();
  return {};
}

[[gnu::noinline, gnu::cold]] Status launch_watched(const char* name, const void* maker,
                                                   void* workspace, uint64_t workspace_size,
                                                   aclOpExecutor* executor, void* stream,
                                                   Busy busy) {
  if (busy == Busy::wait && executors().find(executor) != nullptr) wait_quietly(stream);
  const Status status =
      launch_as<true>(name, maker, workspace, workspace_size, executor, stream, Busy::queue);
  if (!status.ok() && plan_observer != nullptr) plan_observer->not_launched(executor);
  return status;
}

}  // namespace

Status launch(const char* name, const void* maker, void* workspace, uint64_t workspace_size,
              aclOpExecutor* executor, void* stream, Busy busy) {
  if (watched) [[unlikely]] {
    return launch_watched(name, maker, workspace, workspace_size, executor, stream, busy);
  }
  return launch_as<false>(name, maker, workspace, workspace_size, executor, stream, busy);
}

}  // namespace openaclnn
