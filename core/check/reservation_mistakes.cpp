// SPDX-License-Identifier: Apache-2.0
// Reports addresses that are unmapped, released or freed by the wrong call.
#include <cstring>

#include "core/check/state.h"

namespace openaclnn::check {
namespace {

constexpr const char* kRight =
    "unmap where aclrtMapMem mapped, and release what aclrtReserveMemAddress gave.";

}  // namespace

void report_wrong_range(const char* call, ObjectKind kind, const void* address) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const bool device = is_device_address(address);
  const Block* own = device ? block_at(address) : nullptr;
  const Block* around = device ? block_or_reservation_at(address) : nullptr;
  if (kind == ObjectKind::reserved_memory) own = around;
  const bool inside = own != nullptr && at < own->end();
  const bool same = inside && own->mapping_index != nullptr && at == own->begin &&
                    own->mapped == (kind == ObjectKind::mapped_memory);
  const bool twice = same && !own->live && kind != ObjectKind::device_memory;
  Report report(twice ? "double_free" : "wrong_free");
  report.what.add(call).add(" got ").pointer(address);
  if (twice) {
    report.what.add(own->mapped ? ", where memory was unmapped before."
                                : ", a reservation that was released before.");
    report.advice = "unmap and release once, after the last use.";
  } else if (!inside) {
    report.what.add(", which is not ").add(name_of(kind)).add(".");
    report.advice = kRight;
  } else if (own->mapping_index == nullptr) {
    report.what.add(", which is device memory.");
    report.advice = "free device memory with aclrtFree.";
  } else if (at == own->begin) {
    report.what.add(own->mapped ? ", which is mapped memory." : ", which is a reservation.");
    report.advice = own->mapped ? "unmap mapped memory with aclrtUnmapMem."
                                : "release a reservation with aclrtReleaseMemAddress.";
  } else {
    report.what.add(", which lies ").number(at - own->begin).add(" bytes inside ");
    report.what.add(own->mapped ? "mapped memory." : "a reservation.");
    report.advice = kRight;
  }
  report.at("here", call, stack_here());
  add_memory(report, at);
  emit(report);
}

}  // namespace openaclnn::check
