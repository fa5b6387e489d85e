// SPDX-License-Identifier: Apache-2.0
#include "metadata.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "numbers.h"
#include "plan.h"
#include "core/base/dtype.h"
#include "core/ops/direct.h"
#include "core/ops/argument_checks.h"
#include "core/ops/operator.h"
#include "core/support/product.h"

namespace openaclnn::python {
namespace {

constexpr const char* kKinds[] = {"tensor", "scalar", "double", "int64", "bool", "text"};
constexpr const char* kRoles[] = {"input", "output", "inout", "attribute"};
constexpr const char* kSources[] = {"incoming", "value", "constant", "wanted", "made"};

nb::list dtype_names(uint64_t dtypes) {
  nb::list names;
  for (int d = 0; d < 64; ++d) {
    if ((dtypes >> d & 1) != 0) names.append(dtype_name(static_cast<aclDataType>(d)));
  }
  return names;
}

nb::object name_of(const Row& row, int parameter) {
  return parameter < 0 ? nb::none() : nb::cast(row.parameters[parameter].name);
}

nb::list names_in(const Row& row, uint32_t mask) {
  nb::list names;
  for (int i = 0; i < row.parameter_count; ++i) {
    if ((mask >> i & 1) != 0) names.append(row.parameters[i].name);
  }
  return names;
}

nb::object gradient_of(const Row& row) {
  const Gradient& gradient = row.gradient;
  if (gradient.row < 0) return nb::none();
  nb::dict found;
  nb::list sources;
  for (int i = 0; i < gradient.source_count; ++i) {
    const Source& s = gradient.sources[i];
    sources.append(
        nb::make_tuple(kSources[static_cast<int>(s.from)], name_of(row, s.parameter), s.constant));
  }
  found["row"] = openaclnn_row(gradient.row)->name;
  found["sources"] = sources;
  found["zero"] = names_in(row, gradient.zero);
  found["nonnegative"] = names_in(row, gradient.nonnegative);
  found["only_if"] = name_of(row, gradient.only_if);
  return found;
}

nb::dict row_of(const Row& row) {
  nb::dict found;
  found["name"] = row.name;
  found["python"] = row.python;
  found["arguments"] = row.arguments;
  found["outputs"] = row.outputs;
  found["inplace"] = row.inplace;
  found["pointwise"] = row.pointwise;
  nb::list parameters;
  for (int i = 0; i < row.parameter_count; ++i) {
    const Parameter& p = row.parameters[i];
    nb::dict one;
    one["name"] = p.name;
    one["python"] = p.python;
    one["kind"] = kKinds[static_cast<int>(p.kind)];
    one["role"] = kRoles[static_cast<int>(p.role)];
    one["required"] = p.required;
    one["companion"] = p.companion;
    one["condition"] = name_of(row, p.condition);
    one["argument"] = static_cast<int>(p.argument);
    parameters.append(one);
  }
  found["parameters"] = parameters;
  nb::dict accepted;
  for (int i = 0; i < product_count; ++i)
    accepted[products[i].key] = dtype_names(accepted_dtypes(row, i));
  found["accepted"] = accepted;
  found["gradient"] = gradient_of(row);
  return found;
}

nb::list rows() {
  nb::list all;
  for (int i = 0; const Row* row = openaclnn_row(i); ++i) all.append(row_of(*row));
  return all;
}

std::string in_python(const Row& row, const std::string& sentence) {
  std::string text(2 * sentence.size() + 64, '\0');  // a name of Python may be longer
  openaclnn_python_sentence(&row, sentence.c_str(), text.data(), text.size());
  return text.c_str();
}

// The values of a call as metadata: a tensor is (dtype, shape), (dtype, shape, strides) or
// (dtype, shape, strides, address).
class Metadata {
 public:
  Metadata(const Row& row, const nb::args& values) : row_(row) {
    if (static_cast<int>(values.size()) != row.parameter_count)
      throw nb::type_error("wrong number of arguments");
    for (int i = 0; i < row.parameter_count; ++i) {
      const Parameter& p = row.parameters[i];
      const ArgumentRef argument{row.python, p.python, false};
      const nb::handle value = values[static_cast<size_t>(i)];
      value_[i].tensor = nullptr;
      switch (p.kind) {
        case Kind::tensor:
          if (!value.is_none()) view(i, value);
          break;
        case Kind::scalar:
        case Kind::real: value_[i].real = to_real(value, argument); break;
        case Kind::integer: value_[i].integer = to_integer(value, argument); break;
        case Kind::flag: value_[i].integer = to_flag(value, argument) ? 1 : 0; break;
        case Kind::text:
          if (!value.is_none()) value_[i].text = to_text(value, argument);
          break;
      }
    }
  }

  const openaclnn_value* get() const { return value_; }

 private:
  void view(int i, nb::handle value) {
    nb::tuple given;
    std::string dtype;
    uintptr_t address = 0;
    const bool good = nb::try_cast(value, given) && given.size() >= 2 && given.size() <= 4 &&
                      nb::try_cast(nb::handle(given[0]), dtype) &&
                      nb::try_cast(nb::handle(given[1]), shape_[i]) &&
                      (given.size() < 3 || nb::try_cast(nb::handle(given[2]), strides_[i])) &&
                      (given.size() < 4 || nb::try_cast(nb::handle(given[3]), address));
    if (!good) throw nb::type_error("a tensor is (dtype, shape), strides and address optional");
    if (given.size() > 2 && strides_[i].size() != shape_[i].size())
      throw nb::type_error("a stride for each size");
    openaclnn_view& view = view_[i];
    view.data = reinterpret_cast<void*>(address);
    view.shape = shape_[i].data();
    view.strides = given.size() > 2 ? strides_[i].data() : nullptr;
    view.rank = static_cast<int32_t>(shape_[i].size());
    view.dtype = openaclnn_dtype(dtype.c_str());
    if (view.dtype == ACL_DT_UNDEFINED) {
      const std::string name = std::string(row_.python) + ": " + row_.parameters[i].python;
      throw nb::value_error(
          (name + " must have a dtype of the aclnn API, but got " + dtype).c_str());
    }
    value_[i].tensor = &view;
  }

  const Row& row_;
  std::vector<int64_t> shape_[kMaxParameters], strides_[kMaxParameters];
  openaclnn_view view_[kMaxParameters];
  openaclnn_value value_[kMaxParameters];
};

// (dtype, shape) of each output that the call makes, None where nobody wants it.
nb::list check_call(int index, const nb::args& values, bool everything) {
  const Row& row = operator_at(index);
  const Metadata metadata(row, values);
  openaclnn_made made[kMaxParameters];
  if (openaclnn_check(&row, metadata.get(), everything ? 1 : 0, made) != 0)
    throw nb::value_error(in_python(row, take_sentence()).c_str());
  nb::list found;
  for (int i = 0; i < row.parameter_count; ++i) {
    if (row.parameters[i].role != Role::output) continue;
    if (made[i].rank < 0) {
      found.append(nb::none());
      continue;
    }
    nb::list shape;
    for (int d = 0; d < made[i].rank; ++d) shape.append(made[i].shape[d]);
    const std::string dtype = in_python(row, dtype_name(static_cast<aclDataType>(made[i].dtype)));
    found.append(nb::make_tuple(dtype, nb::tuple(shape)));
  }
  return found;
}

}  // namespace

void define_metadata(nb::module_& m) {
  m.attr("MAX_RANK") = kMaxRank;
  m.def("rows", &rows, "What each row is, in the order of table.py.");
  m.def(
      "check", &check_call, nb::arg("index"), nb::arg("values"), nb::kw_only(),
      nb::arg("everything") = false,
      "Phase 1 on metadata: a tensor is (dtype, shape), (dtype, shape, strides) or (dtype, shape, "
      "strides, address), an output to be made None. Returns (dtype, shape) of the outputs that "
      "are made. A refusal is a "
      "ValueError with the names of Python; `everything`: as product any.");
  m.def(
      "python_sentence",
      [](int index, const std::string& sentence) {
        return in_python(operator_at(index), sentence);
      },
      nb::arg("index"), nb::arg("sentence"),
      "A sentence about a call of this row, with the names of Python.");
}

}  // namespace openaclnn::python
