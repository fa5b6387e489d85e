// SPDX-License-Identifier: Apache-2.0
#include "core/base/view.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "core/base/dtype.h"
#include "core/memory/memory.h"

namespace openaclnn {
namespace {

// The limit of element counts and offsets: bytes of 16-byte elements still fit 62 bits.
constexpr int64_t kLimit = int64_t{1} << 58;

bool is_empty(const Dims& shape) {
  return std::find(shape.at, shape.at + shape.rank, 0) != shape.at + shape.rank;
}

// A sum of terms factor * x with 0 <= x <= bound and factor > 0.
struct Term {
  int64_t factor, bound;
};

// Whether the sum of the terms can reach a value in [low, high]. Terms are sorted by falling
// factor; the range each x can take is narrow because the terms after it reach only `rest`. Terms
// of one factor are one term, with the sum of the bounds: two halves of the columns of a matrix
// take 2 steps, and not one for each row.
class ReachSearch {
 public:
  ReachSearch(Term* terms, int count) : terms_(terms), count_(0) {
    std::sort(terms, terms + count,
              [](const Term& a, const Term& b) { return a.factor > b.factor; });
    for (int i = 0; i < count; ++i) {
      if (count_ > 0 && terms[count_ - 1].factor == terms[i].factor) {
        terms[count_ - 1].bound += terms[i].bound;
      } else {
        terms[count_++] = terms[i];
      }
    }
    rest_[count_] = 0;
    divisor_[count_] = 0;
    for (int i = count_ - 1; i >= 0; --i) {
      rest_[i] = rest_[i + 1] + static_cast<__int128>(terms[i].factor) * terms[i].bound;
      divisor_[i] = std::gcd(terms[i].factor, divisor_[i + 1]);
    }
  }

  bool reaches(__int128 low, __int128 high) { return step(0, low, high); }

 private:
  bool step(int i, __int128 low, __int128 high) {
    if (high < 0 || low > rest_[i]) return false;
    if (low <= 0) return true;  // all remaining x = 0
    if (i == count_) return false;
    if (--budget_ < 0) return true;  // too long to be sure: err on the safe side
    if (high / divisor_[i] * divisor_[i] < low)
      return false;  // no multiple of the gcd in [low, high]
    const __int128 factor = terms_[i].factor;
    const __int128 need = low - rest_[i + 1];
    __int128 first = need > 0 ? (need + factor - 1) / factor : 0;
    const __int128 last = std::min<__int128>(terms_[i].bound, high / factor);
    for (; first <= last; ++first) {
      if (step(i + 1, low - factor * first, high - factor * first)) return true;
    }
    return false;
  }

  Term* terms_;
  int count_;
  int budget_ = 100'000;
  __int128 rest_[2 * kMaxDims + 2];
  int64_t divisor_[2 * kMaxDims + 2];
};

// Appends stride * size * x, 0 <= x < dim, made positive by counting from the other end. Returns
// what that shifted the sum by.
__int128 append(Term* terms, int* count, int64_t stride, int64_t size, int64_t dim) {
  if (dim <= 1 || stride == 0) return 0;
  const int64_t factor = stride * size;
  terms[(*count)++] = {std::abs(factor), dim - 1};
  return factor < 0 ? static_cast<__int128>(factor) * (dim - 1) : 0;
}

}  // namespace

bool element_count(const Dims& dims, int64_t* count) {
  for (int i = 0; i < dims.rank; ++i) {
    if (dims[i] < 0) return false;
  }
  *count = 0;
  if (is_empty(dims)) return true;
  int64_t product = 1;
  for (int i = 0; i < dims.rank; ++i) {
    if (__builtin_mul_overflow(product, dims[i], &product) || product > kLimit) return false;
  }
  *count = product;
  return true;
}

bool element_range(const Tensor& tensor, int64_t* low, int64_t* high) {
  *low = *high = 0;
  if (is_empty(tensor.shape)) return true;
  __int128 least = tensor.offset, most = tensor.offset;
  if (least < -kLimit || most > kLimit) return false;  // also covers views without dims
  for (int i = 0; i < tensor.shape.rank; ++i) {
    const __int128 reach = static_cast<__int128>(tensor.shape[i] - 1) * tensor.strides[i];
    (reach < 0 ? least : most) += reach;
    if (least < -kLimit || most > kLimit) return false;
  }
  *low = static_cast<int64_t>(least);
  *high = static_cast<int64_t>(most) + 1;
  return true;
}

Dims contiguous_strides(const Dims& shape) {
  Dims strides;
  strides.rank = shape.rank;
  int64_t step = 1;
  for (int i = shape.rank - 1; i >= 0; --i) {
    strides[i] = step;
    // an empty shape may have any dims beside its 0
    if (__builtin_mul_overflow(step, std::max<int64_t>(shape[i], 1), &step)) step = kLimit;
  }
  return strides;
}

bool same_view(const Tensor& a, const Tensor& b) {
  if (a.shape.rank != b.shape.rank || a.dtype != b.dtype) return false;
  for (int i = 0; i < a.shape.rank; ++i) {
    if (a.shape[i] != b.shape[i] || (a.shape[i] > 1 && a.strides[i] != b.strides[i])) return false;
  }
  if (is_empty(a.shape)) return a.data == b.data;
  const auto size = static_cast<int64_t>(dtype_size(a.dtype));
  return reinterpret_cast<intptr_t>(a.data) + a.offset * size ==
         reinterpret_cast<intptr_t>(b.data) + b.offset * size;
}

bool views_overlap(const Tensor& a, const Tensor& b) {
  int64_t a_low, a_high, b_low, b_high;
  if (!element_range(a, &a_low, &a_high) || !element_range(b, &b_low, &b_high)) return true;
  if (a_low == a_high || b_low == b_high) return false;
  const auto a_size = static_cast<int64_t>(dtype_size(a.dtype));
  const auto b_size = static_cast<int64_t>(dtype_size(b.dtype));
  const auto a_data = static_cast<__int128>(reinterpret_cast<uintptr_t>(a.data));
  const auto b_data = static_cast<__int128>(reinterpret_cast<uintptr_t>(b.data));
  if (a_data + a_high * a_size <= b_data + b_low * b_size ||
      b_data + b_high * b_size <= a_data + a_low * a_size) {
    return false;
  }
  // Bytes a0 + Σ sa·x + [0, a_size) and b0 + Σ sb·y + [0, b_size) meet when -a_size < a0 - b0 + Σ
  // sa·x - Σ sb·y < b_size.
  Term terms[2 * kMaxDims];
  int count = 0;
  __int128 base = a_data + a.offset * a_size - b_data - b.offset * b_size;
  for (int i = 0; i < a.shape.rank; ++i)
    base += append(terms, &count, a.strides[i], a_size, a.shape[i]);
  for (int i = 0; i < b.shape.rank; ++i)
    base += append(terms, &count, b.strides[i], -b_size, b.shape[i]);
  return ReachSearch(terms, count).reaches(-base - a_size + 1, -base + b_size - 1);
}

SpansText::SpansText(const char* a_name, const Tensor& a, const char* b_name, const Tensor& b) {
  const Allocation found[] = {find_allocation(a.data), find_allocation(b.data)};
  if (found[0].behind == 0 && found[1].behind == 0) return;
  const Tensor* const views[] = {&a, &b};
  const char* const names[] = {a_name, b_name};
  size_t used = 0;
  for (int i = 0; i < 2; ++i) {
    const auto size = static_cast<int64_t>(dtype_size(views[i]->dtype));
    int64_t low = 0, high = 0;
    (void)element_range(*views[i], &low, &high);
    char allocated[60] = "";
    if (found[i].behind > 0) {
      std::snprintf(allocated, sizeof allocated, ", where %zu are allocated", found[i].asked);
    }
    const int length =
        std::snprintf(text + used, sizeof text - used, "%s %s spans bytes %lld to %lld from %p%s",
                      i == 0 ? ":" : ";", names[i], static_cast<long long>(low * size),
                      static_cast<long long>(high * size), views[i]->data, allocated);
    used = std::min(used + static_cast<size_t>(std::max(length, 0)), sizeof text - 1);
  }
}

bool overlaps_itself(const Tensor& tensor) {
  if (is_empty(tensor.shape)) return false;  // strides do not matter
  Term dims[kMaxDims];
  int rank = 0;
  for (int i = 0; i < tensor.shape.rank; ++i) {
    if (tensor.shape[i] == 1) continue;
    if (tensor.strides[i] == 0) return true;
    dims[rank++] = {std::abs(tensor.strides[i]), tensor.shape[i] - 1};
  }
  std::sort(dims, dims + rank, [](const Term& a, const Term& b) { return a.factor < b.factor; });
  __int128 reach = 0;
  bool nested = true;  // each stride exceeds the span of the smaller ones
  for (int i = 0; i < rank; ++i) {
    nested &= dims[i].factor > reach;
    reach += static_cast<__int128>(dims[i].factor) * dims[i].bound;
  }
  if (nested) return false;
  // Two indices differ first in dim i, by 1 + z > 0, and reach one element: s_i (1 + z) + Σ_{j>i}
  // s_j d_j = 0 with |d_j| <= bound_j. With d_j = bound_j - y_j, 0 <= y_j <= 2 bound_j: Σ s_j y_j +
  // s_i z' = s_i bound_i + Σ s_j bound_j where z' = bound_i - (1 + z) counts down from bound_i - 1.
  for (int i = 0; i < rank; ++i) {
    Term terms[kMaxDims];
    int count = 0;
    __int128 target = static_cast<__int128>(dims[i].factor) * dims[i].bound;
    if (dims[i].bound > 1) terms[count++] = {dims[i].factor, dims[i].bound - 1};
    for (int j = i + 1; j < rank; ++j) {
      terms[count++] = {dims[j].factor, 2 * dims[j].bound};
      target += static_cast<__int128>(dims[j].factor) * dims[j].bound;
    }
    if (ReachSearch(terms, count).reaches(target, target)) return true;
  }
  return false;
}

bool broadcast_shapes(const Dims& a, const Dims& b, Dims* result) {
  result->rank = std::max(a.rank, b.rank);
  for (int i = 1; i <= result->rank; ++i) {
    const int64_t from_a = i <= a.rank ? a[a.rank - i] : 1;
    const int64_t from_b = i <= b.rank ? b[b.rank - i] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) return false;
    (*result)[result->rank - i] = from_a == 1 ? from_b : from_a;
  }
  return true;
}

}  // namespace openaclnn
