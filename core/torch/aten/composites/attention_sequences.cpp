// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/composites/attention_training.h"
#include "core/torch/aten/composites/bits.h"

namespace openaclnn::aten {
namespace {

// A bias of the distance alone may be given as its last 1024 rows, the last of which is all of it.
constexpr int64_t kCompressed = 1024;

// Batch, heads, sequence, head size, a view; heads 0: as many as the head size leaves.
Tensor four_dims(const Tensor& x, const char* name, const Text& layout, int64_t heads,
                 int64_t head_size = 0) {
  const bool joined = layout == "SBH" || layout == "BSH";
  require(joined || layout == "BNSD" || layout == "BSND",
          "inputLayout must be BNSD, BSND, BSH or SBH, but got ", layout);
  check_rank(x, name, joined ? 3 : 4, joined ? 3 : 4);
  if (layout == "BNSD") return x;
  if (layout == "BSND") return x.transpose(1, 2);
  const int64_t width = x.size(2), divisor = heads > 0 ? heads : head_size;
  require(divisor > 0 && width % divisor == 0, name,
          " must have a last dim that is divisible by the ",
          heads > 0 ? "number of heads, " : "head size, ", divisor, ", but has shape ", x.sizes());
  const int64_t other = width / divisor;
  const Tensor parted = x.unflatten(2, {heads > 0 ? divisor : other, heads > 0 ? other : divisor});
  return layout == "SBH" ? parted.permute({1, 2, 0, 3}) : parted.transpose(1, 2);
}

void check_numbers(const Training& t) {
  require(t.heads > 0, "headNum must be at least 1, but got ", t.heads);
  require(t.q.is_floating_point() && t.q.scalar_type() == t.k.scalar_type() &&
              t.q.scalar_type() == t.v.scalar_type(),
          "query, key and value must have the same floating-point dtype, but are ",
          t.q.scalar_type(), ", ", t.k.scalar_type(), " and ", t.v.scalar_type());
  require(t.sparse >= 0 && t.sparse <= (t.packed ? 8 : 6), "sparseMode must be in [0, ",
          t.packed ? 8 : 6, "], but got ", t.sparse);
  require(t.pse_type >= 0 && t.pse_type <= 3, "pseType must be in [0, 3], but got ", t.pse_type);
  require(t.keep > 0 && t.keep <= 1, "keepProb must be above 0 and at most 1, but got ", t.keep);
  require(t.q_rope.defined() == t.k_rope.defined(),
          "queryRope and keyRope must be given together or both be NULL");
  check_mask(t.mask);
  if (t.sink.defined()) check_shape(t.sink, "sink", {t.heads});
}

Shape shape_of_packed(const Training& t) {
  require(t.layout == "TND", "inputLayout must be TND, but got ", t.layout);
  const std::pair<const char*, const Tensor*> given[] = {
      {"query", &t.q}, {"key", &t.k}, {"value", &t.v}};
  for (const auto& [name, x] : given) check_rank(*x, name, 3, 3);
  require_shape(t.q.size(1) == t.heads, "query must have headNum heads, ", t.heads,
                ", but has shape ", t.q.sizes());
  require_shape(
      t.v.size(0) == t.k.size(0) && t.v.size(1) == t.k.size(1) && t.q.size(2) == t.k.size(2),
      "key must have the head size of query, and value the rows and heads of key, but ",
      "their shapes are ", t.q.sizes(), ", ", t.k.sizes(), " and ", t.v.sizes());
  require(!t.q_lengths.empty() && t.q_lengths.size() == t.kv_lengths.size(),
          "actualSeqQLen and actualSeqKvLen must have a number for each sequence, but have ",
          t.q_lengths.size(), " and ", t.kv_lengths.size());
  if (t.q_rope.defined()) {
    check_rank(t.q_rope, "queryRope", 3, 3);
    check_shape(t.q_rope, "queryRope", {t.q.size(0), t.q.size(1), t.q_rope.size(2)});
    check_shape(t.k_rope, "keyRope", {t.k.size(0), t.k.size(1), t.q_rope.size(2)});
  }
  return {static_cast<int64_t>(t.q_lengths.size()), t.heads, t.k.size(1),
          lengths_of(t.q_lengths, "actualSeqQLen", t.q.size(0)),
          lengths_of(t.kv_lengths, "actualSeqKvLen", t.k.size(0))};
}

Shape shape_of_dense(const Training& t) {
  require(!t.q_rope.defined(), "queryRope and keyRope must be NULL with layout ", t.layout);
  const Tensor q = four_dims(t.q, "query", t.layout, t.heads);
  require_shape(q.size(1) == t.heads, "query must have headNum heads, ", t.heads,
                ", but has shape ", t.q.sizes());
  const Tensor k = four_dims(t.k, "key", t.layout, 0, q.size(3));
  require_shape(k.size(1) > 0, "key must have heads, but has shape ", t.k.sizes());
  const Tensor v = four_dims(t.v, "value", t.layout, k.size(1));
  require_shape(k.size(0) == q.size(0) && v.size(0) == q.size(0) && k.size(3) == q.size(3) &&
                    v.size(1) == k.size(1) && v.size(2) == k.size(2),
                "key must have the batches and head size of query, and value the batches, rows ",
                "and heads of key, but their shapes are ", t.q.sizes(), ", ", t.k.sizes(), " and ",
                t.v.sizes());
  const auto batches = static_cast<size_t>(q.size(0));
  return {q.size(0), t.heads, k.size(1), Ints(batches, q.size(2)), Ints(batches, k.size(2))};
}

// ---- what one of them is given: masks, biases, dropout ----

// The mask as [N or 1, S, L].
Tensor sequence_mask(const Training& t, const Shape& s, size_t b) {
  const int64_t rows = s.rows[b], keys = s.keys[b];
  const Tensor& m = t.mask;
  if (t.packed) {
    require_shape(m.dim() == 2 && m.size(0) >= rows && m.size(1) >= keys,
                  "attenMask must have 2 dims of the longest sequences, of ", rows, " and ", keys,
                  " at least, but has shape ", m.sizes());
    return m.narrow(0, 0, rows).narrow(1, 0, keys).unsqueeze(0);
  }
  const Tensor four = m.dim() == 2 ? m.unsqueeze(0).unsqueeze(0) : m;
  require_shape(four.dim() == 4 && (four.size(0) == 1 || four.size(0) == s.batches) &&
                    (four.size(1) == 1 || four.size(1) == s.heads) && four.size(2) == rows &&
                    four.size(3) == keys,
                "attenMask must have shape [", rows, ", ", keys, "], [1, 1, ", rows, ", ", keys,
                "], [", s.batches, ", 1, ...] or [", s.batches, ", ", s.heads, ", ...], but got ",
                m.sizes());
  return four.select(0, four.size(0) == 1 ? 0 : static_cast<int64_t>(b));
}

// Modes 2, 3, 4, 6, 7 and 8 leave the mask unread. 2: up to the diagonal from the upper left;
// 3: that from the lower right; 4: a band around it; 6: like 3, and what is before prefix; 7: the
// last sequence like 4, others like 3; 8: the first like 4, others like 2.
void add_mask(const Training& t, const Shape& s, size_t b, Sequence* to) {
  if (!is_given(t.mask)) return;
  const int64_t shift = s.keys[b] - s.rows[b];
  const auto band = [&](int64_t around) {
    to->low = around - tokens(t.before);
    to->high = around + tokens(t.after);
  };
  const bool is_other = t.sparse == 7 ? b + 1 < s.rows.size() : b > 0;
  switch (t.sparse) {
    case 0: band(0); [[fallthrough]];
    case 1:
    case 5: to->mask = sequence_mask(t, s, b); break;
    case 2: to->high = 0; break;
    case 3: to->high = shift; break;
    case 4: band(shift); break;
    case 6:
      require(t.prefix[b] >= 0 && t.prefix[b] <= s.keys[b], "prefix must be in [0, ", s.keys[b],
              "], but has ", t.prefix[b]);
      to->high = shift;
      to->prefix = t.prefix[b];
      break;
    default:
      if (is_other)
        to->high = t.sparse == 7 ? shift : 0;
      else
        band(shift);
  }
}

// Type 0: added to the scaled scores; 1: before they are scaled; 2 and 3: -slope d and
// -slope sqrt(d) for the distance d.
void add_bias(const Training& t, const Shape& s, size_t b, Sequence* to) {
  if (!is_given(t.pse)) return;
  const int64_t rows = s.rows[b], keys = s.keys[b];
  const Tensor& pse = t.pse;
  if (t.pse_type >= 2) {
    const auto sizes = pse.sizes();
    require_shape(sizes == at::IntArrayRef{s.heads} || sizes == at::IntArrayRef{s.batches, s.heads},
                  "pse must have a slope for each head in pseType 2 and 3, shape [", s.heads,
                  "] or [", s.batches, ", ", s.heads, "], but got ", sizes);
    to->slopes = pse.dim() == 1 ? pse : pse[static_cast<int64_t>(b)];
    to->start = (t.kv_start.empty() ? 0 : t.kv_start[0]) - (t.q_start.empty() ? 0 : t.q_start[0]);
    to->root = t.pse_type == 3;
    return;
  }
  to->before_scaling = t.pse_type == 1;
  require_shape(
      pse.dim() == 4 && (pse.size(0) == 1 || pse.size(0) == s.batches) && pse.size(1) == s.heads,
      "pse must have shape [", s.batches, " or 1, ", s.heads, ", S, S], but got ", pse.sizes());
  const Tensor own = pse.select(0, pse.size(0) == 1 ? 0 : static_cast<int64_t>(b));
  const bool fits = own.size(1) == kCompressed && own.size(2) > 0;
  if (fits && (t.packed || (rows > kCompressed && rows == keys))) {
    to->by_distance = own.select(1, -1);
    return;
  }
  require_shape(!t.packed && (own.size(1) == 1 || own.size(1) == rows) && own.size(2) == keys,
                "pse must have ", t.packed ? "1024 rows with layout TND" : "the rows and keys",
                ", but has shape ", pse.sizes());
  to->bias = own;
}

void check_dropout(const Training& t, const Shape& s) {
  if (!t.has_dropout()) return;
  int64_t bits = 0;
  for (size_t b = 0; b < s.rows.size(); ++b) bits += s.heads * s.rows[b] * s.keys[b];
  check_bits(t.drop, bits);
}

}  // namespace

Shape shape_of(const Training& t) {
  check_numbers(t);
  const Shape s = t.packed ? shape_of_packed(t) : shape_of_dense(t);
  check_groups(s.heads, s.kv_heads);
  require((t.sparse != 5 && t.sparse != 6) || !is_given(t.mask) ||
              static_cast<int64_t>(t.prefix.size()) == s.batches,
          "prefix must have a number for each of the ", s.batches,
          " batches in sparseMode 5 and 6, but has ", t.prefix.size());
  check_dropout(t, s);
  return s;
}

Tensors sequences(const Tensor& x, const char* name, const Training& t, int64_t heads,
                  const Ints& lengths) {
  Tensors made;
  if (!t.packed) {
    const Tensor all = four_dims(x, name, t.layout, heads);
    for (int64_t b = 0; b < all.size(0); ++b) made.push_back(all.select(0, b));
    return made;
  }
  int64_t first = 0;
  for (const int64_t length : lengths) {
    made.push_back(x.narrow(0, first, length).transpose(0, 1));
    first += length;
  }
  return made;
}

void for_each_sequence(const Training& t, const Shape& s,
                       const std::function<void(const Sequence&, size_t)>& f) {
  const Tensors q = sequences(t.q, "query", t, s.heads, s.rows);
  const Tensors k = sequences(t.k, "key", t, s.kv_heads, s.keys);
  const Tensors v = sequences(t.v, "value", t, s.kv_heads, s.keys);
  const bool roped = t.q_rope.defined();
  const Tensors q_rope = roped ? sequences(t.q_rope, "queryRope", t, s.heads, s.rows) : Tensors();
  const Tensors k_rope = roped ? sequences(t.k_rope, "keyRope", t, s.kv_heads, s.keys) : Tensors();
  const Tensor bits = t.has_dropout() ? t.drop.contiguous() : Tensor();
  int64_t bit = 0;
  for (size_t b = 0; b < q.size(); ++b) {
    Sequence one;
    one.q = roped ? at::cat({q[b], q_rope[b]}, -1) : q[b];
    one.k = roped ? at::cat({k[b], k_rope[b]}, -1) : k[b];
    one.v = v[b];
    one.scale = t.scale;
    add_mask(t, s, b, &one);
    add_bias(t, s, b, &one);
    one.sink = t.sink;
    one.kept = bits;
    one.first_bit = bit;
    one.keep = t.keep;
    bit += s.heads * s.rows[b] * s.keys[b];
    if (!t.q.is_meta() && s.rows[b] > 0) f(one, b);
  }
}

}  // namespace openaclnn::aten
