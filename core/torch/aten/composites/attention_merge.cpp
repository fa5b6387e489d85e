// SPDX-License-Identifier: Apache-2.0
// Attention over parts of the keys, joined by the statistics of each.
#include "core/torch/aten/composites/attention.h"

namespace openaclnn::aten {
namespace {

// Weights of the parts: exp(lse_i - lse), lse the logarithm of the sum of exp(lse_i). A part
// without keys has -inf, or, of FusedInferAttentionScore, inf.
void attention_update(Tensors lse, Tensors parts, int64_t type, Out out, Out lse_out) {
  require(type == 0 || type == 1, "updateType must be 0 or 1, but got ", type);
  const size_t count = lse.size();
  require(count >= 1 && count <= 16 && parts.size() == count,
          "lse and localOut must have as many tensors as each other, 1 to 16, but have ", count,
          " and ", parts.size());
  for (size_t i = 0; i < count; ++i) {
    if (!lse[i].defined()) throw missing_element("lse", i);
    if (!parts[i].defined()) throw missing_element("localOut", i);
    check_rank(parts[i], "localOut", 2, 2);
    check_shape(parts[i], "localOut", parts[0].sizes());
    check_shape(lse[i], "lse", {parts[0].size(0)});
    require(parts[i].is_floating_point() && lse[i].is_floating_point(),
            "lse and localOut must have floating-point numbers");
  }
  const Tensor logs = at::stack(lse).to(at::kFloat);
  const Tensor x = logs.masked_fill(logs == INFINITY, -INFINITY);
  const Tensor most = x.amax(0).clamp_min(kLowest);
  const Tensor all = most + at::log(at::exp(x - most).sum(0));
  Tensor sum = at::zeros(parts[0].sizes(), x.options());
  for (size_t i = 0; i < count; ++i) {
    const Tensor own = x[static_cast<int64_t>(i)];
    const Tensor weight = at::exp(own - all).masked_fill(own == -INFINITY, 0).unsqueeze(1);
    sum = sum + at::where(weight > 0, parts[i].to(at::kFloat), 0) * weight;
  }
  out = sum;
  if (type == 1) lse_out = all;
  if (type == 0 && is_given(lse_out.tensor())) leave(lse_out.tensor());
}

// One number for each head and row from the eight of a tensor: [T, N] rows of TND, of which the
// sequences may be [N, S] one after the other.
Tensor by_rows(const Tensor& eight, const Ints& ends, bool rows_first) {
  const Tensor one = eight.select(-1, 0);
  if (rows_first) return one;
  const Tensor flat = one.contiguous().flatten();
  const int64_t heads = eight.size(1);
  const Tensor made = at::empty(one.sizes(), one.options());
  int64_t first = 0;
  for (const int64_t end : ends) {
    const int64_t rows = end - first;
    made.narrow(0, first, rows)
        .copy_(flat.narrow(0, first * heads, rows * heads).view({heads, rows}).t());
    first = end;
  }
  return made;
}

Tensor from_rows(const Tensor& one, const Ints& ends, bool rows_first) {
  if (rows_first) return one;
  Tensors parts;
  int64_t first = 0;
  for (const int64_t end : ends) {
    parts.push_back(one.narrow(0, first, end - first).t().flatten());
    first = end;
  }
  return at::cat(parts).view(one.sizes());
}

void ring_attention_update_v2(Tensor out0, Tensor most0, Tensor sum0, Tensor out1, Tensor most1,
                              Tensor sum1, Tensor lengths, Text layout, Text statistics, Out out,
                              Out most_out, Out sum_out) {
  const bool packed = layout == "TND";
  require(packed || layout == "SBH", "inputLayout must be SBH or TND, but got ", layout);
  require(statistics.empty() || statistics == "TND" || statistics == "same_as_input" ||
              statistics == "SBH",
          "inputSoftmaxLayout must be empty or TND, but got ", statistics);
  const bool rows_first = packed && !statistics.empty() && statistics != "SBH";
  check_rank(out0, "prevAttnOut", 3, 3);
  check_rank(most0, "prevSoftmaxMax", packed ? 3 : 4, packed ? 3 : 4);
  check_shape(out1, "curAttnOut", out0.sizes());
  for (const Tensor* x : {&sum0, &most1, &sum1})
    check_shape(*x, "softmaxMax and softmaxSum", most0.sizes());
  const int64_t heads = most0.size(1), rows = packed ? out0.size(0) : out0.size(0);
  require_shape(most0.size(-1) == 8 && heads > 0 &&
                    (packed ? most0.size(0) == rows && heads == out0.size(1)
                            : most0.size(0) == out0.size(1) && most0.size(2) == rows &&
                                  out0.size(2) % heads == 0),
                "softmaxMax must have eight numbers for each head and row of attnOut, whose shape ",
                "is ", out0.sizes(), ", but has shape ", most0.sizes());
  check_result(out.tensor(), out0, "attnOut");
  check_result(most_out.tensor(), most0.to(at::kFloat), "softmaxMax");
  check_result(sum_out.tensor(), most0.to(at::kFloat), "softmaxSum");
  Ints ends;
  if (packed && !rows_first) {
    check_given(lengths, "actualSeqQlen");
    need_data(lengths);
    const Tensor wide = lengths.flatten().to(at::kLong).contiguous();
    ends.assign(wide.const_data_ptr<int64_t>(), wide.const_data_ptr<int64_t>() + wide.numel());
    if (!ends.empty() && ends[0] == 0) ends.erase(ends.begin());
    int64_t last = 0;
    for (const int64_t end : ends) {
      require(end >= last && end <= rows, "actualSeqQlen must ascend up to the rows of attnOut, ",
              rows, ", but has ", end);
      last = end;
    }
    require(last == rows, "actualSeqQlen must end with the rows of attnOut, ", rows, ", but ends ",
            "with ", last);
  }
  // [T, N] of TND and [B, N, S] of SBH.
  const auto single = [&](const Tensor& x) {
    const Tensor wide = x.to(at::kFloat);
    return packed ? by_rows(wide, ends, rows_first) : wide.select(-1, 0);
  };
  const Tensor m0 = single(most0), m1 = single(most1), m = at::maximum(m0, m1);
  const Tensor a = single(sum0) * at::exp(m0 - m), b = single(sum1) * at::exp(m1 - m), s = a + b;
  const auto weighted = [&](const Tensor& x, const Tensor& part) {
    const Tensor w = (part / s).masked_fill(s == 0, 0), wide = x.to(at::kFloat);
    if (packed) return wide * w.unsqueeze(-1);
    return (wide.unflatten(2, {heads, x.size(2) / heads}) * w.permute({2, 0, 1}).unsqueeze(-1))
        .flatten(2);
  };
  out = weighted(out0, a) + weighted(out1, b);
  const auto eight = [&](const Tensor& x) {
    const Tensor one = (packed ? from_rows(x, ends, rows_first) : x).unsqueeze(-1);
    Ints shape = one.sizes().vec();
    shape.back() = 8;
    return one.expand(shape);
  };
  most_out = eight(m);
  sum_out = eight(s);
}

void ring_attention_update(Tensor out0, Tensor most0, Tensor sum0, Tensor out1, Tensor most1,
                           Tensor sum1, Tensor lengths, Text layout, Out out, Out most_out,
                           Out sum_out) {
  ring_attention_update_v2(out0, most0, sum0, out1, most1, sum1, lengths, layout, "", out, most_out,
                           sum_out);
}

}  // namespace

const Composite attention_merge_composites[] = {
    ENTRY(attention_update),
    ENTRY(ring_attention_update),
    ENTRY(ring_attention_update_v2),
    {},
};

}  // namespace openaclnn::aten
