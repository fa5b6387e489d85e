// SPDX-License-Identifier: Apache-2.0
// The binding: one generic launch and one plan object for every operator, so its size does not grow
// with the table.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <vector>

#include "_arrays.h"
#include "aclnn/aclnn_base.h"
#include "core/base/executor.h"
#include "core/ops/isa.h"
#include "core/ops/operator.h"
#include "core/ops/streaming.h"
#include "core/runtime/parallel.h"
#include "core/runtime/product.h"
#include "core/runtime/stream.h"

namespace openaclnn::python {
namespace {

void check(Status status) {
  if (!status.ok()) raise_status(status);
}

// The arguments of one call as phase 1 wants them, and the objects that own their memory.
class Call {
 public:
  explicit Call(const Operator& op) : op_(op) {}

  // Values in the order of the row; outputs may be missing (None) when `allocate` is set.
  void read(nb::handle values, bool allocate) {
    for (int i = 0; i < op_.parameter_count; ++i)
      read_one(i, nb::handle(PyTuple_GET_ITEM(values.ptr(), i)), allocate);
    for (int i = 0; i < op_.parameter_count && allocate; ++i) {
      if (op_.parameters[i].role == Role::output && argument_[i].tensor == nullptr) make_output(i);
    }
  }

  const Argument* arguments() const { return argument_; }
  nb::list keep;
  nb::object result;  // the first output, in the kind of the first input

 private:
  void read_one(int i, nb::handle value, bool allocate) {
    const Parameter& parameter = op_.parameters[i];
    argument_[i].handle = nullptr;
    if (value.is_none() && parameter.kind != Kind::bool_) {
      if (parameter.kind == Kind::tensor || parameter.kind == Kind::scalar ||
          parameter.kind == Kind::text)
        return;
    }
    switch (parameter.kind) {
      case Kind::tensor: {
        const bool written = parameter.role != Role::input;
        view_array(value, op_.name, parameter.name, written, &tensor_[i], &keep);
        argument_[i].tensor = &tensor_[i];
        if (written && !result.is_valid()) result = nb::borrow(value);
        if (parameter.role == Role::input && !like_.is_valid()) like_ = value;
        if (!allocate) keep.append(value);
        break;
      }
      case Kind::scalar:
        read_scalar(parameter, value, &scalar_[i]);
        argument_[i].scalar = &scalar_[i];
        break;
      case Kind::double_: argument_[i].real = real(parameter, value); break;
      case Kind::int64: argument_[i].integer = integer(parameter, value); break;
      case Kind::bool_: argument_[i].flag = truth(value); break;
      case Kind::text:
        argument_[i].text = nb::cast<const char*>(value);
        keep.append(value);
        break;
    }
  }

  static bool truth(nb::handle value) {
    const int answer = PyObject_IsTrue(value.ptr());
    if (answer < 0) throw nb::python_error();
    return answer == 1;
  }

  double real(const Parameter& parameter, nb::handle value) const {
    const double number = PyFloat_AsDouble(value.ptr());
    if (number == -1 && PyErr_Occurred() != nullptr) not_a_number(parameter, value);
    return number;
  }

  int64_t integer(const Parameter& parameter, nb::handle value) const {
    const int64_t number = PyLong_AsLongLong(value.ptr());
    if (number == -1 && PyErr_Occurred() != nullptr) not_a_number(parameter, value);
    return number;
  }

  [[noreturn]] void not_a_number(const Parameter& parameter, nb::handle value) const {
    PyErr_Clear();
    throw nb::type_error((std::string(op_.name) + ": " + parameter.name +
                          " must be a number in range, but got " + nb::repr(value).c_str())
                             .c_str());
  }

  void read_scalar(const Parameter& parameter, nb::handle value, Scalar* scalar) const {
    if (PyBool_Check(value.ptr())) {
      scalar->dtype = ACL_BOOL;
      scalar->bytes[0] = value.ptr() == Py_True;
    } else if (PyLong_Check(value.ptr())) {
      const int64_t number = integer(parameter, value);
      scalar->dtype = ACL_INT64;
      std::memcpy(scalar->bytes, &number, sizeof number);
    } else {
      const double number = real(parameter, value);
      scalar->dtype = ACL_DOUBLE;
      std::memcpy(scalar->bytes, &number, sizeof number);
    }
  }

  void make_output(int i) {
    aclDataType dtype = ACL_DT_UNDEFINED;
    Dims shape;
    check(infer(op_, argument_, i, &dtype, &shape));
    const nb::object made = empty_array(like_, dtype, shape);
    view_array(made, op_.name, op_.parameters[i].name, true, &tensor_[i], &keep);
    argument_[i].tensor = &tensor_[i];
    keep.append(made);
    if (!result.is_valid()) result = made;
  }

 public:
  nb::handle like_;

 private:
  const Operator& op_;
  Argument argument_[kMaxParameters];
  Tensor tensor_[kMaxParameters];
  Scalar scalar_[kMaxParameters];
};

const Operator& operator_at(int index) {
  if (index < 0 || index >= operator_count) throw nb::index_error("no such operator");
  return *operators[index];
}

// Runs on this thread and the pool; other Python threads go on when the work is longer than a
// switch between them.
void run_here(const Executor& executor, void* workspace) {
  if (executor.brief()) {
    executor.run(workspace);
  } else {
    nb::gil_scoped_release release;
    executor.run(workspace);
  }
}

nb::object launch_function(int index, nb::args values) {
  const Operator& op = operator_at(index);
  if (static_cast<int>(values.size()) != op.parameter_count)
    throw nb::type_error("wrong number of arguments");
  Call call(op);
  call.read(values, true);
  Executor executor(&op);
  check(plan(op, call.arguments(), executor));
  std::vector<std::byte> workspace(executor.workspace_size());
  run_here(executor, workspace.data());
  return call.like_.is_valid() ? as_kind_of(call.like_, std::move(call.result))
                               : std::move(call.result);
}

struct PyStream {
  nb::list pending;  // what submitted work reads and writes: outlives the stream, whose end waits
                     // for that work
  std::unique_ptr<Stream> stream = std::make_unique<Stream>(nullptr);

  void synchronize() {
    {
      nb::gil_scoped_release release;
      stream->synchronize();
    }
    pending.clear();
  }
};

class Plan {
 public:
  Plan(int index, nb::args values) : op_(operator_at(index)), executor_(&op_) {
    if (static_cast<int>(values.size()) != op_.parameter_count)
      throw nb::type_error("wrong number of arguments");
    Call call(op_);
    call.read(values, false);
    check(plan(op_, call.arguments(), executor_));
    keep_ = std::move(call.keep);
    workspace_.resize(executor_.workspace_size());
  }

  const char* name() const { return op_.name; }
  uint64_t workspace_size() const { return executor_.workspace_size(); }

  void run() { run_here(executor_, workspace_.data()); }

  // The stream's thread never touches Python: the arrays stay alive in the stream's list until it
  // is synchronised.
  void run_on(PyStream& stream, nb::handle self) {
    struct Run {
      Executor executor;
      void* workspace;
    };
    auto run = std::make_unique<Run>(Run{executor_, workspace_.data()});
    stream.pending.append(self);
    stream.stream->submit({[](void* context) {
                             auto* now = static_cast<Run*>(context);
                             now->executor.run(now->workspace);
                           },
                           [](void* context) { delete static_cast<Run*>(context); },
                           run.release()});
  }

 private:
  const Operator& op_;
  Executor executor_;
  nb::object keep_;
  std::vector<std::byte> workspace_;
};

nb::dict config() {
  nb::dict values;
  values["version"] = OPENACLNN_VERSION;
  values["product"] = products[current_product()].key;
  values["kernels"] = kernels().isa;
  values["threads"] = num_threads();
  values["streaming_bytes"] = streaming_threshold();
  values["compiler"] = __VERSION__;
  return values;
}

}  // namespace
}  // namespace openaclnn::python

NB_MODULE(_core, m) {
  using namespace openaclnn;
  using namespace openaclnn::python;
  init_arrays();
  m.doc() = "The compiled core; the public names are those of openaclnn.";

  m.def("launch", &launch_function, nb::arg("index"), nb::arg("values"));
  nb::class_<PyStream>(m, "Stream", "An in-order queue of work with a thread of its own.")
      .def(nb::init<>())
      .def("synchronize", &PyStream::synchronize, "Waits until all work submitted so far is done.");
  nb::class_<Plan>(m, "Plan",
                   "Phase 1 of one call: checked, planned and ready to run any number of times.")
      .def(nb::init<int, nb::args>(), nb::arg("index"), nb::arg("values"))
      .def_prop_ro("name", &Plan::name, "The C name of the operator.")
      .def_prop_ro("workspace_size", &Plan::workspace_size,
                   "Bytes of workspace, which the plan owns.")
      .def(
          "run",
          [](nb::handle_t<Plan> self, PyStream* stream) {
            Plan& plan = *nb::inst_ptr<Plan>(self);
            stream == nullptr ? plan.run() : plan.run_on(*stream, self);
          },
          nb::arg("stream").none() = nb::none(),
          "Phase 2. Without a stream the results are there on return, else after "
          "stream.synchronize().");
  m.def("config", &config);
  m.def("set_product", [](const char* key) { check(set_product(key)); }, nb::arg("key"));
  m.def("set_num_threads", &set_num_threads, nb::arg("count"));
  m.def("set_streaming_bytes", &set_streaming_threshold, nb::arg("bytes"));
}
