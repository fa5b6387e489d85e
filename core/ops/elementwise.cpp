// SPDX-License-Identifier: Apache-2.0
// Phase 1 of the element-wise operators checks shapes and makes one ElementwiseCall.
#include <algorithm>

#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/view.h"
#include "core/ops/elementwise_loops.h"
#include "core/ops/isa.h"
#include "core/ops/argument_checks.h"
#include "core/ops/operator.h"
#include "core/ops/streaming.h"

namespace openaclnn {
namespace {

struct Operands {
  const Tensor* tensor[kMaxInputs + 1];
  int parameter[kMaxInputs + 1];  // positions in the row
  int inputs = 0;                 // the output is tensor[inputs]
  int inout = 0;                  // in place: which input it is
};

Operands collect(const Operator& op, const Argument* arguments) {
  Operands operands;
  int out = 0;
  for (int i = 0; i < op.parameter_count; ++i) {
    if (op.parameters[i].kind != Kind::tensor) continue;
    if (op.parameters[i].role != Role::input) out = i;
    if (op.parameters[i].role == Role::inout) operands.inout = operands.inputs;
    if (op.parameters[i].role == Role::output) continue;
    operands.parameter[operands.inputs] = i;
    operands.tensor[operands.inputs++] = arguments[i].tensor;
  }
  operands.parameter[operands.inputs] = out;
  operands.tensor[operands.inputs] = arguments[out].tensor;
  return operands;
}

// The common shape of the inputs.
Status input_shape(const Operator& op, const Operands& operands, Dims* shape) {
  *shape = operands.tensor[0]->shape;
  const char* first = op.parameters[operands.parameter[0]].name;
  for (int i = 1; i < operands.inputs; ++i) {
    const Dims& other = operands.tensor[i]->shape;
    const char* name = op.parameters[operands.parameter[i]].name;
    if (op.shapes == Shapes::same && !(other == *shape)) {
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_shape, op.name,
                  "%s must have the shape of %s %s, but got %s", name, first,
                  to_text(*shape).c_str(), to_text(other).c_str());
    }
    Dims both;
    if (!broadcast_shapes(*shape, other, &both)) {
      return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_shape, op.name,
                  "%s must broadcast with %s %s, but got %s", name, first, to_text(*shape).c_str(),
                  to_text(other).c_str());
    }
    *shape = both;
  }
  return {};
}

// "out must have the shape of self [2, 3], but got [3, 2]"
Status check_shapes(const Operator& op, const Operands& operands, Dims* shape) {
  if (Status status = input_shape(op, operands, shape); !status.ok()) return status;
  const char* first = op.parameters[operands.parameter[0]].name;
  const Dims& got = operands.tensor[operands.inputs]->shape;
  if (!(got == *shape)) {
    const char* name = op.parameters[operands.parameter[operands.inputs]].name;
    const std::string whose = op.shapes == Shapes::same ? std::string("shape of ") + first
                                                        : "broadcast shape of the inputs";
    return fail(ACLNN_ERR_PARAM_INVALID, Reason::wrong_shape, op.name,
                "%s must have the %s %s, but got %s", name, whose.c_str(), to_text(*shape).c_str(),
                to_text(got).c_str());
  }
  return {};
}

// Stack, including the frames below: 53 KiB.
constexpr size_t kTilesStack = 88 * 1024;

// Scalars are rounded to fp32 unless the computation is wide; what C passes as double stays double.
// Their NaNs become the canonical NaN.
void fill_attributes(const Operator& op, const Argument* arguments, bool wide, double* attribute) {
  double* const first = attribute;
  for (int i = 0; i < op.parameter_count; ++i) {
    switch (op.parameters[i].kind) {
      case Kind::scalar: {
        float rounded = 0;
        (void)scalar_value(*arguments[i].scalar, &rounded);
        *attribute = rounded;
        if (wide) (void)scalar_value(*arguments[i].scalar, attribute);
        ++attribute;
        break;
      }
      case Kind::real: *attribute++ = arguments[i].real; break;
      case Kind::flag: *attribute++ = arguments[i].flag ? 1 : 0; break;
      default: break;
    }
  }
  for (double* a = first; a != attribute; ++a) *a = *a == *a ? *a : __builtin_nan("");
}

}  // namespace

Status infer_elementwise(const Operator& op, const Argument* arguments, int, aclDataType* dtype,
                         Dims* shape) {
  const Operands operands = collect(op, arguments);
  *dtype = operands.tensor[0]->dtype;
  for (int i = 1; i < operands.inputs; ++i) {
    const aclDataType other = operands.tensor[i]->dtype;
    if (other == *dtype) continue;
    *dtype = other == ACL_DOUBLE || *dtype == ACL_DOUBLE
                 ? ACL_DOUBLE
                 : ACL_FLOAT;  // FLOAT16 and BF16 promote to FLOAT
  }
  return input_shape(op, operands, shape);
}

Status plan_elementwise(const Operator& op, const Argument* arguments, Executor& executor) {
  const Operands operands = collect(op, arguments);
  Dims shape;
  if (Status status = check_shapes(op, operands, &shape); !status.ok()) return status;
  for (const RuleFunction* rule = op.rules; *rule != nullptr; ++rule) {
    if (Status status = (*rule)(op, arguments); !status.ok()) return status;
  }
  for (int i = 0; i <= operands.inputs; ++i) {
    const Parameter& parameter = op.parameters[operands.parameter[i]];
    if (Status status = check_view(op, parameter, *operands.tensor[i]); !status.ok()) return status;
  }
  if (Status status = check_overlap(op, arguments); !status.ok()) return status;

  int64_t elements = 0;
  (void)element_count(shape,
                      &elements);  // in range, as the views are

  auto& call = executor.emplace_call<ElementwiseCall>();
  call.inputs = operands.inputs;
  bool wide = false, alike = true;
  for (int i = 0; i <= operands.inputs; ++i) {
    call.operand[i].element = element_of(operands.tensor[i]->dtype);
    alike &= call.operand[i].element == call.operand[0].element;
    wide |= i < operands.inputs && operands.tensor[i]->dtype == ACL_DOUBLE;
    const Parameter& parameter = op.parameters[operands.parameter[i]];
    const Role role = parameter.role;
    const bool again =
        role == Role::inout && i == operands.inputs;  // the in-place tensor is operand 0 already
    if (!again) executor.bind(parameter.name, operands.tensor[i], role, &call.operand[i].data);
    call.output = again ? operands.inout : i;
  }
  if (elements == 0) return {};

  call.computed = alike ? call.operand[0].element : wide ? Element::f64 : Element::f32;
  double attributes[kMaxAttributes];
  fill_attributes(op, arguments, wide, attributes);
  const ElementwiseKernels& kernel = kernels().elementwise;
  kernel.formula[static_cast<int>(op.formula)](attributes, call.computed, call.chosen);
  plan_loops(operands.tensor, shape, alike, wide ? kTile<double> : kTile<float>, call);

  const Tensor& out = *operands.tensor[operands.inputs];
  bool in_place = false;
  for (int i = 0; i < operands.inputs; ++i) in_place |= same_view(*operands.tensor[i], out);
  const int64_t bytes = elements * static_cast<int64_t>(dtype_size(out.dtype));
  // The rows of a block lie far apart, and stores to the cache would read each line first. With
  // transposed inputs, leaky_relu_backward of 2,048 × 2,048 elements takes 4.7 ms in fp32 and 4.5
  // ms in bf16 that way, and 1.9 and 1.6 ms with non-temporal stores; of 512 × 512, 0.13 and 0.11
  // ms in fp32.
  const bool blocks = call.tile_rows > 1 && call.column_tiles > 1;
  call.stream = !in_place && bytes >= streaming_threshold() / (blocks ? 8 : 1);

  int64_t tiles = call.row_tiles * call.column_tiles;
  for (int l = 0; l < call.loops - 2; ++l) tiles *= call.size[l];
  constexpr int64_t kGrain =
      16 * 1024;  // elements; below that a second thread costs more than it saves
  executor.add_step(kernel.run, tiles,
                    std::max<int64_t>(1, kGrain * tiles / std::max(elements, tiles)));
  executor.need_stack(kTilesStack);
  executor.estimate(elements /
                    4);  // 0.25 ns an element: cached fp32 is 0.1, cached half types 0.2 to 0.4
  return {};
}

}  // namespace openaclnn
