// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/products.h"

#include <string>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "core/base/dtype.h"
#include "core/base/listed.h"
#include "core/support/product.h"
#include "core/torch/aten/call.h"

namespace openaclnn::aten {
namespace {

constexpr const char* kHint = "; OPENACLNN_PRODUCT=any leaves it to ATen";

// "0 to 8", "3 or 4"
std::string rank_list(uint64_t ranks) {
  const int first = __builtin_ctzll(ranks), last = 63 - __builtin_clzll(ranks);
  const bool whole = (ranks >> first & (ranks >> first) + 1) == 0;
  if (whole && last - first > 1) return std::to_string(first) + " to " + std::to_string(last);
  std::vector<std::string> numbers;
  for (int rank = first; rank <= last; ++rank) {
    if ((ranks >> rank & 1) != 0) numbers.push_back(std::to_string(rank));
  }
  return listed(numbers, "or");
}

// A tensor of a list is named by its position.
struct Subject {
  const Call& call;
  const Product& product;
  const ProductRule& rule;
  int64_t position;  // -1: not of a list
  std::string name() const {
    const std::string plain = call.row->parameters[rule.parameter].name;
    return position < 0 ? plain : plain + "[" + std::to_string(position) + "]";
  }
};

void check_tensor(const Subject& subject, const Tensor& tensor) {
  const ProductRule& rule = subject.rule;
  const aclDataType dtype = acl_dtype(tensor.scalar_type());
  if (dtype == ACL_DT_UNDEFINED || (rule.dtypes >> dtype & 1) == 0)
    throw Refusal(c10::str(subject.name(), " must have dtype ", dtype_list(rule.dtypes), " on ",
                           subject.product.title, ", but got ", dtype_name(dtype), kHint),
                  Reason::wrong_dtype);
  if (rule.like >= 0) {
    const Tensor other = subject.call.tensor(static_cast<size_t>(rule.like));
    if (other.defined() && other.scalar_type() != tensor.scalar_type())
      throw Refusal(c10::str(subject.name(), " must have the dtype of ",
                             subject.call.row->parameters[rule.like].name, " ",
                             dtype_name(acl_dtype(other.scalar_type())), " on ",
                             subject.product.title, ", but got ", dtype_name(dtype), kHint),
                    Reason::wrong_dtype);
  }
  const int64_t rank = tensor.dim();
  if (rank > 63 ? ~rule.ranks != 0 : (rule.ranks >> rank & 1) == 0)
    throw Refusal(c10::str(subject.name(), " must have ", rank_list(rule.ranks), " dims on ",
                           subject.product.title, ", but has shape ", tensor.sizes(), kHint),
                  Reason::wrong_shape);
  if (rule.contiguous && !tensor.is_contiguous() && (rank < 2 || !tensor.mT().is_contiguous()))
    throw Refusal(
        c10::str(subject.name(), " must be contiguous on ", subject.product.title,
                 ", but has strides ", tensor.strides(), " and shape ", tensor.sizes(), kHint),
        Reason::wrong_value);
}

}  // namespace

int product_in_force() {
  const int product = current_product();
  return products[product].has_everything ? -1 : product;
}

void check_product(const Call& call, int product) {
  const ProductRules& own = product_rules[call.row - rows];
  if ((own.products >> product & 1) == 0) {
    std::vector<std::string> having;
    for (int i = 0; i < product_count; ++i) {
      if ((own.products >> i & 1) != 0) having.emplace_back(products[i].title);
    }
    throw Refusal(having.empty() ? c10::str("only Ascend 950 has this function; OPENACLNN_PRODUCT="
                                            "any computes it, but the product is ",
                                            products[product].title)
                                 : c10::str("the product must be ", listed(having, "or"),
                                            ", but is ", products[product].title),
                  Reason::not_supported, ACLNN_ERR_INNER_FIND_KERNEL_ERROR);
  }
  for (const ProductRule* rule = own.rules; rule != own.rules + own.count; ++rule) {
    if ((rule->products >> product & 1) == 0) continue;
    const IValue& value = call.values[static_cast<size_t>(rule->parameter)];
    Subject subject{call, products[product], *rule, -1};
    if (value.isTensor() && value.toTensor().defined()) check_tensor(subject, value.toTensor());
    if (!value.isList()) continue;
    for (const IValue& element : value.toListRef()) {
      ++subject.position;
      // An empty tensor stands for none: the index of a dim that is taken whole.
      if (element.isTensor() && element.toTensor().numel() > 0)
        check_tensor(subject, element.toTensor());
    }
  }
}

}  // namespace openaclnn::aten
