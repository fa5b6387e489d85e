// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "call.h"
#include "garbage.h"
#include "watched_arrays.h"
#include "trace.h"
#include "core/ops/launch.h"
#include "core/support/fork.h"
#include "core/runtime/stream.h"

namespace openaclnn::python {
namespace {

class Plan;

// A stream of the core (in the pool, for fork) and the plans that it has not finished.
class PyStream {
 public:
  PyStream() : stream_(streams().create(nullptr)) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  ~PyStream() { streams().destroy(stream_); }  // waits for its work; `pending_` is destroyed later
  PyStream(const PyStream&) = delete;

  // The thread of a stream never touches Python: the arrays stay alive in `pending_`.
  void submit(const char* name, const Executor& executor, void* workspace, ForkSafeLock& running,
              nb::handle owner) {
    pending_.append(owner);
    enqueue(name, executor, workspace, *stream_, &running);
  }

  const Stream* get() const { return stream_; }

  void synchronize() {
    const Pending done(std::exchange(pending_, {}));  // not those submitted while we wait
    nb::gil_scoped_release release;
    (void)stream_->synchronize();
  }

  int traverse(visitproc visit, void* data) const { return pending_.traverse(visit, data); }

  // The stream is unreachable, but finishes its work.
  void clear() {
    (void)stream_->synchronize();
    pending_ = {};
  }

 private:
  // These plans are at work until the last copy is destroyed.
  class Pending {
   public:
    Pending() = default;
    Pending(Pending&& other) = default;
    Pending& operator=(Pending other) {
      std::swap(plans_, other.plans_);
      return *this;
    }
    ~Pending();
    void append(nb::handle plan);
    int traverse(visitproc visit, void* data) const {
      const auto arg = data;
      for (const nb::object& plan : plans_) Py_VISIT(plan.ptr());
      return 0;
    }

   private:
    std::vector<nb::object> plans_;
  };

  Pending pending_;
  Stream* stream_;
};

class Plan {
 public:
  Plan(int index, nb::args values) : op_(operator_at(index)), executor_(&op_) {
    PyObject* given[kMaxParameters + 1];  // one more, so that too many are noticed
    const size_t count = std::min(values.size(), std::size(given));
    for (size_t i = 0; i < count; ++i) given[i] = nb::handle(values[i]).ptr();
    Traced shown{.op = op_, .plans = true, .values = {given, count}, .plan = &executor_};
    traced(shown, [&] {
      Call call(op_, shown.values, Outputs::given, Keep::arrays);
      if (tracer() != nullptr) shown.converted(call.arguments());
      check(plan(op_, call.arguments(), executor_));
      watched_ = call.take_watched();
      torch_ = std::move(call.torch());
    });
    torch_.prepare_to_ask_again();
    workspace_ = Workspace(executor_.workspace_size());
  }

  const char* name() const { return op_.name; }
  uint64_t workspace_size() const { return executor_.workspace_size(); }

  void run() {
    traced({.op = op_, .plan = &executor_}, [&] { run_here(); });
  }
  void run_on(PyStream& stream, nb::handle self) {
    traced({.op = op_, .plan = &executor_, .stream = stream.get()},
           [&] { submit_to(stream, self); });
  }

  int traverse(visitproc visit, void* data) const {
    const int stopped = watched_.traverse(visit, data);
    return stopped != 0 ? stopped : torch_.traverse(visit, data);
  }

  // The garbage collector clears the arrays of unreachable plans, except those at work on a stream,
  // which releases the plan when it is cleared.
  void clear() {
    if (at_work_ > 0) return;
    is_cleared_ = true;
    torch_.clear();
    watched_.clear();
  }

 private:
  friend class PyStream;

  void run_here() {
    check_arrays();
    if (executor_.brief() && run_mutex_.try_lock()) {
      const std::lock_guard running(run_mutex_, std::adopt_lock);
      executor_.run_with_enough_stack(workspace_.data());
    } else {
      nb::gil_scoped_release release;  // a holder of run_mutex_ never waits for the GIL
      const std::lock_guard running(run_mutex_);
      executor_.run_with_enough_stack(workspace_.data());
    }
    torch_.bump_versions();
  }
  void submit_to(PyStream& stream, nb::handle self) {
    check_arrays();
    stream.submit(op_.name, executor_, workspace_.data(), run_mutex_, self);
    torch_.bump_versions();
  }

  // Checks what may have changed since phase 1. torch is asked first, because that may run Python
  // code.
  void check_arrays() {
    if (is_cleared_)
      check(fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op_.name,
                 "a plan must not run after the garbage collector "
                 "took its arrays: plan again"));
    if (!torch_.none()) torch_.ask_again();
    if (const char* parameter = watched_.moved(); parameter != nullptr) {
      check(fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_memory, op_.name,
                 "%s must keep its memory while a plan uses it, but was resized or given other "
                 "data: plan again",
                 parameter));
    }
  }

  const Operator& op_;
  Executor executor_;
  WatchedArrays watched_;
  TorchTensors torch_;
  Workspace workspace_;
  int at_work_ = 0;  // submissions to streams that were not synchronised yet
  bool is_cleared_ = false;
  ForkSafeLock
      run_mutex_;  // of a run: runs share the workspace, and outputs hold what sweeps leave
};

void PyStream::Pending::append(nb::handle plan) {
  plans_.push_back(nb::borrow(plan));
  ++nb::inst_ptr<Plan>(plan)->at_work_;
}

PyStream::Pending::~Pending() {
  for (const nb::object& plan : plans_) --nb::inst_ptr<Plan>(plan)->at_work_;
}

}  // namespace

void define_plans(nb::module_& m) {
  nb::class_<PyStream>(m, "Stream", "An in-order queue of work with its own thread.",
                       nb::is_weak_referenceable(), collected<PyStream>())
      .def(
          "__init__",
          [](PyStream* self, nb::args given, nb::kwargs named) {
            if (given.size() + named.size() != 0)
              refuse_type("Stream takes no arguments",
                          given.size() != 0 ? nb::handle(given[0]) : nb::handle(named));
            new (self) PyStream();
          },
          nb::sig("def __init__(self) -> None"))
      .def("synchronize", &PyStream::synchronize, "Waits until all work submitted so far is done.");
  nb::class_<Plan>(m, "Plan",
                   "Phase 1 of one call: checked, planned and ready to run any number of times.",
                   nb::is_weak_referenceable(), collected<Plan>())
      .def(nb::init<int, nb::args>(), nb::arg("index"), nb::arg("values"))
      .def("__repr__",
           [](const Plan& plan) {
             return std::string("<openaclnn.Plan ") + plan.name() + ", workspace " +
                    std::to_string(plan.workspace_size()) + " bytes>";
           })
      .def_prop_ro("name", &Plan::name, "The C name of the operator.")
      .def_prop_ro("workspace_size", &Plan::workspace_size,
                   "Bytes of workspace, which the plan owns.")
      .def(
          "run",
          [](nb::handle_t<Plan> self, nb::handle stream) {
            if (!nb::inst_ready(self))
              throw nb::type_error("Plan: __init__ must be called before run");
            Plan& plan = *nb::inst_ptr<Plan>(self);
            if (stream.is_none()) return plan.run();
            if (!nb::isinstance<PyStream>(stream) || !nb::inst_ready(stream))
              refuse_type(std::string(plan.name()) + ": stream must be a Stream or None", stream);
            plan.run_on(*nb::inst_ptr<PyStream>(stream), self);
          },
          nb::arg("stream").none() = nb::none(),
          nb::sig("def run(self, stream: Stream | None = None) -> None"),
          "Phase 2. Without a stream the results are there on return, else after "
          "stream.synchronize(). Runs of one plan come one after another, whatever threads and "
          "streams they are on.");
}

}  // namespace openaclnn::python
