// SPDX-License-Identifier: Apache-2.0
// Operators that ATen does not have: each is a function of the row's parameters in their order,
//
//   void gelu_v2(const Tensor& x, int64_t tanh, Out out) { out = at::gelu(x, tanh ? … ); }
//
// and an entry of a table, ENTRY(gelu_v2). A tensor that is NULL is undefined.
#pragma once

#include <utility>

#include "core/torch/aten/composite.h"

namespace openaclnn::aten {

// Takes a result; see put.
class Out {
 public:
  Out(Tensor tensor, const char* name) : tensor_(std::move(tensor)), name_(name) {}
  void operator=(const Tensor& result) const { put(tensor_, result, name_); }
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
  const char* name_;
};

using Ints = std::vector<int64_t>;
using Bools = std::vector<bool>;  // as many as the row says
using Reals = std::vector<double>;
using Tensors = std::vector<Tensor>;

// A list that may have NULL among its tensors.
struct OptionalTensors : Tensors {};

using Text = std::string;

// 16-bit floats in float, which rounds once at the end.
inline Tensor at_least_float(const Tensor& x) {
  const bool half = x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
  return half ? x.to(at::kFloat) : x;
}

// A tensor or a number, for an operator and its form with an s at the end of the name.
struct Either {
  IValue value;

  bool is_tensor() const { return value.isTensor(); }
  at::Scalar number() const { return value.toScalar(); }
  Tensor tensor() const {
    return is_tensor() ? value.toTensor() : at::native::wrapped_scalar_tensor(number());
  }
};

// The elements of a dense tensor of that type.
template <class T>
T* data_of(const Tensor& tensor) {
  need_data(tensor);
  return tensor.data_ptr<T>();
}

// The one element of a tensor.
template <class T = int64_t>
T number_in(const Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() != 1)
    throw Refusal(c10::str("a tensor that is read as a number must have one element, but ",
                           tensor.defined() ? c10::str("has ", tensor.numel()) : "is NULL"));
  need_data(tensor);
  return tensor.item().to<T>();
}

// An attribute of an operator by type that may be absent.
template <class T>
inline constexpr bool is_optional_number =
    std::is_same_v<T, std::optional<int64_t>> || std::is_same_v<T, std::optional<double>> ||
    std::is_same_v<T, std::optional<bool>>;

template <class T>
T take(const Call& call, size_t i) {
  const IValue& value = call.values[i];
  if constexpr (std::is_same_v<T, Either> || std::is_same_v<T, at::Scalar>) {
    if (value.isNone()) throw Missing(call.row->parameters[i].name);
  }
  if constexpr (std::is_same_v<T, std::optional<at::Scalar>>) {
    return value.isNone() ? std::nullopt : std::optional(value.toScalar());
  } else if constexpr (is_optional_number<T>) {
    return value.isNone() ? std::nullopt : T(value.to<typename T::value_type>());
  } else if constexpr (std::is_same_v<T, Tensor>) {
    return call.tensor(i);
  } else if constexpr (std::is_same_v<T, Out>) {
    return Out(call.tensor(i), call.row->parameters[i].name);
  } else if constexpr (std::is_same_v<T, Sized>) {
    return Sized(call.tensor(i), i < call.handles.size() ? call.handles[i] : nullptr);
  } else if constexpr (std::is_same_v<T, Either>) {
    return {value};
  } else if constexpr (std::is_same_v<T, Ints>) {
    return value.isNone() ? Ints() : value.toIntVector();
  } else if constexpr (std::is_same_v<T, Bools>) {
    if (value.isNone()) return {};
    const auto list = value.toBoolList();
    return {list.begin(), list.end()};
  } else if constexpr (std::is_same_v<T, Reals>) {
    return value.isNone() ? Reals() : value.toDoubleVector();
  } else if constexpr (std::is_same_v<T, Text>) {
    return value.isNone() ? Text() : value.toStringRef();
  } else if constexpr (std::is_same_v<T, at::Scalar>) {
    return value.toScalar();
  } else if constexpr (std::is_same_v<T, bool>) {
    return value.toBool();
  } else if constexpr (std::is_same_v<T, double>) {
    return value.toDouble();
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return value.toInt();
  } else {
    constexpr bool optional = std::is_same_v<T, OptionalTensors>;
    static_assert(optional || std::is_same_v<T, Tensors>);
    T made;
    if (value.isNone()) return made;
    for (const IValue& element : value.toListRef()) {
      if (element.isNone() && !optional)
        throw missing_element(call.row->parameters[i].name, made.size());
      made.push_back(element.isNone() ? Tensor() : element.toTensor());
    }
    return made;
  }
}

template <auto function>
struct Unpacked;
template <class... T, void (*function)(T...)>
struct Unpacked<function> {
  template <size_t... i>
  static void spread(const Call& call, std::index_sequence<i...>) {
    function(take<std::remove_cvref_t<T>>(call, i)...);
  }
  static void run(const Call& call) { spread(call, std::index_sequence_for<T...>()); }
  static constexpr int parameters = sizeof...(T);
};

#define ENTRY(name) {#name, Unpacked<name>::parameters, Unpacked<name>::run}

// The tables, each ending with a name that is nullptr.
extern const Composite antialiased_composites[];
extern const Composite attention_composites[];
extern const Composite attention_merge_composites[];
extern const Composite box_composites[];
extern const Composite box_suppression_composites[];
extern const Composite by_type_composites[];
extern const Composite by_type_dim_composites[];
extern const Composite by_type_image_composites[];
extern const Composite by_type_index_composites[];
extern const Composite by_type_layer_composites[];
extern const Composite by_type_loss_composites[];
extern const Composite by_type_padding_composites[];
extern const Composite by_type_random_composites[];
extern const Composite cache_composites[];
extern const Composite cache_norm_rope_composites[];
extern const Composite causal_convolution_composites[];
extern const Composite chosen_attention_composites[];
extern const Composite chosen_attention_gradient_composites[];
extern const Composite collective_exchange_composites[];
extern const Composite collective_matmul_composites[];
extern const Composite convolution_composites[];
extern const Composite coordinate_composites[];
extern const Composite cross_entropy_composites[];
extern const Composite deformable_composites[];
extern const Composite detection_composites[];
extern const Composite elementwise_composites[];
extern const Composite grouped_matmul_composites[];
extern const Composite grouped_quantised_composites[];
extern const Composite gru_composites[];
extern const Composite indexing_composites[];
extern const Composite inference_attention_composites[];
extern const Composite inference_composites[];
extern const Composite linear_algebra_composites[];
extern const Composite linear_attention_composites[];
extern const Composite loss_composites[];
extern const Composite lstm_composites[];
extern const Composite matmul_dequant_composites[];
extern const Composite mla_composites[];
extern const Composite moe_combine_composites[];
extern const Composite moe_dispatch_composites[];
extern const Composite moe_finalize_composites[];
extern const Composite moe_gating_composites[];
extern const Composite moe_permutation_composites[];
extern const Composite moe_routing_composites[];
extern const Composite moe_routing_map_composites[];
extern const Composite native_attention_composites[];
extern const Composite native_choice_composites[];
extern const Composite normalisation_composites[];
extern const Composite optimiser_composites[];
extern const Composite padding_composites[];
extern const Composite plain_loss_composites[];
extern const Composite pooling_composites[];
extern const Composite quantisation_composites[];
extern const Composite quantised_layer_composites[];
extern const Composite quantised_matmul_composites[];
extern const Composite quantised_norm_composites[];
extern const Composite random_composites[];
extern const Composite recurrent_layer_composites[];
extern const Composite reduction_composites[];
extern const Composite region_align_composites[];
extern const Composite sampling_composites[];
extern const Composite slice_composites[];
extern const Composite sparse_attention_composites[];
extern const Composite training_composites[];
extern const Composite transformer_composites[];
extern const Composite various_composites[];
extern const Composite vision_composites[];
extern const Composite weight_matmul_composites[];

}  // namespace openaclnn::aten
