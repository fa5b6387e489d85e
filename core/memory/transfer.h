// SPDX-License-Identifier: Apache-2.0
// Copies and fills, as the C functions of memory_copy.cpp and copies.cpp make them.
#pragma once

#include <cstddef>

#include "acl/acl_rt.h"
#include "core/support/observer.h"
#include "core/support/status.h"
#include "core/runtime/stream.h"

namespace openaclnn {

// A copy; a fill if src is nullptr. Rows of `count` bytes begin `dst_pitch` and `src_pitch` bytes
// apart.
struct Transfer {
  void* dst;
  const void* src;
  size_t count;
  int value;
  const char* call;
  size_t rows = 1, dst_pitch = 0, src_pitch = 0;
  mutable bool ran = false;

  // Bytes from the first to the last that is written or read.
  size_t written_span() const { return (rows - 1) * dst_pitch + count; }
  size_t read_span() const { return (rows - 1) * src_pitch + count; }

  void run() const;
  void notify(const Stream* stream) const;  // the observer, before it runs
  Range written() const;

 private:
  void move() const;
};

// Fails where the address lies in an allocation that ends before count bytes, or in reserved
// addresses without memory.
Status check_range(const char* call, const char* argument, const void* address, size_t count);

// The same, and for memory that acl neither allocated nor registered: a task that runs later needs
// it.
Status check_known_range(const char* call, const char* argument, const void* address, size_t count);

// `room` is what the program says dst has.
Status check_copy(const char* call, const Transfer& copy, size_t room, aclrtMemcpyKind kind);
Status check_fill(const char* call, const Transfer& fill, size_t room);

// On the calling thread.
Status run_now(const Transfer& transfer);
// As a task of the stream. Memory that acl neither allocated nor registered may be freed when the
// call returns, so the call waits.
Status enqueue(const char* call, const Transfer& transfer, aclrtStream stream);

}  // namespace openaclnn
