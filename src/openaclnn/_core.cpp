// SPDX-License-Identifier: Apache-2.0
// The binding: one generic launch and one plan object for every operator, so its size does not grow
// with the table.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <thread>
#include <utility>

#include "_arrays.h"
#include "_call.h"
#include "aclnn/aclnn_base.h"
#include "core/base/executor.h"
#include "core/ops/isa.h"
#include "core/ops/operator.h"
#include "core/ops/streaming.h"
#include "core/runtime/parallel.h"
#include "core/runtime/product.h"
#include "core/runtime/stream.h"
#include "core/runtime/thread.h"

namespace openaclnn::python {
namespace {

void check(Status status) {
  if (!status.ok()) raise_status(status);
}

const Operator& operator_at(long index) {
  if (index < 0 || index >= operator_count) throw nb::index_error("no such operator");
  return *operators[index];
}

class Workspace {
 public:
  explicit Workspace(size_t bytes = 0)
      : data_(bytes == 0 ? nullptr : std::aligned_alloc(kWorkspaceAlignment, bytes)) {
    if (bytes != 0 && data_ == nullptr) throw std::bad_alloc();
  }
  void* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(void* data) const { std::free(data); }
  };
  std::unique_ptr<void, Free> data_;
};

// Runs on this thread, or, where its stack is too small, on one made for it, and on the pool.
void run_fitting(const Executor& executor, void* workspace) {
  if (executor.fits_stack()) return executor.run(workspace);
  std::thread roomy;
  if (!start_thread(roomy, [&] { executor.run(workspace); })) throw std::bad_alloc();
  roomy.join();
}

// Other Python threads go on when the work is longer than a switch between them.
void run_here(const Executor& executor, void* workspace) {
  if (executor.brief()) {
    run_fitting(executor, workspace);
  } else {
    nb::gil_scoped_release release;
    run_fitting(executor, workspace);
  }
}

nb::object launch(const Operator& op, std::span<PyObject* const> values) {
  Call call(op, values, Outputs::allocate_missing, Keep::nothing);
  Executor executor(&op);
  check(plan(op, call.arguments(), executor));
  const Workspace workspace(executor.workspace_size());
  run_here(executor, workspace.data());
  call.take_torch().tell_autograd();
  return call.take_result();
}

// launch(index, *values), as CPython calls it: as a function of nanobind it would gather the values
// in a tuple (100 of 490 ns).
PyObject* launch_method(PyObject*, PyObject* const* given, Py_ssize_t count) {
  try {
    if (count == 0) throw nb::type_error("launch needs the index of an operator");
    const long index = PyLong_AsLong(given[0]);
    if (index == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return launch(operator_at(index), {given + 1, given + count}).release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const nb::builtin_exception& error) {
    PyErr_SetString(error.type() == nb::exception_type::type_error    ? PyExc_TypeError
                    : error.type() == nb::exception_type::index_error ? PyExc_IndexError
                                                                      : PyExc_RuntimeError,
                    error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// A stream of the core, in its pool so that fork finds it, and the plans whose work it has not
// done.
class PyStream {
 public:
  PyStream() : stream_(streams().create(nullptr)) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  ~PyStream() { streams().destroy(stream_); }  // waits for its work, which `pending_` outlives
  PyStream(const PyStream&) = delete;

  // The thread of a stream never touches Python: the arrays stay alive in `pending_`.
  void submit(const char* name, const Executor& executor, void* workspace, ForkSafeLock& alone,
              nb::handle owner) {
    pending_.append(owner);
    enqueue(name, executor, workspace, *stream_, &alone);
  }

  void synchronize() {
    nb::list done = std::exchange(pending_, nb::list());  // not what comes in while we wait
    nb::gil_scoped_release release;
    (void)stream_->synchronize();
  }

 private:
  nb::list pending_;
  Stream* stream_;
};

class Plan {
 public:
  Plan(int index, nb::args values) : op_(operator_at(index)), executor_(&op_) {
    count_forks();
    Call call(op_, {PySequence_Fast_ITEMS(values.ptr()), values.size()}, Outputs::given,
              Keep::arrays);
    check(plan(op_, call.arguments(), executor_));
    kept_ = call.take_kept();
    torch_ = call.take_torch();
    workspace_ = Workspace(executor_.workspace_size());
  }

  const char* name() const { return op_.name; }
  uint64_t workspace_size() const { return executor_.workspace_size(); }

  void run() {
    check_torch();
    if (executor_.brief() && alone_.try_lock()) {
      const std::lock_guard alone(alone_, std::adopt_lock);
      run_fitting(executor_, workspace_.data());
    } else {
      nb::gil_scoped_release release;  // never wanted by a thread that has the lock
      const std::lock_guard alone(alone_);
      run_fitting(executor_, workspace_.data());
    }
  }
  void run_on(PyStream& stream, nb::handle self) {
    check_torch();
    stream.submit(op_.name, executor_, workspace_.data(), alone_, self);
  }

 private:
  void check_torch() {
    if (torch_.moved()) {
      check(fail(ACLNN_ERR_PARAM_INVALID,
                 "%s: tensors must keep their memory while a plan uses it, but one was resized or "
                 "given other data: plan again",
                 op_.name));
    }
    torch_.tell_autograd();
  }

  const Operator& op_;
  Executor executor_;
  Kept kept_;
  TorchTensors torch_;
  Workspace workspace_;
  ForkSafeLock alone_;  // of a run: runs share the workspace, and outputs hold what sweeps leave
};

nb::dict config() {
  nb::dict values;
  values["version"] = OPENACLNN_VERSION;
  values["product"] = products[current_product()].key;
  values["kernels"] = kernels().isa;
  values["threads"] = num_threads();
  values["streaming_bytes"] = streaming_threshold();
#if defined(__clang__)
  values["compiler"] = __VERSION__;  // begins with its name
#else
  values["compiler"] = "GCC " __VERSION__;
#endif
  return values;
}

}  // namespace
}  // namespace openaclnn::python

NB_MODULE(_core, m) {
  using namespace openaclnn;
  using namespace openaclnn::python;
  init_arrays();
  m.doc() = "The compiled core; the public names are those of openaclnn.";

  static PyMethodDef functions[] = {
      {"launch", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&launch_method)),
       METH_FASTCALL, "launch(index, *values): phase 1 and phase 2 of an operator at once."},
      {}};
  if (PyModule_AddFunctions(m.ptr(), functions) != 0) throw nb::python_error();
  nb::class_<PyStream>(m, "Stream", "An in-order queue of work with a thread of its own.")
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
                   "Phase 1 of one call: checked, planned and ready to run any number of times.")
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
  m.def("config", &config);
  m.def("set_product", [](const char* key) { check(set_product(key)); }, nb::arg("key"));
  m.def("set_num_threads", &set_num_threads, nb::arg("count"));
  m.def("set_streaming_bytes", &set_streaming_threshold, nb::arg("bytes"));
}
