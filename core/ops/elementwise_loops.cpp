// SPDX-License-Identifier: Apache-2.0
#include "core/ops/elementwise_loops.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace openaclnn {
namespace {

// One loop of the pass, with its length and the stride of every operand.
struct Loop {
  int64_t size;
  int64_t stride[kMaxInputs + 1];
};

int make_loops(const Tensor* const* tensors, int inputs, const Dims& shape, Loop* loops) {
  int count = 0;
  for (int d = 0; d < shape.rank; ++d) {
    if (shape[d] == 1) continue;
    Loop& loop = loops[count++];
    loop.size = shape[d];
    for (int i = 0; i <= inputs; ++i) {
      const Tensor& tensor = *tensors[i];
      const int own = d - (shape.rank - tensor.shape.rank);
      loop.stride[i] = own < 0 || tensor.shape[own] == 1 ? 0 : tensor.strides[own];
    }
  }
  return count;
}

// Sorts the loops by the stride of the output, which is never 0, largest first; writes then run
// through memory.
void order_loops(Loop* loops, int count, int output) {
  for (int i = 1; i < count; ++i) {  // insertion: stable, and mostly in order already
    for (int k = i;
         k > 0 && std::abs(loops[k].stride[output]) > std::abs(loops[k - 1].stride[output]); --k) {
      std::swap(loops[k], loops[k - 1]);
    }
  }
}

// Joins two loops if, for every operand, the outer one continues where the inner one ends.
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

// Chooses the loop that shares tiles with the innermost one. If an input is strided along the
// innermost loop, it is the loop along which that input is densest (a transposed input is then read
// in blocks); otherwise the next one out, or the longest one if that would leave a tile nearly
// empty.
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

// Returns whether rows are better taken one by one. This holds if all operands are dense along
// rows, but some do not continue where a row ends (a broadcast row) or are one value in it (a
// broadcast column). Several rows at once would copy these for each row (1,024 x 1,024 fp32, one
// thread, a broadcast row: 0.158 -> 0.120 ns an element).
bool takes_single_rows(const ElementwiseCall& call, const Loop& rows, const Loop& columns) {
  constexpr int64_t kLong = 256;  // elements; below, the steps from row to row cost more
  bool dense = columns.size >= kLong, goes_on = true;
  for (int i = 0; i <= call.inputs; ++i) {
    dense &= columns.stride[i] == 1 || columns.stride[i] == 0;
    goes_on &= rows.stride[i] == columns.size * columns.stride[i];
  }
  return dense && !goes_on;
}

// Returns whether tiles are parts of rows in which every operand is dense, or one value.
bool has_dense_rows(const ElementwiseCall& call) {
  bool dense = call.tile_rows == 1;
  for (int i = 0; i <= call.inputs; ++i) {
    const int64_t stride = call.operand[i].stride[call.loops - 1];
    dense &= stride == 1 || stride == 0;  // of the output 0 if it has one element
  }
  return dense;
}

void fill_loops(ElementwiseCall& call, Loop* loops, int count, bool alike, int64_t tile) {
  while (count < 2) {  // the two tiled loops always exist
    std::copy_backward(loops, loops + count, loops + count + 1);
    loops[0] = Loop{1, {}};
    ++count;
  }
  const int chosen = choose_rows(loops, count, call.inputs);
  std::rotate(loops + chosen, loops + chosen + 1, loops + count - 1);
  const Loop &rows = loops[count - 2], &columns = loops[count - 1];
  if (reads_blocks(rows, columns, call.inputs)) {
    call.tile_columns = std::min<int64_t>(columns.size, 32);  // every cache line is used whole
  } else {
    call.tile_columns = std::min(columns.size, tile);
  }
  const bool single = alike && takes_single_rows(call, rows, columns);
  call.tile_rows = single ? 1 : std::clamp<int64_t>(tile / call.tile_columns, 1, rows.size);
  call.loops = count;
  for (int l = 0; l < count; ++l) {
    call.size[l] = loops[l].size;
    for (int i = 0; i <= call.inputs; ++i) call.operand[i].stride[l] = loops[l].stride[i];
  }
  // One long row has a tile more, because its tiles begin at cache lines of the output.
  const bool long_row = rows.size == 1 && columns.size > call.tile_columns;
  call.row_tiles = (rows.size + call.tile_rows - 1) / call.tile_rows;
  call.column_tiles =
      (columns.size + call.tile_columns - 1) / call.tile_columns + (long_row ? 1 : 0);
  call.rows = alike && has_dense_rows(call);
}

}  // namespace

void plan_loops(const Tensor* const* tensors, const Dims& shape, bool alike, int64_t tile,
                ElementwiseCall& call) {
  Loop loops[kMaxLoops + 1];
  int count = make_loops(tensors, call.inputs, shape, loops);
  order_loops(loops, count, call.inputs);
  count = merge_loops(loops, count, call.inputs + 1);
  fill_loops(call, loops, count, alike, tile);
}

}  // namespace openaclnn
