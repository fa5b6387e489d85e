// SPDX-License-Identifier: Apache-2.0
// The element-wise driver gathers tiles of any operands, runs the loop of a formula and scatters
// the results. An operand that is already packed is used where it lies. If the operands have
// different types, their values are converted to the computed type, and results from it. The same
// formula code computes every element, so the bits of a result do not depend on length, alignment,
// layout or thread.
#pragma once

#include <cstdint>

#include "core/kernels/elementwise/call.h"
#include "core/kernels/tile.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

// The loop indices of a tile, advanced like an odometer.
class TileCursor {
 public:
  TileCursor(const ElementwiseCall& call, int64_t tile) : call_(call) {
    column_ = tile % call.column_tiles;
    tile /= call.column_tiles;
    row_ = tile % call.row_tiles;
    tile /= call.row_tiles;
    for (int i = call.loops - 3; i >= 0; --i) {
      index_[i] = tile % call.size[i];
      tile /= call.size[i];
    }
  }

  // Goes on by one tile, or by several of a row.
  void advance(int64_t tiles) {
    column_ += tiles;
    if (column_ < call_.column_tiles) return;
    column_ = 0;
    if (++row_ < call_.row_tiles) return;
    row_ = 0;
    for (int i = call_.loops - 3; i >= 0; --i) {
      if (++index_[i] < call_.size[i]) return;
      index_[i] = 0;
    }
  }

  int64_t tiles_of_row() const { return call_.column_tiles - column_; }
  int64_t first_row() const { return row_ * call_.tile_rows; }
  int64_t first_column() const { return column_ * call_.tile_columns; }

  // Returns where the given place in this tile's plane is.
  void* address(const ElementwiseOperand& operand, int64_t row, int64_t column) const {
    const int rows = call_.loops - 2;
    int64_t offset = row * operand.stride[rows] + column * operand.stride[rows + 1];
    for (int i = 0; i < rows; ++i) offset += index_[i] * operand.stride[i];
    return element_at(operand.data, operand.element, offset);
  }

 private:
  const ElementwiseCall& call_;
  int64_t row_, column_;
  int64_t index_[kMaxLoops];
};

// Tiles of one long row begin at cache lines of the output. This is the number of elements by which
// the first tile is shorter.
inline int64_t line_shift(const ElementwiseCall& call) {
  if (call.size[call.loops - 2] != 1 || call.column_tiles <= 1) return 0;
  const ElementwiseOperand& out = call.operand[call.output];
  return (reinterpret_cast<uintptr_t>(out.data) & 63) / bytes_of(out.element);
}

class ElementwiseDriver {
 public:
  ElementwiseDriver(const ElementwiseCall& call, int64_t first_tile)
      : call_(call), cursor_(call, first_tile) {}

  // Rows that are packed, or one value, are run as far as possible at once.
  void run(int64_t tiles) {
    const int64_t shift = line_shift(call_);
    for (int64_t some; tiles > 0; tiles -= some, cursor_.advance(some)) {
      some = call_.rows ? smaller(tiles, cursor_.tiles_of_row()) : 1;
      const int64_t first = cursor_.first_column() - shift, column = first < 0 ? 0 : first;
      const int64_t row = cursor_.first_row();
      const int64_t rows = smaller(call_.tile_rows, call_.size[call_.loops - 2] - row);
      const int64_t end = smaller(first + some * call_.tile_columns, call_.size[call_.loops - 1]);
      if (column < end) run_tile(row, column, rows, end - column);
    }
  }

 private:
  Placement placement(const ElementwiseOperand& operand, int64_t rows, int64_t columns) const {
    return {rows, columns, operand.stride[call_.loops - 2], operand.stride[call_.loops - 1]};
  }

  bool typed(const ElementwiseOperand& operand) const { return operand.element == call_.computed; }

  // Calls work(values) with values of the computed type.
  void as_computed(void* values, const auto& work) const {
    call_.computed == Element::f64 ? work(static_cast<double*>(values))
                                   : work(static_cast<float*>(values));
  }

  void run_tile(int64_t row, int64_t column, int64_t rows, int64_t columns) {
    PackedInput in[kMaxInputs] = {};
    for (int i = 0; i < call_.inputs; ++i) in[i] = load(i, row, column, rows, columns);
    const int64_t n = rows * columns;
    const ElementwiseOperand& out = call_.operand[call_.output];
    const Placement at = placement(out, rows, columns);
    void* const to = cursor_.address(out, row, column);
    if (typed(out) && at.packed()) {
      call_.chosen.loop(call_.chosen.form, to, in, n, call_.stream);
      return;
    }
    void* result = buffer_[kMaxInputs];
    call_.chosen.loop(call_.chosen.form, result, in, n, false);
    if (!typed(out)) {
      const bool direct = at.packed() && !call_.stream;
      as_computed(result, [&](auto* in) { narrow(direct ? to : raw_, in, out.element, n); });
      if (direct) return;
      result = raw_;
    }
    if (call_.stream && at.packed()) {
      stream_copy(to, result, n * bytes_of(out.element));
    } else if (call_.stream && at.column_stride == 1) {
      // Rows that lie far apart gain most from it; core/ops/elementwise.cpp, which decides, has
      // figures.
      const int64_t bytes = bytes_of(out.element);
      for (int64_t r = 0; r < rows; ++r) {
        stream_copy(static_cast<char*>(to) + r * at.row_stride * bytes,
                    static_cast<const char*>(result) + r * columns * bytes, columns * bytes);
      }
    } else {
      scatter(to, result, out.element, at);
    }
  }

  PackedInput load(int i, int64_t row, int64_t column, int64_t rows, int64_t columns) {
    const ElementwiseOperand& operand = call_.operand[i];
    const Placement at = placement(operand, rows, columns);
    const void* from = cursor_.address(operand, row, column);
    const bool same = at.constant();
    if (!same && !at.packed()) {
      void* const values = typed(operand) ? buffer_[i] : raw_;
      gather(values, from, operand.element, at);
      from = values;
    }
    if (typed(operand)) return {from, same};
    as_computed(buffer_[i], [&](auto* values) {
      widen(values, from, operand.element, same ? 1 : rows * columns);
    });
    return {buffer_[i], same};
  }

  const ElementwiseCall& call_;
  TileCursor cursor_;
  alignas(64) unsigned char buffer_[kMaxInputs + 1][kTileBytes];  // of the computed type
  alignas(64) unsigned char raw_[kTile<float> * sizeof(double)];  // of an operand's own
};

void run_elementwise(const void* call, void*, int64_t begin, int64_t end) {
  ElementwiseDriver(*static_cast<const ElementwiseCall*>(call), begin).run(end - begin);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
