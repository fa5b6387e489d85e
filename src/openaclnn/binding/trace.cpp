// SPDX-License-Identifier: Apache-2.0
#include "trace.h"

#include <dlfcn.h>

#include <new>
#include <string>

namespace openaclnn::python {
namespace {

namespace nb = nanobind;

// The innermost frame outside this package; None if there is none.
nb::object frame_of_call() {
  nb::object frame = nb::module_::import_("sys").attr("_getframe")();
  while (!frame.is_none()) {
    const nb::str module(nb::object(frame.attr("f_globals").attr("get")("__name__", "")));
    const std::string name = module.c_str();
    if (name != "openaclnn" && name.rfind("openaclnn.", 0) != 0) break;
    frame = frame.attr("f_back");
  }
  return frame;
}

// A value that was not converted: a number or text as Python writes it, the dtype and shape of an
// array, the type of anything else.
std::string text_of(nb::handle value) {
  constexpr size_t kMost = 80;
  const std::string type = nb::str(value.type().attr("__name__")).c_str();
  const bool plain = value.is_none() || PyFloat_CheckExact(value.ptr()) ||
                     PyLong_CheckExact(value.ptr()) || PyBool_Check(value.ptr()) ||
                     PyUnicode_CheckExact(value.ptr());
  if (!plain && !(nb::hasattr(value, "dtype") && nb::hasattr(value, "shape"))) return type;
  try {
    std::string text;
    if (plain) {
      text = nb::repr(value).c_str();
    } else {
      const nb::object dtype = value.attr("dtype"), shape = value.attr("shape");
      text = type + " " + nb::str(dtype).c_str() + " " + nb::repr(nb::list(shape)).c_str();
    }
    return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
  } catch (const nb::python_error&) {  // a foreign type may raise anything
    return type;
  }
}

// As Python shows it at the end of a traceback. Other exceptions are converted as nanobind does
// with them.
std::string text_of(const std::exception_ptr& raised) {
  try {
    std::rethrow_exception(raised);
  } catch (const nb::python_error& error) {
    const std::string type = nb::str(error.type().attr("__name__")).c_str();
    return type + ": " + nb::str(error.value()).c_str();
  } catch (const nb::builtin_exception& error) {
    return std::string(error.type() == nb::exception_type::type_error ? "TypeError: " : "") +
           error.what();
  } catch (const std::bad_alloc&) {
    return "MemoryError";
  } catch (const std::exception& error) {
    return std::string("RuntimeError: ") + error.what();
  }
}

const aclOpExecutor* handle(const Executor* plan) {
  return reinterpret_cast<const aclOpExecutor*>(plan);
}

}  // namespace

const trace::PythonTracer* tracer() {
  static const auto* const found =
      static_cast<const trace::PythonTracer*>(dlsym(RTLD_DEFAULT, trace::kPythonTracer));
  return found;
}

void Traced::converted(const Argument* arguments) {
  for (int i = 0; i < op.parameter_count; ++i)
    texts.push_back(tracer()->show(op.parameters[i], arguments[i]));
}

uint64_t submit(const Traced& call) {
  return tracer()->submit(call.op, handle(call.plan), call.stream);
}

void record(const Traced& call, uint64_t submission, int64_t begin, std::exception_ptr raised) {
  const int64_t end = tracer()->now();
  const std::string exception = raised == nullptr ? "" : text_of(raised);
  std::vector<std::string> texts = call.texts;
  if (texts.empty() && call.values.size() == static_cast<size_t>(call.op.parameter_count)) {
    for (PyObject* const value : call.values) texts.push_back(text_of(nb::handle(value)));
  }
  std::string file;
  int64_t line = 0;
  if (const nb::object frame = frame_of_call(); !frame.is_none()) {
    file = nb::str(frame.attr("f_code").attr("co_filename")).c_str();
    line = nb::cast<int64_t>(frame.attr("f_lineno"));
  }
  tracer()->record({.op = call.op,
                    .plans = call.plans,
                    .arguments = texts.empty() ? nullptr : texts.data(),
                    .plan = handle(call.plan),
                    .stream = call.stream,
                    .submission = submission,
                    .file = file.c_str(),
                    .line = line,
                    .raised = raised == nullptr ? nullptr : exception.c_str(),
                    .begin = begin,
                    .end = end});
}

}  // namespace openaclnn::python
