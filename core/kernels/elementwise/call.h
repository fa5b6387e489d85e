// SPDX-License-Identifier: Apache-2.0
// Phase 1 passes this to the element-wise kernels.
#pragma once

#include "core/kernels/element.h"

namespace openaclnn {

inline constexpr int kMaxLoops = 8;
inline constexpr int kMaxInputs = 2;
inline constexpr int kMaxAttributes = 6;

// One operand of an element-wise pass. Strides are in elements, one per loop.
struct ElementwiseOperand {
  void* data;  // element (0, …, 0)
  int64_t stride[kMaxLoops];
  Element element;
};

// n contiguous values, or one value for all n.
struct PackedInput {
  const void* data;
  bool same;
};

// Runs a form over n values of each input. All operands have one type; `out` may be one of the
// inputs. With `stream`, results are written with non-temporal stores.
using PackedLoop = void (*)(const void* form, void* out, const PackedInput* in, int64_t n,
                            bool stream);

inline constexpr int kFormBytes = 192;

// The form of a formula that suits the attributes, with the loop that runs it. Phase 1 chooses it
// once.
struct ChosenForm {
  alignas(16) unsigned char form[kFormBytes];  // an object that only the loop understands
  PackedLoop loop;
};

// Chooses a form for operands of the given type. Attributes come in the order of the row. Scalars
// among them are rounded to float unless the type is double, and a NaN is the canonical one.
using ChooseForm = void (*)(const double* attributes, Element type, ChosenForm& to);

// An element-wise pass has loops, the outermost first; the last two are tiled. Item i of the step
// is tile i, counted row-major over (outer loops, row blocks, column blocks).
struct ElementwiseCall {
  ElementwiseOperand operand[kMaxInputs + 1];  // inputs, then the output
  int32_t inputs;
  int32_t output;  // which operand is written: the one after the inputs or, in place, an input
  int32_t loops;   // at least 2
  int64_t size[kMaxLoops];
  int64_t tile_rows, tile_columns;
  int64_t row_tiles, column_tiles;
  ChosenForm chosen;
  Element computed;  // the type of all operands; if they differ, f64 if an input has it, else f32
  bool rows;    // each row is packed, or one value, for every operand: no buffers of tiles needed
  bool stream;  // non-temporal stores
};

enum class FormulaId : int32_t {
#define FORMULA(name, inputs) name,
#include "generated/formulas.inc"
#undef FORMULA
  count,
  none = count  // a family without formulas
};

struct ElementwiseKernels {
  void (*run)(const void* call, void* workspace, int64_t begin, int64_t end);
  ChooseForm formula[static_cast<int>(FormulaId::count)];
};

}  // namespace openaclnn
