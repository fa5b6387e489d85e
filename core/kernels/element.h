// SPDX-License-Identifier: Apache-2.0
// What all kernels share with phase 1: the types in memory, the size of a tile, and the names of
// what is compiled once per instruction set. OPENACLNN_ISA is v2, v3, v4 (x86-64 levels) or native
// (aarch64).
#pragma once

#include <cstddef>
#include <cstdint>

// kernels_v4 of kernels_
#define OPENACLNN_JOIN_(a, b) a##b
#define OPENACLNN_JOIN(a, b) OPENACLNN_JOIN_(a, b)
#define OPENACLNN_OF_ISA(name) OPENACLNN_JOIN(name, OPENACLNN_ISA)

namespace openaclnn {

enum class Element : uint8_t { f32, f16, bf16, f64 };

// Bytes of computed values in a tile: its inputs and output fit L1 together.
inline constexpr int64_t kTileBytes = 8192;
template <class T>
inline constexpr int64_t kTile = kTileBytes / sizeof(T);

}  // namespace openaclnn
