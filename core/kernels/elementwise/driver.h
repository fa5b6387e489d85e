// SPDX-License-Identifier: Apache-2.0
// The element-wise driver converts tiles of any operands to the compute type, runs the formula,
// rounds and stores. An operand that is already packed in the compute type is used where it lies.
// The same formula code computes every element, so the bits of a result do not depend on length,
// alignment, layout or thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

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

  void advance() {
    if (++column_ < call_.column_tiles) return;
    column_ = 0;
    if (++row_ < call_.row_tiles) return;
    row_ = 0;
    for (int i = call_.loops - 3; i >= 0; --i) {
      if (++index_[i] < call_.size[i]) return;
      index_[i] = 0;
    }
  }

  int64_t first_row() const { return row_ * call_.tile_rows; }
  int64_t first_column() const { return column_ * call_.tile_columns; }

  // Returns the distance, in elements, from (0, …, 0) to the given place in this tile's plane.
  int64_t offset(const ElementwiseOperand& operand, int64_t row, int64_t column) const {
    const int rows = call_.loops - 2;
    int64_t sum = row * operand.stride[rows] + column * operand.stride[rows + 1];
    for (int i = 0; i < rows; ++i) sum += index_[i] * operand.stride[i];
    return sum;
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

// Runs all columns of one packed row at once, with 1 KiB of stack where the driver takes 48.
inline void run_row(const ElementwiseCall& call, int64_t first_tile, int64_t tiles) {
  const int64_t first = first_tile * call.tile_columns - line_shift(call);
  const int64_t begin = first < 0 ? 0 : first, behind = first + tiles * call.tile_columns;
  const int64_t end = behind < call.size[1] ? behind : call.size[1];
  if (begin >= end) return;
  const auto address = [=](const ElementwiseOperand& operand) {
    return static_cast<char*>(operand.data) + begin * operand.stride[1] * bytes_of(operand.element);
  };
  PackedInput in[kMaxInputs] = {};
  for (int i = 0; i < call.inputs; ++i) {
    const ElementwiseOperand& operand = call.operand[i];
    in[i] = {address(operand), call.takes_same && operand.stride[1] == 0};
  }
  call.packed(call.chosen.form, address(call.operand[call.output]), in, end - begin, call.stream);
}

template <class T>
class ElementwiseDriver {
 public:
  ElementwiseDriver(const ElementwiseCall& call, int64_t first_tile)
      : call_(call), cursor_(call, first_tile) {}

  void run(int64_t tiles) {
    const int64_t shift = line_shift(call_);
    for (int64_t tile = 0; tile < tiles; ++tile, cursor_.advance()) {
      int64_t column = cursor_.first_column() - shift;
      int64_t columns = call_.tile_columns;
      if (column < 0) columns += column, column = 0;
      const int64_t row = cursor_.first_row();
      const int64_t rows = least(call_.tile_rows, call_.size[call_.loops - 2] - row);
      columns = least(columns, call_.size[call_.loops - 1] - column);
      if (columns > 0) run_tile(row, column, rows, columns);
    }
  }

 private:
  static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

  void run_packed_formula(int64_t row, int64_t column, int64_t rows, int64_t columns) const {
    PackedInput in[kMaxInputs] = {};
    for (int i = 0; i < call_.inputs; ++i)
      in[i] = {address(call_.operand[i], row, column), one_value(i, rows, columns)};
    void* out = address(call_.operand[call_.output], row, column);
    call_.packed(call_.chosen.form, out, in, rows * columns, call_.stream);
  }

  bool all_packed(int64_t rows, int64_t columns) const {
    bool packed = call_.packed != nullptr;
    for (int i = 0; i <= call_.inputs; ++i)
      packed &= placement(call_.operand[i], rows, columns).packed() || one_value(i, rows, columns);
    return packed;
  }

  // Finds an input that is one value in such a tile, for a formula that accepts this.
  bool one_value(int i, int64_t rows, int64_t columns) const {
    return call_.takes_same && i < call_.inputs &&
           placement(call_.operand[i], rows, columns).constant();
  }

  Placement placement(const ElementwiseOperand& operand, int64_t rows, int64_t columns) const {
    return {rows, columns, operand.stride[call_.loops - 2], operand.stride[call_.loops - 1]};
  }

  void* address(const ElementwiseOperand& operand, int64_t row, int64_t column) const {
    return static_cast<char*>(operand.data) +
           cursor_.offset(operand, row, column) * bytes_of(operand.element);
  }

  // A tile that bypasses the cache is cut into small pieces, so that the stores of one drain while
  // the next is read. Pieces of 256, 512, 768 and 1024 values take 14.5, 12.3, 12.4 and 14.4 ms
  // (fp32 x -> y, 64 Mi, 2 threads, huge pages; a loop that stores each register as it is computed:
  // 10.8).
  void stream_tile(int64_t row, int64_t column, int64_t rows, int64_t columns, void* to) {
    constexpr int64_t kPiece = 512;
    const int64_t n = rows * columns;
    const T* whole[kMaxInputs] = {};      // inputs that are there as values, …
    const char* packed[kMaxInputs] = {};  // … and those that are widened piece by piece
    for (int i = 0; i < call_.inputs; ++i) {
      const ElementwiseOperand& operand = call_.operand[i];
      if (operand.element != element_of<T> && placement(operand, rows, columns).packed()) {
        packed[i] = static_cast<const char*>(address(operand, row, column));
        constant_[i] = nullptr;
      } else {
        whole[i] = load(i, row, column, rows, columns);
      }
    }
    const Element element = call_.operand[call_.output].element;
    for (int64_t k = 0; k < n; k += kPiece) {
      const int64_t piece = least(kPiece, n - k);
      const T* in[kMaxInputs] = {};
      for (int i = 0; i < call_.inputs; ++i) {
        in[i] = whole[i] != nullptr ? whole[i] + k : buffer_[i];
        if (whole[i] != nullptr) continue;
        const Element from = call_.operand[i].element;
        widen(buffer_[i], packed[i] + k * bytes_of(from), from, piece);
      }
      T* result = buffer_[kMaxInputs];
      compute(result, in, piece);
      const bool typed = element == element_of<T>;
      if (!typed) narrow(raw_, result, element, piece);
      stream_copy(static_cast<char*>(to) + k * bytes_of(element),
                  typed ? static_cast<void*>(result) : raw_, piece * bytes_of(element));
    }
  }

  void compute(T* out, const T* const* in, int64_t n) const {
    reinterpret_cast<TileLoop<T>>(const_cast<void*>(call_.chosen.tile))(call_.chosen.form, out, in,
                                                                        n);
  }

  void run_tile(int64_t row, int64_t column, int64_t rows, int64_t columns) {
    if (all_packed(rows, columns)) return run_packed_formula(row, column, rows, columns);
    const ElementwiseOperand& out = call_.operand[call_.output];
    const Placement at = placement(out, rows, columns);
    void* to = address(out, row, column);
    if (call_.stream && at.packed()) {
      stream_tile(row, column, rows, columns, to);
      return;
    }
    const T* in[kMaxInputs] = {};
    for (int i = 0; i < call_.inputs; ++i) in[i] = load(i, row, column, rows, columns);
    const int64_t n = rows * columns;
    const bool typed = out.element == element_of<T>;
    if (typed && at.packed()) {
      compute(static_cast<T*>(to), in, n);
      return;
    }
    T* result = buffer_[kMaxInputs];
    compute(result, in, n);
    if (at.packed()) {
      narrow(to, result, out.element, n);
      return;
    }
    if (!typed) narrow(raw_, result, out.element, n);
    const void* values = typed ? static_cast<void*>(result) : raw_;
    if (call_.stream && at.column_stride == 1) {
      stream_rows(to, values, bytes_of(out.element), at);
    } else {
      scatter(to, values, out.element, at);
    }
  }

  // Rows that lie far apart gain most from it; core/ops/elementwise.cpp, which decides, has
  // figures.
  static void stream_rows(void* to, const void* values, int64_t element_bytes,
                          const Placement& at) {
    const int64_t bytes = at.columns * element_bytes;
    for (int64_t r = 0; r < at.rows; ++r) {
      stream_copy(static_cast<char*>(to) + r * at.row_stride * element_bytes,
                  static_cast<const char*>(values) + r * bytes, bytes);
    }
  }

  const T* load(int i, int64_t row, int64_t column, int64_t rows, int64_t columns) {
    const ElementwiseOperand& operand = call_.operand[i];
    const Placement at = placement(operand, rows, columns);
    const void* from = address(operand, row, column);
    const int64_t n = rows * columns;
    const bool typed = operand.element == element_of<T>;
    T* values = buffer_[i];
    if (at.packed()) {
      if (typed) return static_cast<const T*>(from);
      widen(values, from, operand.element, n);
      constant_[i] = nullptr;
    } else if (at.constant()) {
      if (constant_[i] != from || constant_size_[i] < n) {  // a scalar once, not once a tile
        widen(values, from, operand.element, 1);
        for (int64_t k = 1; k < n; ++k) values[k] = values[0];
        constant_[i] = from, constant_size_[i] = n;
      }
    } else {
      gather(typed ? static_cast<void*>(values) : raw_, from, operand.element, at);
      if (!typed) widen(values, raw_, operand.element, n);
      constant_[i] = nullptr;
    }
    return values;
  }

  const ElementwiseCall& call_;
  TileCursor cursor_;
  // The address of the value that fills buffer_[i], if one does, and the number of elements filled.
  const void* constant_[kMaxInputs] = {};
  int64_t constant_size_[kMaxInputs] = {};
  alignas(64) T buffer_[kMaxInputs + 1][kTile<T>];
  alignas(64) unsigned char raw_[kTile<T> * 8];
};

template <class T>
[[gnu::noinline]] void run_tiles(const ElementwiseCall& call, int64_t begin, int64_t end) {
  ElementwiseDriver<T>(call, begin).run(end - begin);
}

template <class T>
void elementwise(const void* own, void*, int64_t begin, int64_t end) {
  const auto& call = *static_cast<const ElementwiseCall*>(own);
  call.one_row ? run_row(call, begin, end - begin) : run_tiles<T>(call, begin, end);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
