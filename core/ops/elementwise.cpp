// SPDX-License-Identifier: Apache-2.0
// Phase 1 of the element-wise operators: shapes, then one ElementwiseCall whose loops are as few
// and as contiguous as the strides allow.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/view.h"
#include "core/ops/isa.h"
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
      return fail(ACLNN_ERR_PARAM_INVALID, "%s: %s must have the shape of %s %s, but got %s",
                  op.name, name, first, to_text(*shape).c_str(), to_text(other).c_str());
    }
    Dims both;
    if (!broadcast_shapes(*shape, other, &both)) {
      return fail(ACLNN_ERR_PARAM_INVALID, "%s: %s must broadcast with %s %s, but got %s", op.name,
                  name, first, to_text(*shape).c_str(), to_text(other).c_str());
    }
    *shape = both;
  }
  return {};
}

Status check_shapes(const Operator& op, const Operands& operands, Dims* shape) {
  if (Status status = input_shape(op, operands, shape); !status.ok()) return status;
  const char* first = op.parameters[operands.parameter[0]].name;
  const Dims& out = operands.tensor[operands.inputs]->shape;
  if (!(out == *shape)) {
    const char* name = op.parameters[operands.parameter[operands.inputs]].name;
    const std::string whose = op.shapes == Shapes::same ? std::string("shape of ") + first
                                                        : "broadcast shape of the inputs";
    return fail(ACLNN_ERR_PARAM_INVALID, "%s: %s must have the %s %s, but got %s", op.name, name,
                whose.c_str(), to_text(*shape).c_str(), to_text(out).c_str());
  }
  return {};
}

// One loop of the pass: its length and the stride of every operand.
struct Loop {
  int64_t size;
  int64_t stride[kMaxInputs + 1];
};

int make_loops(const Operands& operands, const Dims& shape, Loop* loops) {
  int count = 0;
  for (int d = 0; d < shape.rank; ++d) {
    if (shape[d] == 1) continue;
    Loop& loop = loops[count++];
    loop.size = shape[d];
    for (int i = 0; i <= operands.inputs; ++i) {
      const Tensor& tensor = *operands.tensor[i];
      const int own = d - (shape.rank - tensor.shape.rank);
      loop.stride[i] = own < 0 || tensor.shape[own] == 1 ? 0 : tensor.strides[own];
    }
  }
  return count;
}

// Outermost first by the stride of the output, which is never 0; writes then run through memory.
void order_loops(Loop* loops, int count, int output) {
  for (int i = 1; i < count; ++i) {  // insertion: stable, and mostly in order already
    for (int k = i;
         k > 0 && std::abs(loops[k].stride[output]) > std::abs(loops[k - 1].stride[output]); --k) {
      std::swap(loops[k], loops[k - 1]);
    }
  }
}

// Two loops are one when, for every operand, the outer one goes on where the inner one ends.
int merge_loops(Loop* loops, int count, int operands) {
  int merged = 0;
  for (int i = 1; i < count; ++i) {
    Loop& outer = loops[merged];
    const Loop& inner = loops[i];
    bool joins = true;
    for (int k = 0; k < operands; ++k) joins &= outer.stride[k] == inner.stride[k] * inner.size;
    if (joins) {
      outer.size *= inner.size;
      std::copy_n(inner.stride, operands, outer.stride);
    } else {
      loops[++merged] = inner;
    }
  }
  return std::min(count, merged + 1);
}

// The loop that shares tiles with the innermost one: where an input is strided along the innermost
// loop, the loop along which that input is densest (a transposed input is then read in blocks);
// else the next one out, or the longest where that one would leave a tile nearly empty.
int choose_rows(const Loop* loops, int count, int inputs) {
  constexpr int64_t kWorthwhile = 256;  // elements of a tile
  int rows = count - 2;
  for (int i = 0; i < inputs; ++i) {
    if (std::abs(loops[count - 1].stride[i]) <= 1) continue;
    for (int l = count - 2; l >= 0; --l) {
      const int64_t stride = std::abs(loops[l].stride[i]);
      if (stride != 0 && stride < std::abs(loops[rows].stride[i])) rows = l;
    }
    return rows;
  }
  if (loops[rows].size >= kWorthwhile / loops[count - 1].size + 1) return rows;
  for (int l = count - 2; l >= 0; --l) {
    if (loops[l].size > loops[rows].size) rows = l;
  }
  return rows;
}

bool reads_blocks(const Loop& rows, const Loop& columns, int inputs) {
  if (rows.size == 1) return false;
  for (int i = 0; i < inputs; ++i) {
    if (std::abs(columns.stride[i]) > 1 && std::abs(rows.stride[i]) < std::abs(columns.stride[i]))
      return true;
  }
  return false;
}

// Whether rows are better taken one by one: all operands lie dense along them, but not all go on
// where a row ends, as a broadcast row does not, or are one value there, as a broadcast column is.
// Several at once would copy them for each (1,024 x 1,024 fp32, one thread: a row 0.158 -> 0.120 ns
// an element).
bool takes_single_rows(const ElementwiseCall& call, const Loop& rows, const Loop& columns) {
  constexpr int64_t kLong = 256;  // elements; below, the steps from row to row cost more
  bool dense = columns.size >= kLong, goes_on = true;
  for (int i = 0; i <= call.inputs; ++i) {
    const bool constant = columns.stride[i] == 0 && rows.stride[i] == 0;
    dense &= columns.stride[i] == 1 || constant || (call.takes_same && columns.stride[i] == 0);
    goes_on &= constant || rows.stride[i] == columns.size;
  }
  return dense && !goes_on;
}

// Along the innermost loop, one input and no more.
bool has_one_value(const Loop& columns, int inputs) {
  int found = 0;
  for (int i = 0; i < inputs; ++i) found += columns.stride[i] == 0 ? 1 : 0;
  return found == 1;
}

void fill_loops(ElementwiseCall& call, Loop* loops, int count, int64_t tile) {
  while (count < 2) {  // the two tiled loops always exist
    std::copy_backward(loops, loops + count, loops + count + 1);
    loops[0] = Loop{1, {}};
    ++count;
  }
  const int chosen = choose_rows(loops, count, call.inputs);
  std::rotate(loops + chosen, loops + chosen + 1, loops + count - 1);
  const Loop &rows = loops[count - 2], &columns = loops[count - 1];
  if (reads_blocks(rows, columns, call.inputs)) {
    call.tile_columns =
        std::min<int64_t>(columns.size, 32);  // 32 × 32 fp32: every cache line is used whole
  } else {
    call.tile_columns = std::min(columns.size, tile);
  }
  const bool single = call.packed != nullptr && takes_single_rows(call, rows, columns);
  call.tile_rows = single ? 1 : std::clamp<int64_t>(tile / call.tile_columns, 1, rows.size);
  call.loops = count;
  for (int l = 0; l < count; ++l) {
    call.size[l] = loops[l].size;
    for (int i = 0; i <= call.inputs; ++i) call.operand[i].stride[l] = loops[l].stride[i];
  }
  // One long row has a tile more, because its tiles begin at cache lines of the output.
  const bool one_row = rows.size == 1 && columns.size > call.tile_columns;
  call.row_tiles = (rows.size + call.tile_rows - 1) / call.tile_rows;
  call.column_tiles =
      (columns.size + call.tile_columns - 1) / call.tile_columns + (one_row ? 1 : 0);
}

// Scalars are rounded to fp32 unless the computation is wide; what C passes as double stays double.
void fill_attributes(const Operator& op, const Argument* arguments, bool wide, double* attribute) {
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
      case Kind::double_: *attribute++ = arguments[i].real; break;
      case Kind::bool_: *attribute++ = arguments[i].flag ? 1 : 0; break;
      default: break;
    }
  }
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
                 : ACL_FLOAT;  // two half types meet in FLOAT
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
                      &elements);  // the views, which hold as many, were found to be in range

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

  const FormulaEntry& formula = kernels().formula[static_cast<int>(op.formula)];
  const bool half = dtype_size(operands.tensor[operands.inputs]->dtype) == 2;
  call.formula = wide ? reinterpret_cast<const void*>(formula.f64)
                      : reinterpret_cast<const void*>(half ? formula.half : formula.f32);
  call.packed =
      alike && !wide ? formula.packed[static_cast<int>(call.operand[0].element)] : nullptr;
  fill_attributes(op, arguments, wide, call.attribute);
  Loop loops[kMaxLoops + 1];
  int count = make_loops(operands, shape, loops);
  order_loops(loops, count, operands.inputs);
  count = merge_loops(loops, count, operands.inputs + 1);
  call.takes_same =
      formula.takes_same && count != 0 && has_one_value(loops[count - 1], call.inputs);
  const int64_t tile = kTileBytes / (wide ? sizeof(double) : sizeof(float));
  fill_loops(call, loops, count, tile);

  const Tensor& out = *operands.tensor[operands.inputs];
  bool in_place = false;
  for (int i = 0; i < operands.inputs; ++i) in_place |= same_view(*operands.tensor[i], out);
  const int64_t bytes = elements * static_cast<int64_t>(dtype_size(out.dtype));
  call.stream = !in_place && bytes >= streaming_threshold();

  int64_t tiles = call.row_tiles * call.column_tiles;
  for (int l = 0; l < call.loops - 2; ++l) tiles *= call.size[l];
  constexpr int64_t kGrain =
      16 * 1024;  // elements; below that a second thread costs more than it saves
  executor.add_step(wide ? kernels().elementwise_f64 : kernels().elementwise_f32, tiles,
                    std::max<int64_t>(1, kGrain * tiles / std::max(elements, tiles)));
  executor.estimate(elements /
                    4);  // 0.25 ns an element: cached fp32 is 0.1, cached half types 0.2 to 0.4
  return {};
}

}  // namespace openaclnn
