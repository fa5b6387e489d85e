// SPDX-License-Identifier: Apache-2.0
// Reserved addresses, physical memory and mappings, against a model of what is mapped where.
#include <cstring>
#include <iterator>

#include "world.h"

namespace fuzz {
namespace {

constexpr size_t kGranule = size_t{2} << 20;

// Pointers may be any: numbers overflow where they would not.
uintptr_t distance(const void* begin, const void* end) {
  return reinterpret_cast<uintptr_t>(end) - reinterpret_cast<uintptr_t>(begin);
}

// From the address to the end of the reservation; 0 when it lies outside.
size_t room_in(const World& w, const void* address, const void* reservation) {
  const size_t size = w.sizes.at(const_cast<void*>(reservation));
  const size_t before = distance(reservation, address);
  return before < size ? size - before : 0;
}

bool is_in(const World& w, const void* address, const void* reservation) {
  return room_in(w, address, reservation) > 0;
}

void* reservation_of(const World& w, const char* address) {
  for (void* handle : w.reservations.live) {
    if (is_in(w, address, handle)) return handle;
  }
  return nullptr;
}

bool is_free(const World& w, const char* begin, size_t size) {
  for (const auto& [at, mapping] : w.mappings) {
    if (distance(begin, at) < size || distance(at, begin) < mapping.size) return false;
  }
  return true;
}

// How far memory is mapped from the address on.
size_t mapped_behind(const World& w, const char* address) {
  const void* around = reservation_of(w, address);
  const char* end = address;
  for (const auto& [at, mapping] : w.mappings) {
    if (around != nullptr && is_in(w, at, around) && at <= end && end < at + mapping.size) {
      end = at + mapping.size;
    }
  }
  return static_cast<size_t>(end - address);
}

aclrtPhysicalMemProp good_prop() {
  aclrtPhysicalMemProp prop = {};
  prop.memAttr = ACL_HBM_MEM_HUGE;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  return prop;
}

void spoil(Random& random, aclrtPhysicalMemProp& prop) {
  int wrong = static_cast<int>(random.next());
  if (wrong >= 0 && wrong < 18) wrong = 18;
  switch (random.below(5)) {
    case 0: std::memcpy(&prop.handleType, &wrong, sizeof wrong); break;
    case 1: std::memcpy(&prop.allocationType, &wrong, sizeof wrong); break;
    case 2: std::memcpy(&prop.memAttr, &wrong, sizeof wrong); break;
    case 3: std::memcpy(&prop.location.type, &wrong, sizeof wrong); break;
    default: prop.location.id = static_cast<uint32_t>(wrong);
  }
}

void ask_granularity(World& w) {
  aclrtPhysicalMemProp prop = good_prop();
  size_t granularity = 0;
  const bool bad = w.random.chance(40);
  if (bad) spoil(w.random, prop);
  const auto option = static_cast<aclrtMemGranularityOptions>(w.random.below(2));
  if (JUDGE(bad ? Must::fail : Must::pass, aclrtMemGetAllocationGranularity, &prop, option,
            &granularity) &&
      granularity != kGranule) {
    fault("the granularity is %zu", granularity);
  }
}

void allocate_physical(World& w) {
  if (w.physical.live.size() > 6) return;
  aclrtPhysicalMemProp prop = good_prop();
  size_t size = w.random.between(1, 3) * kGranule;
  uint64_t flags = 0;
  const bool bad = w.random.chance(20);
  if (bad) {
    switch (w.random.below(4)) {
      case 0: size += w.random.between(1, kGranule - 1); break;
      case 1: size = w.random.chance(50) ? 0 : SIZE_MAX - kGranule + 1; break;
      case 2: flags = w.random.next() | 1; break;
      default: spoil(w.random, prop);
    }
  }
  aclrtDrvMemHandle made = nullptr;
  if (JUDGE(must_pass_if(!bad), aclrtMallocPhysical, &made, size, &prop, flags)) {
    w.physical.add(made);
    w.serials[made] = run.calls;
    w.exported.erase(made);
    w.sizes[made] = size;
  }
}

void free_physical(World& w) {
  const Pick memory = w.pick(w.physical);
  if (JUDGE(must_pass_if(memory.live), aclrtFreePhysical, memory.handle)) {
    w.physical.kill(memory.handle);
    w.exported.erase(memory.handle);
  }
}

// What is mapped stays so (use_mapped); this process cannot import what it exported.
void share_physical(World& w) {
  if (!settle(w)) return;
  const Pick memory = w.pick(w.physical);
  const uint64_t flags = w.random.chance(80) ? w.random.below(2) : w.random.next() | 2;
  const bool known = memory.live && w.exported.count(memory.handle) != 0;
  uint64_t number = 0;
  if (JUDGE(must_pass_if(memory.live && !known && flags < 2), aclrtMemExportToShareableHandle,
            memory.handle, ACL_MEM_HANDLE_TYPE_NONE, flags, &number)) {
    w.exported[memory.handle] = number;
  }
  if (w.exported.empty()) return;
  number = std::next(w.exported.begin(), w.random.below(w.exported.size()))->second;
  number ^= w.random.chance(50) ? 0 : w.random.next();
  int32_t processes[2] = {1, 2};
  aclrtDrvMemHandle imported = nullptr;
  JUDGE(Must::either, aclrtMemSetPidToShareableHandle, number, processes, w.random.below(3));
  JUDGE(Must::fail, aclrtMemImportFromShareableHandle, number,
        static_cast<int32_t>(w.random.below(3)), &imported);
  JUDGE(Must::fail, aclrtMemImportFromShareableHandleV2, &number,
        static_cast<aclrtMemSharedHandleType>(w.random.below(4)), w.random.below(2), &imported);
}

void reserve_addresses(World& w) {
  if (w.reservations.live.size() > 3) return;
  size_t size = w.random.between(1, 6) * kGranule - w.random.below(100), alignment = 0;
  void* expected = nullptr;
  uint64_t flags = w.random.below(2);
  const bool bad = w.random.chance(20);
  if (bad) {
    switch (w.random.below(4)) {
      case 0: size = w.random.chance(50) ? 0 : SIZE_MAX - w.random.below(2 * kGranule); break;
      case 1: alignment = w.random.between(1, SIZE_MAX); break;
      case 2: flags = w.random.between(2, UINT64_MAX); break;
      default: expected = reinterpret_cast<void*>(w.random.next() | 1);
    }
  }
  void* made = nullptr;
  if (JUDGE(must_pass_if(!bad), aclrtReserveMemAddress, &made, size, alignment, expected, flags)) {
    w.reservations.add(made);
    w.sizes[made] = (size + kGranule - 1) / kGranule * kGranule;
  }
}

void release_addresses(World& w) {
  const Pick range = w.pick(w.reservations);
  bool good = range.live;
  for (const auto& [at, mapping] : w.mappings) {
    if (good && is_in(w, at, range.handle)) good = false;
  }
  if (JUDGE(must_pass_if(good), aclrtReleaseMemAddress, range.handle)) {
    w.reservations.kill(range.handle);
  }
}

void map_memory(World& w) {
  const Pick range = w.pick(w.reservations), memory = w.pick(w.physical);
  char* address = static_cast<char*>(range.handle);
  if (range.live) address += w.random.below(w.sizes[range.handle] / kGranule + 1) * kGranule;
  size_t size = memory.live ? w.sizes[memory.handle] : kGranule, offset = 0;
  uint64_t flags = 0;
  bool good = memory.live;
  if (w.random.chance(15)) {
    good = false;
    switch (w.random.below(4)) {
      case 0: size = w.random.chance(50) ? 0 : size + w.random.next(); break;
      case 1: offset = w.random.between(1, SIZE_MAX); break;
      case 2: flags = w.random.between(1, UINT64_MAX); break;
      default:  // an address that is dead in one reservation may be alive in a newer one
        if (range.live) {
          address += w.random.between(1, kGranule - 1);
        } else {
          offset = 1;
        }
    }
  }
  void* around = reservation_of(w, address);
  if (around == nullptr || size > room_in(w, address, around)) good = false;
  if (!is_free(w, address, size)) good = false;
  if (JUDGE(must_pass_if(good), aclrtMapMem, address, size, offset, memory.handle, flags)) {
    w.mappings[address] = {size, w.serials[memory.handle]};
  }
}

void unmap_memory(World& w) {
  if (!settle(w)) return;
  char* address = static_cast<char*>(w.pick(w.reservations).handle);
  if (!w.mappings.empty() && w.random.chance(85)) {
    address = std::next(w.mappings.begin(), w.random.below(w.mappings.size()))->first;
    if (w.random.chance(10)) address += w.random.between(1, 2 * kGranule);
  }
  const bool good = w.mappings.count(address) != 0;
  if (JUDGE(must_pass_if(good), aclrtUnmapMem, address)) w.mappings.erase(address);
}

// Bytes written in one place are read in all places of the same memory, and no others change.
void use_mapped(World& w) {
  if (w.mappings.empty() || !has_context() || !settle(w)) return;
  const auto& picked = *std::next(w.mappings.begin(), w.random.below(w.mappings.size()));
  char* const begin = picked.first;  // no structured bindings: C++17's lambdas do not capture them
  const Mapped mapping = picked.second;
  const size_t offset = w.random.below(mapping.size);
  char written = static_cast<char>(w.random.next()), read = 0;
  JUDGE(Must::pass, aclrtMemcpy, begin + offset, 1, &written, 1, ACL_MEMCPY_HOST_TO_DEVICE);
  for (const auto& known : w.mappings) {
    if (known.second.memory != mapping.memory) continue;
    char* const place = known.first + offset;
    JUDGE(Must::pass, aclrtMemcpy, &read, 1, place, 1, ACL_MEMCPY_DEVICE_TO_HOST);
    if (read != written) fault("two mappings of one memory differ at byte %zu", offset);
  }
  const size_t room = mapped_behind(w, begin + offset);
  JUDGE(Must::pass, aclrtMemset, begin + offset, room, written, room);
  JUDGE(Must::fail, aclrtMemset, begin + offset, SIZE_MAX, written, room + 1);
  if (JUDGE(Must::either, aclrtMemsetAsync, begin, SIZE_MAX, written, mapping.size,
            w.pick(w.streams).handle)) {
    w.pending = true;
  }
}

void free_mapped(World& w) {
  if (w.reservations.live.empty()) return;
  void* range = w.random.pick(w.reservations.live);
  char* within = static_cast<char*>(range) + w.random.below(w.sizes[range]);
  JUDGE(Must::fail, aclrtFree, within);
  JUDGE(Must::fail, aclrtFreeHost, within);
  aclrtPtrAttributes attributes;
  JUDGE(Must::pass, aclrtPointerGetAttributes, within, &attributes);
  const bool device = attributes.location.type == ACL_MEM_LOCATION_TYPE_DEVICE;
  if (device != (mapped_behind(w, within) > 0)) fault("attributes of %p are wrong", within);
}

void peers(World& w) {
  int32_t can = 0;
  const auto peer = static_cast<int32_t>(w.random.chance(50) ? w.random.below(3) : w.random.next());
  JUDGE(Must::fail, aclrtDeviceCanAccessPeer, &can, 0, peer);  // there is one device
  JUDGE(Must::fail, aclrtDeviceEnablePeerAccess, peer, 0);
  JUDGE(Must::fail, aclrtDeviceDisablePeerAccess, peer);
}

}  // namespace

void destroy_mappings(World& w) {
  for (const auto& known : w.mappings) {
    char* const at = known.first;
    JUDGE(Must::pass, aclrtUnmapMem, at);
  }
  w.mappings.clear();
  for (void* handle : w.physical.live) JUDGE(Must::pass, aclrtFreePhysical, handle);
  for (void* handle : w.reservations.live) JUDGE(Must::pass, aclrtReleaseMemAddress, handle);
  w.physical.live.clear();
  w.reservations.live.clear();
}

const std::vector<Action> memory_actions = {
    {1, ask_granularity},   {4, allocate_physical}, {3, free_physical}, {1, share_physical},
    {3, reserve_addresses}, {2, release_addresses}, {6, map_memory},    {5, unmap_memory},
    {5, use_mapped},        {1, free_mapped},       {1, peers},
};

}  // namespace fuzz
