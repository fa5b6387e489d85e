// SPDX-License-Identifier: Apache-2.0
// Native sparse attention: keys are summed in windows, attention to the sums chooses blocks of
// keys, attention reads the keys of the chosen blocks. Sequences are packed, by running sums of
// their lengths.
#include "core/torch/aten/composites/attention_native.h"

namespace openaclnn::aten {
namespace {

// ---- window w is the sum over u of x[w stride + u] weight[u] ----

struct Windows {
  Tensor weight;  // [size, N]
  int64_t size, stride;

  void check(const Tensor& x) const {
    check_rank(x, "input", 3, 3);
    check_real(x, "input");
    check_real(weight, "weight");
    require(size >= 1 && stride >= 1, "compressBlockSize and compressStride must be at least 1, ",
            "but are ", size, " and ", stride);
    check_shape(weight, "weight", {size, x.size(1)});
  }
  int64_t count(int64_t length) const { return length < size ? 0 : (length - size) / stride + 1; }
  int64_t count(const Ints& lengths) const {
    int64_t sum = 0;
    for (const int64_t length : lengths) sum += count(length);
    return sum;
  }
  // Row u of each of so many windows, [W, N, D].
  Tensor rows(const Tensor& x, int64_t u, int64_t windows) const {
    return x.slice(0, u, u + (windows - 1) * stride + 1, stride);
  }
  Tensor factor(int64_t u) const { return weight[u].to(at::kFloat).unsqueeze(-1); }

  Tensor sums(const Tensor& x) const {
    const int64_t windows = count(x.size(0));
    const Tensor made = at::zeros({windows, x.size(1), x.size(2)}, at::kFloat);
    const Tensor wide = x.to(at::kFloat);
    for (int64_t u = 0; windows > 0 && u < size; ++u)
      made.addcmul_(rows(wide, u, windows), factor(u));
    return made;
  }
};

void check_packed(const Text& layout, int64_t type, int64_t expected) {
  require(layout == "TND", "layout must be TND, but got ", layout);
  require(type == expected, "actSeqLenType must be ", expected, ", but got ", type);
}

void nsa_compress(Tensor x, Tensor weight, Ints ends, Text layout, int64_t size, int64_t stride,
                  int64_t type, Out out) {
  check_packed(layout, type, 0);
  const Windows w{weight, size, stride};
  w.check(x);
  const Ints lengths = lengths_of(ends, "actSeqLen", x.size(0));
  Tensors made{at::zeros({0, x.size(1), x.size(2)}, at::kFloat)};
  check_result(out.tensor(), at::empty({w.count(lengths), x.size(1), x.size(2)}, x.options()),
               "output");
  if (x.is_meta()) return;
  int64_t first = 0;
  for (const int64_t length : lengths) {
    made.push_back(w.sums(x.narrow(0, first, length)));
    first += length;
  }
  out = at::cat(made, 0);
}

void nsa_compress_grad(Tensor dy, Tensor x, Tensor weight, Ints ends, int64_t size, int64_t stride,
                       int64_t type, Text layout, Out dx, Out dw) {
  check_packed(layout, type, 0);
  const Windows w{weight, size, stride};
  w.check(x);
  const Ints lengths = lengths_of(ends, "actSeqLen", x.size(0));
  check_shape(dy, "outputGrad", {w.count(lengths), x.size(1), x.size(2)});
  const Tensor all_dx = at::zeros(x.sizes(), x.options().dtype(at::kFloat));
  const Tensor all_dw = at::zeros(weight.sizes(), x.options().dtype(at::kFloat));
  const Tensor wide = x.to(at::kFloat), g = dy.to(at::kFloat);
  int64_t first = 0, row = 0;
  for (const int64_t length : lengths) {
    const int64_t windows = w.count(length);
    for (int64_t u = 0; windows > 0 && u < size; ++u) {
      const Tensor its = g.narrow(0, row, windows);
      w.rows(all_dx.narrow(0, first, length), u, windows).addcmul_(its, w.factor(u));
      all_dw[u].add_((w.rows(wide.narrow(0, first, length), u, windows) * its).sum(Ints{0, 2}));
    }
    first += length;
    row += windows;
  }
  dx = all_dx;
  dw = all_dw;
}

// The last window of each sequence that ends with one goes to its slot of the cache.
void nsa_compress_with_cache(Tensor x, Tensor weight, Tensor slots, Ints lengths, Tensor table,
                             Text layout, int64_t size, int64_t stride, int64_t type, int64_t page,
                             Tensor cache) {
  check_packed(layout, type, 1);
  check_rank(x, "input", 3, 4);
  require(page >= 1, "pageBlockSize must be at least 1, but got ", page);
  const Tensor rows = x.dim() == 4 ? x.flatten(0, 1) : x;
  const Windows w{weight, size, stride};
  w.check(rows);
  const auto batches = static_cast<int64_t>(lengths.size());
  check_shape(slots, "slotMapping", {batches});
  check_rank(table, "blockTable", 2, 2);
  require_shape(table.size(0) == batches, "blockTable must have ", batches, " rows, but has shape ",
                table.sizes());
  check_rank(cache, "outputCache", 3, 3);
  check_shape(cache, "outputCache", {cache.size(0), rows.size(1), rows.size(2)});
  const Ints to = numbers_in(slots, "slotMapping");
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t length = lengths[static_cast<size_t>(b)];
    require(length >= 0 && length <= table.size(1) * page, "actSeqLen must be from 0 to ",
            table.size(1) * page, ", but has ", length);
    if (length < size || (length - size) % stride != 0) continue;
    const Tensor place = at::arange(length - size, length);
    const Tensor of = table[b].to(at::kLong).index_select(0, at::div(place, page, "floor")) * page +
                      place.remainder(page);
    check_positions(of, "rows of blockTable", rows.size(0));
    const int64_t slot = to[static_cast<size_t>(b)];
    require(slot >= 0 && slot < cache.size(0), "slotMapping must be in [0, ", cache.size(0) - 1,
            "], but has ", slot);
    cache[slot].copy_(w.sums(rows.index_select(0, of))[0]);
  }
}

// ---- attention to the keys of chosen blocks, which each head of the keys has ----

struct Selected {
  Tensor q, k, v, index, mask;
  Ints q_ends, k_ends;
  double scale;
  int64_t heads, mode, block, count;
  Text layout;

  void check() const {
    require(layout == "TND", "inputLayout must be TND, but got ", layout);
    check_heads(q, k, v, heads);
    require(mode == 0 || mode == 2, "sparseMode must be 0 or 2, but got ", mode);
    require(block >= 1 && block <= INT32_MAX && count >= 1, "selectedBlockSize and ",
            "selectedBlockCount must be at least 1, but are ", block, " and ", count);
    check_shape(index, "topkIndices", {q.size(0), k.size(1), count});
  }
  // f(row of q, its heads, the rows of k, both as a sequence)
  template <class F>
  void each(F f) const {
    const Ints rows = lengths_of(q_ends, "actualSeqQLen", q.size(0));
    const Ints keys = lengths_of(k_ends, "actualSeqKvLen", k.size(0));
    require(rows.size() == keys.size(), "actualSeqQLen and actualSeqKvLen must have as many ",
            "numbers, but have ", rows.size(), " and ", keys.size());
    need_data(q);
    const int64_t group = heads / k.size(1);
    const Tensor list = index.to(at::kInt).contiguous();
    const auto* chosen = data_of<int32_t>(list);
    int64_t t = 0, first = 0;
    for (size_t b = 0; b < rows.size(); ++b) {
      for (int64_t i = 0; i < rows[b]; ++i, ++t) {
        // With a mask, keys after the row are left out.
        const int64_t seen = mask.defined() && mode == 2 ? std::min(keys[b], i + 1) : keys[b];
        for (int64_t h = 0; h < k.size(1); ++h) {
          const Tensor used =
              positions_of(chosen + (t * k.size(1) + h) * count, count, block, seen) + first;
          if (used.numel() == 0) continue;
          Sequence s;
          s.q = q[t].narrow(0, h * group, group).unsqueeze(1);
          s.k = k.select(1, h).index_select(0, used).unsqueeze(0);
          s.v = v.select(1, h).index_select(0, used).unsqueeze(0);
          s.scale = scale;
          f(t, h, used, s);
        }
      }
      first += keys[b];
    }
  }
  // The heads of q that read head h.
  Tensor of_heads(const Tensor& x, int64_t t, int64_t h) const {
    const int64_t group = heads / k.size(1);
    return x[t].narrow(0, h * group, group);
  }
};

void nsa_selected(Tensor q, Tensor k, Tensor v, Tensor index, Tensor mask, Ints q_ends, Ints k_ends,
                  double scale, int64_t heads, Text layout, int64_t mode, int64_t block,
                  int64_t count, Out largest, Out total, Out out) {
  const Selected s{q, k, v, index, mask, q_ends, k_ends, scale, heads, mode, block, count, layout};
  s.check();
  const Tensor y = at::zeros({q.size(0), heads, v.size(2)}, at::kFloat);
  const Tensor most = at::full({q.size(0), heads}, kLowest, at::kFloat);
  const Tensor sum = at::zeros({q.size(0), heads}, at::kFloat);
  s.each([&](int64_t t, int64_t h, const Tensor&, const Sequence& one) {
    const Attended found = attend(one);
    s.of_heads(y, t, h).copy_(found.out.squeeze(1));
    s.of_heads(most, t, h).copy_(found.largest.squeeze(1));
    s.of_heads(sum, t, h).copy_(found.total.squeeze(1));
  });
  out = y;
  largest = eight_of_each(most);
  total = eight_of_each(sum);
}

void nsa_selected_grad(Tensor q, Tensor k, Tensor v, Tensor y, Tensor dy, Tensor largest,
                       Tensor total, Tensor index, Ints q_ends, Ints k_ends, Tensor mask,
                       double scale, int64_t block, int64_t count, int64_t heads, Text layout,
                       int64_t mode, Out dq, Out dk, Out dv) {
  const Selected s{q, k, v, index, mask, q_ends, k_ends, scale, heads, mode, block, count, layout};
  s.check();
  check_shape(y, "attentionOut", {q.size(0), heads, v.size(2)});
  check_shape(dy, "attentionOutGrad", y.sizes());
  check_shape(largest, "softmaxMax", {q.size(0), heads, 8});
  check_shape(total, "softmaxSum", largest.sizes());
  const Tensor g = dy.to(at::kFloat), products = (g * y.to(at::kFloat)).sum(-1, true);
  const Tensor most = largest.narrow(2, 0, 1).to(at::kFloat), sum = total.narrow(2, 0, 1);
  const auto zeros = [](const Tensor& x) { return at::zeros(x.sizes(), at::kFloat); };
  const Tensor all_q = zeros(q), all_k = zeros(k), all_v = zeros(v);
  s.each([&](int64_t t, int64_t h, const Tensor& used, const Sequence& one) {
    const Gradients found =
        differentiate(one, s.of_heads(g, t, h).unsqueeze(1), s.of_heads(most, t, h),
                      s.of_heads(sum, t, h), s.of_heads(products, t, h));
    s.of_heads(all_q, t, h).copy_(found.q.squeeze(1));
    all_k.select(1, h).index_add_(0, used, found.k[0]);
    all_v.select(1, h).index_add_(0, used, found.v[0]);
  });
  dq = all_q;
  dk = all_k;
  dv = all_v;
}

}  // namespace

const Composite native_attention_composites[] = {
    ENTRY(nsa_compress), ENTRY(nsa_compress_grad), ENTRY(nsa_compress_with_cache),
    ENTRY(nsa_selected), ENTRY(nsa_selected_grad), {},
};

}  // namespace openaclnn::aten
