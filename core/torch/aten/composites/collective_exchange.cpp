// SPDX-License-Identifier: Apache-2.0
// Products before or after rows are exchanged between ranks.
#include "core/torch/aten/composites/rank_counts.h"

namespace openaclnn::aten {
namespace {

Tensor float_matrix(const Tensor& x, const char* name, bool transposed, int64_t rank = 2) {
  check_real(x, name);
  check_rank(x, name, rank, rank);
  return transposed ? x.transpose(-1, -2) : x;
}

// x y + bias in fp32.
Tensor product_of(const Tensor& x, const Tensor& y, const Tensor& bias = {}) {
  require(x.scalar_type() == y.scalar_type(), "both matrices must have one dtype, but are ",
          x.scalar_type(), " and ", y.scalar_type());
  require_shape(y.size(-2) == x.size(-1), "the second matrix must have ", x.size(-1),
                " rows, but has shape ", y.sizes());
  const Tensor made = product_of_floats(x, y);
  if (!has(bias)) return made;
  require_shape(bias.numel() == y.size(-1), "bias must have ", y.size(-1),
                " elements, but has shape ", bias.sizes());
  return made + at_least_float(bias);
}

// ---- even blocks ----

// x1, with what both operators ask of their other arguments.
Tensor left_matrix(const Tensor& x1, const Ints& axes, const Ints& wanted, bool transposed) {
  require(axes.empty() || axes == wanted, "alltoAllAxes must be NULL or ", wanted, ", but are ",
          axes);
  require(!transposed, "transposeX1 must be false");
  return float_matrix(x1, "x1", false);
}

// The matrices of a call, checked before any rank waits for others, and the ranks.
struct Factors {
  Tensor x, y;
  Group group;
  int64_t ranks, rows;

  Factors(const Tensor& x1, const Tensor& x2, const Ints& axes, const Ints& wanted,
          const Text& name, bool transpose1, bool transpose2)
      : x(left_matrix(x1, axes, wanted, transpose1)),
        y(float_matrix(x2, "x2", transpose2)),
        group(name),
        ranks(group.ranks),
        rows(x.size(0)) {}

  void require_divisible(int64_t n, const char* what, const Tensor& of) const {
    require_shape(n % ranks == 0, what, " that is divisible by the ", ranks,
                  " ranks, but has shape ", of.sizes());
  }

  void agree(int64_t function, int64_t size, const char* what) const {
    if (!x.is_meta()) group.agree({function, rows, size, number_of(x.scalar_type())}, what);
  }
};

// Rows (BS, H) to ranks; received blocks stand side by side: (BS / R, R H).
void all_to_all_matmul(Tensor x1, Tensor x2, Tensor bias, Ints axes, Text name, bool transpose1,
                       bool transpose2, Out out, Out received) {
  const Factors f(x1, x2, axes, {-2, -1}, name, transpose1, transpose2);
  const int64_t r = f.ranks, part = f.rows / r, h = f.x.size(1);
  f.require_divisible(f.rows, "x1 must have a number of rows", x1);
  require_shape(f.y.size(0) == r * h, "x2 must have ", r * h, " rows, but has shape ", x2.sizes());
  f.agree(kAllToAllMatmul, h, "operator, sizes and dtype of x1");
  const Tensor left =
      f.group.exchanged(f.x).reshape({r, part, h}).transpose(0, 1).reshape({part, r * h});
  out = product_of(left, f.y, bias);
  if (has(received.tensor())) received = left;
}
void all_to_all_matmul_v2(Tensor x1, Tensor x2, Tensor bias, Ints axes, Text name, Text,
                          bool transpose1, bool transpose2, Out out, Out received) {
  all_to_all_matmul(x1, x2, bias, axes, name, transpose1, transpose2, out, received);
}

// Blocks of columns to ranks; received blocks one after the other: (R BS, H / R).
void matmul_all_to_all(Tensor x1, Tensor x2, Tensor bias, Ints axes, Text name, bool transpose1,
                       bool transpose2, Out out) {
  const Factors f(x1, x2, axes, {-1, -2}, name, transpose1, transpose2);
  const int64_t r = f.ranks, columns = f.y.size(1);
  f.require_divisible(columns, "x2 must have a number of columns", x2);
  const Tensor made = product_of(f.x, f.y, bias).to(x1.scalar_type());
  f.agree(kMatmulAllToAll, columns, "operator, sizes and dtype");
  const Tensor blocks = made.reshape({f.rows, r, columns / r}).transpose(0, 1).contiguous();
  out = f.group.exchanged(blocks).reshape({r * f.rows, columns / r});
}
void matmul_all_to_all_v2(Tensor x1, Tensor x2, Tensor bias, Ints axes, Text name, Text,
                          bool transpose1, bool transpose2, Out out) {
  matmul_all_to_all(x1, x2, bias, axes, name, transpose1, transpose2, out);
}

// ---- rows of experts ----

// Counts below 0, and sums that overflow, are refused too.
void check_counts(const Ints& counts, const char* label, const Tensor& x, const char* name) {
  check_rank(x, name, 2, 2);
  int64_t left = x.size(0);
  bool fits = true;
  for (const int64_t count : counts) {
    fits = fits && 0 <= count && count <= left;
    if (fits) left -= count;
  }
  require_shape(fits && left == 0, label, " must be at least 0 and sum to the ", x.size(0),
                " rows of ", name, ", but are ", counts);
}

struct Exchange {
  Group group;
  int64_t experts;
  Counts sent, received;

  Exchange(const Text& name, int64_t world, const Tensor& weight, const Tensor& x, const Out& out,
           const Ints& send, const Ints& receive, const Tensor& send_tensor,
           const Tensor& receive_tensor)
      : group(name),
        experts(weight.size(0)),
        sent{send, group.ranks, experts},
        received{receive, group.ranks, experts} {
    require(!has(send_tensor) && !has(receive_tensor),
            "sendCountsTensor and recvCountsTensor must be NULL");
    require(world == group.ranks, "epWorldSize must be the number of ranks of the group, ",
            group.ranks, ", but got ", world);
    for (const auto& [list, label] : {std::pair(&send, "sendCounts"), {&receive, "recvCounts"}})
      require(static_cast<int64_t>(list->size()) == experts * world, label, " must have ",
              experts * world, " numbers, but has ", list->size());
    check_counts(send, "sendCounts", x, "gmmX");
    check_counts(receive, "recvCounts", out.tensor(), "the output");
  }

  // Each rank must receive what the others send.
  void agree(int64_t function, const Tensor& x) const {
    if (x.is_meta() || group.ranks == 1) {
      require(x.is_meta() || sent.of == received.of,
              "sendCounts and recvCounts must be the same on one rank");
      return;
    }
    group.agree({function, experts, x.size(1), number_of(x.scalar_type())},
                "operator, number of experts, row size and dtype");
    const Tensor theirs = group.exchanged(at::tensor(sent.of, at::kLong));
    group.require_all(at::equal(theirs, at::tensor(received.of, at::kLong)),
                      "recvCounts of each rank must be the sendCounts of the others to it");
  }

  // Rows of expert e times weight e, in the dtype of x.
  Tensor product(const Tensor& x, const Tensor& weight, const Ints& rows) const {
    require(x.scalar_type() == weight.scalar_type(), "gmmX and gmmWeight must have one dtype");
    require_shape(weight.size(1) == x.size(1), "gmmWeight must have ", x.size(1),
                  " rows, but has shape ", weight.sizes());
    const Tensor made = at::zeros({x.size(0), weight.size(2)}, x.options());
    int64_t begin = 0;
    for (int64_t e = 0; e < experts; ++e) {
      const int64_t end = begin + rows[static_cast<size_t>(e)];
      if (end > begin && !made.is_meta())
        made.slice(0, begin, end).copy_(product_of_floats(x.slice(0, begin, end), weight[e]));
      begin = end;
    }
    return made;
  }
};

void shared_product(const Tensor& x, const Tensor& weight, bool transposed, const Out& out) {
  require(has(x) == has(weight), "mmX and mmWeight must be given together");
  if (!has(x)) return;
  out = product_of(float_matrix(x, "mmX", false), float_matrix(weight, "mmWeight", transposed));
}

void all_to_all_grouped(Tensor x, Tensor weight, Tensor send_tensor, Tensor receive_tensor,
                        Tensor shared_x, Tensor shared_weight, Text name, int64_t world, Ints send,
                        Ints receive, bool transposed, bool shared_transposed, bool permuted,
                        Out out, Out shared, Out rows) {
  const Tensor w = float_matrix(weight, "gmmWeight", transposed, 3);
  const Exchange e(name, world, w, x, out, send, receive, send_tensor, receive_tensor);
  shared_product(shared_x, shared_weight, shared_transposed, shared);
  e.agree(kAllToAllGrouped, x);
  const Tensor got = e.group.exchanged(x, e.sent.by_rank(), e.received.by_rank());
  const Tensor sorted = select_rows(got, e.received.by_expert_first(got));
  out = e.product(sorted, w, e.received.by_expert());
  if (permuted && has(rows.tensor())) rows = sorted;
}
void all_to_all_grouped_v2(Tensor x, Tensor weight, Tensor send_tensor, Tensor receive_tensor,
                           Tensor shared_x, Tensor shared_weight, Text name, Text, int64_t world,
                           Ints send, Ints receive, bool transposed, bool shared_transposed,
                           bool permuted, Out out, Out shared, Out rows) {
  all_to_all_grouped(x, weight, send_tensor, receive_tensor, shared_x, shared_weight, name, world,
                     send, receive, transposed, shared_transposed, permuted, out, shared, rows);
}

// The way back: rows lie in the order (expert, destination).
void grouped_all_to_all(Tensor x, Tensor weight, Tensor send_tensor, Tensor receive_tensor,
                        Tensor shared_x, Tensor shared_weight, Text name, int64_t world, Ints send,
                        Ints receive, bool transposed, bool shared_transposed, Out out,
                        Out shared) {
  const Tensor w = float_matrix(weight, "gmmWeight", transposed, 3);
  const Exchange e(name, world, w, x, out, send, receive, send_tensor, receive_tensor);
  shared_product(shared_x, shared_weight, shared_transposed, shared);
  const Tensor y = e.product(x, w, e.sent.by_expert());
  e.agree(kGroupedAllToAll, y);
  const Tensor order = e.sent.by_expert_first(y);
  Tensor by_rank = at::empty_like(y);
  if (!y.is_meta()) by_rank.index_copy_(0, order, y);
  out = e.group.exchanged(by_rank, e.sent.by_rank(), e.received.by_rank());
}
void grouped_all_to_all_v2(Tensor x, Tensor weight, Tensor send_tensor, Tensor receive_tensor,
                           Tensor shared_x, Tensor shared_weight, Text name, Text, int64_t world,
                           Ints send, Ints receive, bool transposed, bool shared_transposed,
                           Out out, Out shared) {
  grouped_all_to_all(x, weight, send_tensor, receive_tensor, shared_x, shared_weight, name, world,
                     send, receive, transposed, shared_transposed, out, shared);
}

}  // namespace

const Composite collective_exchange_composites[] = {
    ENTRY(all_to_all_grouped),   ENTRY(all_to_all_grouped_v2), ENTRY(all_to_all_matmul),
    ENTRY(all_to_all_matmul_v2), ENTRY(grouped_all_to_all),    ENTRY(grouped_all_to_all_v2),
    ENTRY(matmul_all_to_all),    ENTRY(matmul_all_to_all_v2),  {},
};

}  // namespace openaclnn::aten
