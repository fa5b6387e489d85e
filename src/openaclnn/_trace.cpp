// SPDX-License-Identifier: Apache-2.0
#include "_trace.h"

#include <dlfcn.h>

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

}  // namespace

const trace::PythonTracer* tracer() {
  static const auto* const found =
      static_cast<const trace::PythonTracer*>(dlsym(RTLD_DEFAULT, trace::kPythonTracer));
  return found;
}

void record(const Operator& op, bool plans, const Argument* arguments, int64_t begin,
            const nb::python_error* raised) {
  const int64_t end = tracer()->now();
  std::string text, file;
  int64_t line = 0;
  if (raised != nullptr) {
    text = nb::str(raised->type().attr("__name__")).c_str();
    text += std::string(": ") + nb::str(raised->value()).c_str();
  }
  if (const nb::object frame = frame_of_call(); !frame.is_none()) {
    file = nb::str(frame.attr("f_code").attr("co_filename")).c_str();
    line = nb::cast<int64_t>(frame.attr("f_lineno"));
  }
  tracer()->record({op, plans, arguments, file.c_str(), line,
                    raised == nullptr ? nullptr : text.c_str(), begin, end});
}

}  // namespace openaclnn::python
