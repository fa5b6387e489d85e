// SPDX-License-Identifier: Apache-2.0
// A mixture of experts without Python, as language models run it: each token goes to the two best
// of four experts, in INT8 with a scale for each token; a grouped product multiplies the tokens of
// each expert with its weights. A quantised product follows.
//
//   openaclnn cc --aten expert_layer.cpp -o expert_layer && ./expert_layer
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_dynamic_quant.h"
#include "aclnnop/aclnn_grouped_matmul_v5.h"
#include "aclnnop/aclnn_matmul.h"
#include "aclnnop/aclnn_moe_finalize_routing_v2.h"
#include "aclnnop/aclnn_moe_gating_top_k_softmax.h"
#include "aclnnop/aclnn_moe_init_routing_v3.h"
#include "aclnnop/aclnn_quant_matmul_v5.h"
#include "aclnnop/aclnn_swi_glu.h"

namespace {

using Dims = std::vector<int64_t>;

constexpr int64_t kTokens = 6, kWidth = 16, kInner = 12, kExperts = 4, kChoices = 2;
constexpr int64_t kSlots = kTokens * kChoices;

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

// Dense device memory.
class Tensor {
 public:
  Tensor(const Dims& shape, aclDataType dtype)
      : shape_(shape), dtype_(dtype), bytes_(count(shape) * aclDataTypeSize(dtype)) {
    check(aclrtMalloc(&memory_, bytes_, ACL_MEM_MALLOC_HUGE_FIRST), "aclrtMalloc");
    handle_ = view();
  }
  template <class T>
  Tensor(const Dims& shape, aclDataType dtype, const std::vector<T>& values)
      : Tensor(shape, dtype) {
    check(aclrtMemcpy(memory_, bytes_, values.data(), bytes_, ACL_MEMCPY_HOST_TO_DEVICE),
          "aclrtMemcpy");
  }
  Tensor(const Tensor&) = delete;
  ~Tensor() {
    aclDestroyTensor(handle_);
    aclrtFree(memory_);
  }

  operator aclTensor*() const { return handle_; }
  // A list of one tensor of the same memory; it destroys that tensor.
  aclTensorList* list() const {
    const aclTensor* one[] = {view()};
    return aclCreateTensorList(one, 1);
  }
  void print(const char* title) const {
    std::vector<aclFloat16> values(static_cast<size_t>(count(shape_)));
    check(aclrtMemcpy(values.data(), bytes_, memory_, bytes_, ACL_MEMCPY_DEVICE_TO_HOST),
          "aclrtMemcpy");
    std::printf("%s", title);
    for (const aclFloat16 x : values)
      std::printf(" %.9g", static_cast<double>(aclFloat16ToFloat(x)));
    std::printf("\n");
  }

 private:
  aclTensor* view() const {
    return aclCreateTensor(shape_.data(), shape_.size(), dtype_, nullptr, 0, ACL_FORMAT_ND,
                           shape_.data(), shape_.size(), memory_);
  }

  Dims shape_;
  aclDataType dtype_;
  size_t bytes_;
  void* memory_ = nullptr;
  aclTensor* handle_ = nullptr;
};

// Numbers from -64 to 64, different for each seed.
std::vector<int> numbers(const Dims& shape, int64_t seed) {
  std::vector<int> made;
  for (int64_t i = 0; i < count(shape); ++i)
    made.push_back(static_cast<int>((i * i * 7 + i * 13 + seed * 31) % 129 - 64));
  return made;
}

std::vector<aclFloat16> halves(const Dims& shape, int64_t seed) {
  std::vector<aclFloat16> made;
  for (const int x : numbers(shape, seed))
    made.push_back(aclFloatToFloat16(static_cast<float>(x) / 64));
  return made;
}

std::vector<int8_t> bytes(const Dims& shape, int64_t seed) {
  std::vector<int8_t> made;
  for (const int x : numbers(shape, seed)) made.push_back(static_cast<int8_t>(x));
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

// One product for the rows of each expert; the counts say how many rows it has. scale and
// per_token are NULL where nothing is quantised.
void grouped(const Tensor& x, const Tensor& weight, const Tensor* scale, const Tensor* per_token,
             const Tensor& counts, const Tensor& out) {
  constexpr int64_t kOneTensor = 3, kRows = 0, kCounts = 1, kNoActivation = 0;
  aclTensorList *from = x.list(), *with = weight.list(), *to = out.list();
  aclTensorList* columns = scale == nullptr ? nullptr : scale->list();
  aclTensorList* tokens = per_token == nullptr ? nullptr : per_token->list();
  CALL(GroupedMatmulV5, from, with, nullptr, columns, nullptr, nullptr, nullptr, tokens, counts,
       nullptr, nullptr, nullptr, kOneTensor, kRows, kCounts, kNoActivation, nullptr, to, nullptr,
       nullptr);
  for (const aclTensorList* list : {from, with, columns, tokens, to}) {
    if (list != nullptr) aclDestroyTensorList(list);
  }
}

void layer() {
  const Dims rows = {kTokens, kWidth}, gates = {kWidth, kExperts};
  const Tensor x(rows, ACL_FLOAT16, halves(rows, 1));
  const Tensor router(gates, ACL_FLOAT16, halves(gates, 2));
  const Tensor logits({kTokens, kExperts}, ACL_FLOAT16), share({kTokens, kChoices}, ACL_FLOAT16);
  const Tensor experts({kTokens, kChoices}, ACL_INT32), slots({kTokens, kChoices}, ACL_INT32);
  CALL(Matmul, x, router, logits, 0);
  CALL(MoeGatingTopKSoftmax, logits, nullptr, kChoices, share, experts, slots);

  // The tokens by expert, quantised.
  const Tensor sorted({kSlots, kWidth}, ACL_INT8), per_token({kSlots}, ACL_FLOAT);
  const Tensor places({kSlots}, ACL_INT32), counts({kExperts}, ACL_INT64);
  constexpr int64_t kDynamic = 1, kCount = 1, kPlaceOfSlot = 0;
  CALL(MoeInitRoutingV3, x, experts, nullptr, nullptr, kSlots, 0, kExperts, 0, kCount, true,
       kDynamic, nullptr, kPlaceOfSlot, sorted, places, counts, per_token);

  const Dims into = {kExperts, kWidth, 2 * kInner}, back = {kExperts, kInner, kWidth};
  const Tensor w_in(into, ACL_INT8, bytes(into, 3)), w_out(back, ACL_FLOAT16, halves(back, 4));
  const Tensor scale({kExperts, 2 * kInner}, ACL_FLOAT,
                     std::vector<float>(kExperts * 2 * kInner, 1.0f / 128));
  const Tensor inner({kSlots, 2 * kInner}, ACL_FLOAT16), gated({kSlots, kInner}, ACL_FLOAT16);
  const Tensor outer({kSlots, kWidth}, ACL_FLOAT16);
  grouped(sorted, w_in, &scale, &per_token, counts, inner);
  CALL(SwiGlu, inner, -1, gated);
  grouped(gated, w_out, nullptr, nullptr, counts, outer);
  const Tensor mixed(rows, ACL_FLOAT16);
  constexpr int64_t kRowMajor = 2;
  CALL(MoeFinalizeRoutingV2, outer, places, nullptr, nullptr, nullptr, share, nullptr, kRowMajor,
       mixed);
  mixed.print("experts");

  // A product of INT8 whose scales are those of the tokens and of the columns.
  const Dims square = {kWidth, kWidth};
  const Tensor q(rows, ACL_INT8), of_token({kTokens}, ACL_FLOAT), out(rows, ACL_FLOAT16);
  const Tensor weight(square, ACL_INT8, bytes(square, 5));
  const Tensor of_column({kWidth}, ACL_FLOAT, std::vector<float>(kWidth, 1.0f / 256));
  CALL(DynamicQuant, mixed, nullptr, q, of_token);
  CALL(QuantMatmulV5, q, weight, of_token, of_column, nullptr, nullptr, nullptr, nullptr, nullptr,
       false, false, 0, out);
  out.print("product");
}

}  // namespace

int main() {
  check(aclInit(nullptr), "aclInit");
  check(aclrtSetDevice(0), "aclrtSetDevice");
  check(aclrtCreateStream(&stream), "aclrtCreateStream");
  layer();
  check(aclrtDestroyStream(stream), "aclrtDestroyStream");
  check(aclrtResetDevice(0), "aclrtResetDevice");
  check(aclFinalize(), "aclFinalize");
  return 0;
}
