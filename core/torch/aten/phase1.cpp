// SPDX-License-Identifier: Apache-2.0
#include "core/torch/aten/phase1.h"

#include <array>
#include <atomic>
#include <typeinfo>

#include "core/torch/aten/compute.h"
#include "core/torch/aten/guards.h"
#include "core/torch/aten/products.h"
#include "core/torch/aten/limits.h"
#include "core/torch/aten/sentences.h"
#include "core/torch/aten/resolve.h"

namespace openaclnn::aten {
namespace {

// Hash of all that a result's shape and a product's rules may depend on: FNV-1a on 64-bit words,
// with a rotation so that high bits affect low ones.
class Key {
 public:
  void add(uint64_t value) {
    bits_ = (bits_ ^ value) * 0x9e3779b97f4a7c15;
    bits_ = bits_ >> 29 | bits_ << 35;
  }
  void add(const Tensor& tensor) {
    if (!tensor.defined()) return add(uint64_t{1} << 62);
    add(static_cast<uint64_t>(tensor.scalar_type()) << 8 | static_cast<uint64_t>(tensor.dim()));
    for (const int64_t size : tensor.sizes()) add(static_cast<uint64_t>(size));
    if (tensor.is_contiguous()) return;
    for (const int64_t stride : tensor.strides()) add(static_cast<uint64_t>(stride));
  }
  void add(const std::string& text) {
    for (const char letter : text) add(static_cast<uint64_t>(letter));
  }
  void add(const IValue& value);
  uint64_t bits() const { return bits_; }

 private:
  uint64_t bits_ = 0;
};

void add_number(Key& key, double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  key.add(bits);
}

uint64_t type_of(const IValue& value) {
  return value.isNone()     ? 0
         : value.isTensor() ? 1
         : value.isInt()    ? 2
         : value.isBool()   ? 3
         : value.isDouble() ? 4
         : value.isString() ? 5
         : value.isList()   ? 6
                            : 7;
}

void Key::add(const IValue& value) {
  add(type_of(value));  // else NULL and a number of the same bits would have one key
  if (value.isTensor()) return add(value.toTensor());
  if (value.isInt()) return add(static_cast<uint64_t>(value.toInt()));
  if (value.isBool()) return add(uint64_t{value.toBool()});
  if (value.isDouble()) return add_number(*this, value.toDouble());
  if (value.isString()) return add(value.toStringRef());
  if (value.isIntList()) {
    const std::vector<int64_t> list = value.toIntVector();
    add(list.size() << 48);
    for (const int64_t element : list) add(static_cast<uint64_t>(element));
  } else if (value.isList()) {
    const auto list = value.toListRef();
    add(list.size() << 48);
    for (const IValue& element : list) add(element);
  } else if (value.isComplexDouble()) {
    add_number(*this, value.toComplexDouble().real());
    add_number(*this, value.toComplexDouble().imag());
  }
}

// The lowest bits of what is noted of a key: the place is taken, the result fits the output, and
// the kernel takes the values as they are.
constexpr uint64_t kTaken = 1, kFits = 2, kDirect = 4, kNotes = kFits | kDirect;

uint64_t key_of(const Call& call, int product) {
  Key key;
  key.add(static_cast<uint64_t>(product));
  key.add(reinterpret_cast<uintptr_t>(call.row));
  for (const IValue& value : call.values) key.add(value);
  return (key.bits() & ~kNotes) | kTaken;
}

// One slot for each key; calls that share a slot are only checked more often.
std::atomic<uint64_t>& place_of(uint64_t key) {
  static std::array<std::atomic<uint64_t>, 1 << 14> places{};
  return places[key >> 50];
}

bool without_data(const Tensor& tensor, bool composite, Tensor& made) {
  made = tensor;
  if (!tensor.defined()) return true;
  // Composites unpack 4-bit integers; no operator of ATen takes them.
  const bool packed = tensor.scalar_type() == at::ScalarType::Int4 && !composite;
  const at::ScalarType dtype = packed ? at::kChar : tensor.scalar_type();
  made = at::empty_strided(tensor.sizes(), tensor.strides(),
                           tensor.options().dtype(dtype).device(at::kMeta));
  return true;
}

// False if the call has arguments that cannot be meta tensors, or no tensors.
bool without_data(const Call& call, Call& made) {
  bool any = false;
  const bool composite = resolved(*call.row).composite != nullptr;
  made.row = call.row;
  made.handles.resize(call.handles.size());  // no handles: data-dependent shapes are not written
  for (const IValue& value : call.values) {
    if (value.isTensor()) {
      Tensor tensor;
      if (!without_data(value.toTensor(), composite, tensor)) return false;
      any |= tensor.defined();
      made.values.emplace_back(tensor);
    } else if (value.isList() && !value.isIntList() && !value.isDoubleList() &&
               !value.isBoolList()) {
      c10::List<std::optional<Tensor>> list;
      for (const IValue& element : value.toListRef()) {
        Tensor tensor;
        if (element.isTensor() ? !without_data(element.toTensor(), composite, tensor)
                               : !element.isNone())
          return false;
        any = true;
        list.push_back(element.isNone() ? std::nullopt : std::optional(tensor));
      }
      made.values.emplace_back(list);
    } else {
      made.values.push_back(value);
    }
  }
  return any;
}

bool needs_data(const c10::OperatorHandle& op) {
  return op.hasTag(at::Tag::data_dependent_output) || op.hasTag(at::Tag::dynamic_output_shape) ||
         op.hasTag(at::Tag::nondeterministic_seeded);
}

// The operator looks for numbers in a tensor without data: of item(), tensor_split and
// repeat_interleave ATen throws its general type.
bool reads_data(const std::string& text) { return first_line(text).find("meta") != text.npos; }

// In a process with Python most meta kernels are Python: their exceptions arrive untyped, with the
// class name in front. Other classes mean that the meta kernel is missing.
void refused_in_python(const Call& call, const std::string& text) {
  if (reads_data(text)) return;
  for (const std::string name : {"RuntimeError: ", "IndexError: ", "ValueError: "}) {
    if (text.rfind(name, 0) == 0) throw refusal_of(call, text.substr(name.size()));
  }
}

bool is_same_view(const Tensor& a, const Tensor& b) {
  return a.const_data_ptr() == b.const_data_ptr() && a.scalar_type() == b.scalar_type() &&
         a.sizes() == b.sizes() && a.strides() == b.strides();
}

// Whether ATen may write the output itself.
bool may_write_out(const Call& call, const Resolved& found) {
  if (!found.into) return false;
  const auto place = static_cast<size_t>(call.row->outputs[0]);
  const Tensor& out = call.values[place].toTensor();
  if (!out.is_contiguous() || out.numel() == 0) return false;
  const Span written = span_of(out);
  const auto leaves_intact = [&](const IValue& value) {
    if (!value.isTensor() || !value.toTensor().defined()) return true;
    const Tensor& tensor = value.toTensor();
    if (found.into_rank >= 0 && tensor.dim() != found.into_rank) return false;
    return are_disjoint(span_of(tensor), written) ||
           (found.is_pointwise && is_same_view(tensor, out));
  };
  for (size_t i = 0; i < call.values.size(); ++i) {
    const IValue& value = call.values[i];
    if (i == place || value.isNone() || value.isIntList()) continue;
    if (value.isList()) {
      for (const IValue& element : value.toListRef())
        if (!leaves_intact(element)) return false;
    } else if (!leaves_intact(value)) {
      return false;
    }
  }
  return true;
}

}  // namespace

void check_call(Call& call) {
  call.checked = true;
  const int product = product_in_force();
  const uint64_t key = key_of(call, product);
  std::atomic<uint64_t>& place = place_of(key);
  const Resolved& found = resolved(*call.row);
  const auto choose_way = [&](uint64_t notes) {
    call.writes_out = (notes & kFits) != 0 && may_write_out(call, found);
    call.direct = (notes & kDirect) != 0 && (found.in_place || call.writes_out);
  };
  const uint64_t noted = place.load(std::memory_order_relaxed);
  if ((noted & ~kNotes) == key) return choose_way(noted);
  const WithoutWarnings quiet;
  const KernelsOnly guard;
  check_missing(call);
  if (product >= 0) check_product(call, product);
  check_limits(call);
  bool fits = false;
  Call made;
  if (!(found.op && needs_data(*found.op)) && without_data(call, made)) {
    try {
      compute(made, &fits);
    } catch (const Refusal&) {
      throw;
    } catch (const NeedsData&) {                 // of a composite
    } catch (const c10::NotImplementedError&) {  // no meta kernel
    } catch (const c10::Error& error) {
      const bool is_general = typeid(error) == typeid(c10::Error);
      if (!is_general || !reads_data(error.what_without_backtrace())) throw;
    } catch (const std::exception& error) {
      refused_in_python(call, error.what());
    }
  }
  const uint64_t notes = (fits ? kFits : 0) | (takes_directly(call, found) ? kDirect : 0);
  place.store(key | notes, std::memory_order_relaxed);
  choose_way(notes);
}

}  // namespace openaclnn::aten
