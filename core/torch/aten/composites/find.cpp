// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/composites/entry.h"

#include <cstring>

namespace openaclnn::aten {

const Composite* find_composite(const char* name) {
  for (const Composite* table : {antialiased_composites,
                                 attention_composites,
                                 attention_merge_composites,
                                 box_composites,
                                 box_suppression_composites,
                                 by_type_composites,
                                 by_type_dim_composites,
                                 by_type_image_composites,
                                 by_type_index_composites,
                                 by_type_layer_composites,
                                 by_type_loss_composites,
                                 by_type_padding_composites,
                                 by_type_random_composites,
                                 cache_composites,
                                 cache_norm_rope_composites,
                                 causal_convolution_composites,
                                 chosen_attention_composites,
                                 chosen_attention_gradient_composites,
                                 collective_exchange_composites,
                                 collective_matmul_composites,
                                 convolution_composites,
                                 cross_entropy_composites,
                                 deformable_composites,
                                 detection_composites,
                                 elementwise_composites,
                                 grouped_matmul_composites,
                                 grouped_quantised_composites,
                                 gru_composites,
                                 indexing_composites,
                                 inference_attention_composites,
                                 inference_composites,
                                 linear_algebra_composites,
                                 linear_attention_composites,
                                 loss_composites,
                                 lstm_composites,
                                 matmul_dequant_composites,
                                 mla_composites,
                                 moe_combine_composites,
                                 moe_dispatch_composites,
                                 moe_finalize_composites,
                                 moe_gating_composites,
                                 moe_permutation_composites,
                                 moe_routing_composites,
                                 moe_routing_map_composites,
                                 native_attention_composites,
                                 native_choice_composites,
                                 normalisation_composites,
                                 optimiser_composites,
                                 padding_composites,
                                 plain_loss_composites,
                                 pooling_composites,
                                 quantisation_composites,
                                 quantised_layer_composites,
                                 quantised_matmul_composites,
                                 quantised_norm_composites,
                                 random_composites,
                                 recurrent_layer_composites,
                                 reduction_composites,
                                 region_align_composites,
                                 sampling_composites,
                                 slice_composites,
                                 coordinate_composites,
                                 sparse_attention_composites,
                                 training_composites,
                                 transformer_composites,
                                 various_composites,
                                 vision_composites,
                                 weight_matmul_composites}) {
    for (; table->name != nullptr; ++table) {
      if (std::strcmp(table->name, name) == 0) return table;
    }
  }
  return nullptr;
}

}  // namespace openaclnn::aten
