// SPDX-License-Identifier: Apache-2.0
// A layer of a language model and a convolution, without Python: RmsNorm, products of float with
// 16-bit weights, rotary embedding, softmax over the earlier tokens, SwiGlu.
//
//   openaclnn cc --aten transformer_layer.cpp -o transformer_layer && ./transformer_layer
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_batch_matmul.h"
#include "aclnnop/aclnn_convolution.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_rotary_position_embedding.h"
#include "aclnnop/aclnn_softmax.h"
#include "aclnnop/aclnn_swi_glu.h"

namespace {

using Dims = std::vector<int64_t>;

constexpr int64_t kTokens = 6, kHeads = 4, kSize = 8, kWidth = kHeads * kSize, kInner = 48;

void check(int status, const char* what) {
  if (status == 0) return;
  std::fprintf(stderr, "%s: %s\n", what, aclGetRecentErrMsg());
  std::exit(1);
}

int64_t count(const Dims& shape) {
  int64_t n = 1;
  for (const int64_t size : shape) n *= size;
  return n;
}

// Dense device memory with these numbers.
class Tensor {
 public:
  explicit Tensor(const Dims& shape, aclDataType dtype = ACL_FLOAT)
      : shape_(shape), dtype_(dtype), bytes_(count(shape) * aclDataTypeSize(dtype)) {
    check(aclrtMalloc(&memory_, bytes_, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    handle_ = view(shape, {});
  }
  Tensor(const Dims& shape, const std::vector<float>& values, aclDataType dtype = ACL_FLOAT)
      : Tensor(shape, dtype) {
    std::vector<aclFloat16> halves;
    for (const float x : values) halves.push_back(aclFloatToFloat16(x));
    const void* from = dtype == ACL_FLOAT ? static_cast<const void*>(values.data()) : halves.data();
    check(aclrtMemcpy(memory_, bytes_, from, bytes_, ACL_MEMCPY_HOST_TO_DEVICE), "aclrtMemcpy");
  }
  Tensor(const Tensor&) = delete;
  ~Tensor() {
    for (const aclTensor* handle : views_) aclDestroyTensor(handle);
    aclrtFree(memory_);
  }

  operator aclTensor*() const { return handle_; }
  // The same memory in another shape.
  aclTensor* view(const Dims& shape, const Dims& strides) {
    aclTensor* made = aclCreateTensor(shape.data(), shape.size(), dtype_,
                                      strides.empty() ? nullptr : strides.data(), 0, ACL_FORMAT_ND,
                                      shape_.data(), shape_.size(), memory_);
    views_.push_back(made);
    return made;
  }
  void print(const char* title) const {
    std::vector<float> values(static_cast<size_t>(count(shape_)));
    check(aclrtMemcpy(values.data(), bytes_, memory_, bytes_, ACL_MEMCPY_DEVICE_TO_HOST),
          "aclrtMemcpy");
    std::printf("%s", title);
    for (const float x : values) std::printf(" %.9g", static_cast<double>(x));
    std::printf("\n");
  }

 private:
  Dims shape_;
  aclDataType dtype_;
  size_t bytes_;
  void* memory_ = nullptr;
  aclTensor* handle_ = nullptr;
  std::vector<const aclTensor*> views_;
};

// Numbers between -1 and 1, different for each seed: multiples of 1/64, exact in 16 bits.
std::vector<float> numbers(const Dims& shape, int64_t seed) {
  std::vector<float> made;
  for (int64_t i = 0; i < count(shape); ++i)
    made.push_back(static_cast<float>((i * i * 7 + i * 13 + seed * 31) % 129 - 64) / 64);
  return made;
}

aclrtStream stream = nullptr;

template <class Plan, class Run>
void call(const char* name, Plan plan, Run run) {
  uint64_t size = 0;
  aclOpExecutor* executor = nullptr;
  check(plan(&size, &executor), name);
  void* workspace = nullptr;
  if (size > 0) check(aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
  check(run(workspace, size, executor, stream), name);
  check(aclrtSynchronizeStream(stream), name);
  if (workspace != nullptr) aclrtFree(workspace);
}

#define CALL(op, ...)                                                    \
  call(                                                                  \
      "aclnn" #op,                                                       \
      [&](uint64_t* size, aclOpExecutor** executor) {                    \
        return aclnn##op##GetWorkspaceSize(__VA_ARGS__, size, executor); \
      },                                                                 \
      aclnn##op)

void layer() {
  const Dims tokens = {kTokens, kWidth}, square = {kWidth, kWidth};
  const Dims heads = {1, kTokens, kHeads, kSize}, scores = {kHeads, kTokens, kTokens};
  const Tensor x(tokens, numbers(tokens, 1)), gamma({kWidth}, numbers({kWidth}, 2));
  const Tensor wq(square, numbers(square, 3), ACL_FLOAT16),
      wk(square, numbers(square, 4), ACL_FLOAT16);
  const Tensor wv(square, numbers(square, 5), ACL_FLOAT16),
      wo(square, numbers(square, 6), ACL_FLOAT16);
  Tensor normed(tokens), rstd({kTokens, 1}), q(tokens), k(tokens), v(tokens);
  CALL(RmsNorm, x, gamma, 1e-6, normed, rstd);
  CALL(Matmul, normed, wq, q, 0);  // float times 16 bits
  CALL(Matmul, normed, wk, k, 0);
  CALL(Matmul, normed, wv, v, 0);

  std::vector<float> cos, sin;
  for (int64_t i = 0; i < kTokens * kSize; ++i) {
    const auto angle = static_cast<float>(i / kSize) / static_cast<float>(1 + i % (kSize / 2));
    cos.push_back(std::cos(angle)), sin.push_back(std::sin(angle));
  }
  const Tensor c({1, kTokens, 1, kSize}, cos), s({1, kTokens, 1, kSize}, sin);
  Tensor q_turned(heads), k_turned(heads);
  CALL(RotaryPositionEmbedding, q.view(heads, {}), c, s, 0, q_turned);
  CALL(RotaryPositionEmbedding, k.view(heads, {}), c, s, 0, k_turned);

  // Heads first; the keys are turned around by their strides.
  const Dims by_head = {kHeads, kTokens, kSize}, by_head_strides = {kSize, kWidth, 1};
  Tensor products(scores), soft(scores), mixed(tokens);
  CALL(BatchMatMul, q_turned.view(by_head, by_head_strides),
       k_turned.view({kHeads, kSize, kTokens}, {kSize, 1, kWidth}), products, 0);
  std::vector<float> later;  // tokens that come later are hidden
  for (int64_t i = 0; i < kTokens * kTokens; ++i)
    later.push_back(i % kTokens > i / kTokens ? -INFINITY : 0.0f);
  const Tensor mask({kTokens, kTokens}, later);
  const float weight = 1.0f;
  aclScalar* one = aclCreateScalar(const_cast<float*>(&weight), ACL_FLOAT);
  CALL(InplaceAdd, products, mask, one);
  CALL(Softmax, products, -1, soft);
  CALL(BatchMatMul, soft, v.view(by_head, by_head_strides), mixed.view(by_head, by_head_strides),
       0);
  Tensor attention(tokens);
  CALL(Matmul, mixed, wo, attention, 0);
  CALL(InplaceAdd, attention, x, one);
  attention.print("attention");

  const Dims into = {kWidth, 2 * kInner}, back = {kInner, kWidth};
  const Tensor w_in(into, numbers(into, 7), ACL_FLOAT16),
      w_out(back, numbers(back, 8), ACL_FLOAT16);
  Tensor inner({kTokens, 2 * kInner}), gated({kTokens, kInner}), out(tokens);
  CALL(RmsNorm, attention, gamma, 1e-6, normed, rstd);
  CALL(Matmul, normed, w_in, inner, 0);
  CALL(SwiGlu, inner, -1, gated);
  CALL(Matmul, gated, w_out, out, 0);
  CALL(InplaceAdd, out, attention, one);
  aclDestroyScalar(one);
  out.print("layer");
}

void convolution() {
  const Dims picture = {1, 3, 9, 8}, kernel = {4, 3, 3, 3};
  const Tensor x(picture, numbers(picture, 9)), w(kernel, numbers(kernel, 10), ACL_FLOAT16);
  const Tensor bias({4}, numbers({4}, 11)), out({1, 4, 5, 4});
  const int64_t two[] = {2, 2}, one[] = {1, 1}, zero[] = {0, 0};
  aclIntArray *stride = aclCreateIntArray(two, 2), *padding = aclCreateIntArray(one, 2);
  aclIntArray *dilation = aclCreateIntArray(one, 2), *more = aclCreateIntArray(zero, 2);
  CALL(Convolution, x, w, bias, stride, padding, dilation, false, more, 1, out, 0);
  for (const aclIntArray* list : {stride, padding, dilation, more}) aclDestroyIntArray(list);
  out.print("convolution");
}

}  // namespace

int main() {
  check(aclInit(nullptr), "aclInit");
  check(aclrtSetDevice(0), "aclrtSetDevice");
  check(aclrtCreateStream(&stream), "aclrtCreateStream");
  layer();
  convolution();
  check(aclrtDestroyStream(stream), "aclrtDestroyStream");
  check(aclrtResetDevice(0), "aclrtResetDevice");
  check(aclFinalize(), "aclFinalize");
  return 0;
}
