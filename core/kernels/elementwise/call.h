// SPDX-License-Identifier: Apache-2.0
// Phase 1 passes this to the element-wise kernels.
#pragma once

#include "core/kernels/element.h"

namespace openaclnn {

inline constexpr int kMaxLoops = 8;
inline constexpr int kMaxInputs = 3;
inline constexpr int kMaxAttributes = 6;

// One operand of an element-wise pass. Strides are in elements, one per loop.
struct ElementwiseOperand {
  void* data;  // element (0, …, 0)
  int64_t stride[kMaxLoops];
  Element element;
};

// Runs a form over a tile: n values of each input, all contiguous; `out` may be one of the inputs.
template <class T>
using TileLoop = void (*)(const void* form, T* out, const T* const* in, int64_t n);

// n values that lie side by side, or one that stands for all n.
struct PackedInput {
  const void* data;
  bool same;  // only for formulas that take it
};

// Does the same over packed operands of one type in memory, with streaming stores if they bypass
// the cache.
using PackedLoop = void (*)(const void* form, void* out, const PackedInput* in, int64_t n,
                            bool stream);

inline constexpr int kFormBytes = 192;

// The form of a formula that suits the attributes, with the loops that run it. Phase 1 chooses it
// once.
struct ChosenForm {
  alignas(16) unsigned char form[kFormBytes];  // an object that only the loops understand
  const void* tile;                            // TileLoop<float> or TileLoop<double>
  PackedLoop packed[3];  // of f32, f16, bf16, as in Element; nullptr for other results than these
  bool doubts;           // `packed` may compute some values twice, for which it needs stack
};

// Attributes come in the order of the row. Scalars among them are rounded to float unless the form
// computes in double, and a NaN is the canonical one.
using ChooseForm = void (*)(const double* attributes, ChosenForm& to);

// An element-wise pass has loops, the outermost first; the last two are tiled. Item i of the step
// is tile i, counted row-major over (outer loops, row blocks, column blocks).
struct ElementwiseCall {
  ElementwiseOperand operand[kMaxInputs + 1];  // inputs, then the output
  int32_t inputs;
  int32_t output;  // which operand is written: the one after the inputs, or 0 in place
  int32_t loops;   // at least 2
  int64_t size[kMaxLoops];
  int64_t tile_rows, tile_columns;
  int64_t row_tiles, column_tiles;
  ChosenForm chosen;
  PackedLoop packed;  // if all operands are of one type that is computed in float
  bool takes_same;    // `packed` takes one input that is a single value, and the pass has one
  bool one_row;       // `packed` takes all columns at once, without the buffers of tiles
  bool stream;        // store past the cache
};

struct FormulaEntry {
  ChooseForm half;  // good for outputs of 16 bits
  ChooseForm f32;
  ChooseForm f64;
  bool takes_same;  // `packed` takes one input that is a single value
};

enum class FormulaId : int32_t {
#define FORMULA(name, inputs, broadcasts) name,
#include "generated/formulas.inc"
#undef FORMULA
  count,
  none = count  // a family without formulas
};

struct ElementwiseKernels {
  void (*f32)(const void* call, void* workspace, int64_t begin, int64_t end);
  void (*f64)(const void* call, void* workspace, int64_t begin, int64_t end);
  FormulaEntry formula[static_cast<int>(FormulaId::count)];
};

}  // namespace openaclnn
