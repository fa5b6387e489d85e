// SPDX-License-Identifier: Apache-2.0
// This is the border between phase 1 and the kernels: plain data in, function pointers out. No
// functions are defined here, and kernel objects define no weak symbols, so that no AVX-512 copy of
// a shared function can end up in baseline code. They are compiled once per instruction set:
// OPENACLNN_ISA is v2, v3, v4 (x86-64 levels) or native (aarch64).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/kernels/group_norm_call.h"

// kernels_v4 of kernels_
#define OPENACLNN_JOIN_(a, b) a##b
#define OPENACLNN_JOIN(a, b) OPENACLNN_JOIN_(a, b)
#define OPENACLNN_OF_ISA(name) OPENACLNN_JOIN(name, OPENACLNN_ISA)

namespace openaclnn {

enum class Element : uint8_t { f32, f16, bf16, f64 };

inline constexpr int kMaxLoops = 8;
inline constexpr int kMaxInputs = 3;
inline constexpr int kMaxAttributes = 6;
// Bytes of computed values in a tile: its inputs and output fit L1 together.
inline constexpr int64_t kTileBytes = 8192;
template <class T>
inline constexpr int64_t kTile = kTileBytes / sizeof(T);

// One operand of an element-wise pass. Strides are in elements, one per loop.
struct ElementwiseOperand {
  void* data;  // element (0, …, 0)
  int64_t stride[kMaxLoops];
  Element element;
};

// Runs the formula over a tile: n values of each input, all contiguous; `out` may be one of the
// inputs. Attributes come in the order of the row. Scalars among them are rounded to float unless T
// is double, and a NaN is the canonical one.
template <class T>
using Formula = void (*)(const double* attributes, T* out, const T* const* in, int64_t n);

// n values that lie side by side, or one that stands for all n.
struct PackedInput {
  const void* data;
  bool same;  // only for formulas that take it
};

// Does the same over packed operands of one type in memory, with streaming stores if they bypass
// the cache.
using PackedFormula = void (*)(const double* attributes, void* out, const PackedInput* in,
                               int64_t n, bool stream);

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
  const void* formula;   // Formula<float> or Formula<double>
  PackedFormula packed;  // if all operands are of one type that is computed in float
  bool takes_same;       // `packed` takes one input that is a single value, and the pass has one
  bool one_row;          // `packed` takes all columns at once, without the buffers of tiles
  double attribute[kMaxAttributes];
  bool stream;  // store past the cache
};

struct FormulaEntry {
  Formula<float> half;  // good for outputs of 16 bits
  Formula<float> f32;
  Formula<double> f64;
  PackedFormula packed[3];  // f32, f16, bf16, as in Element
  bool takes_same;          // one input may be a single value
  bool doubts;              // `packed` may compute some values twice, for which it needs stack
};

enum class FormulaId : int32_t {
#define FORMULA(name, inputs, broadcasts) name,
#include "generated/formulas.inc"
#undef FORMULA
  count,
  none = count  // a family without formulas
};

// Everything that is compiled once for each instruction set.
struct Kernels {
  const char* isa;
  void (*elementwise_f32)(const void* call, void* workspace, int64_t begin, int64_t end);
  void (*elementwise_f64)(const void* call, void* workspace, int64_t begin, int64_t end);
  const GroupNormKernels& group_norm;
  FormulaEntry formula[static_cast<int>(FormulaId::count)];
};

}  // namespace openaclnn
