// SPDX-License-Identifier: Apache-2.0
// Preloaded by the fuzzer. Once fence_start was called, memory from posix_memalign, ATen's memory
// of tensors, ends at a page without access, but for the bytes up to its alignment. Those bytes,
// and the ones in front on its first page, are looked at when it is freed. Freed memory has no
// access.
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void __libc_free(void* memory);
void* __libc_memalign(size_t alignment, size_t size);

enum { kPage = 4096, kMost = 1 << 18, kCanary = 0x5C };
static const size_t kRegion = (size_t)4 << 30;

static char* region;
static size_t* sizes;  // by the page on which the memory begins; its size, and its offset there
static _Atomic size_t used;
static int fill_byte;

__attribute__((visibility("default"))) int fence_start(int fill) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const table =
      mmap(NULL, kRegion / kPage * sizeof *sizes, PROT_READ | PROT_WRITE, flags, -1, 0);
  void* const made = mmap(NULL, kRegion, PROT_NONE, flags, -1, 0);
  if (made == MAP_FAILED || table == MAP_FAILED) return errno;
  fill_byte = fill;
  sizes = table;
  region = made;
  return 0;
}

__attribute__((visibility("default"))) int posix_memalign(void** memory, size_t alignment,
                                                          size_t size) {
  if (region != NULL && size > 0 && size <= kMost && alignment <= kPage) {
    const size_t rounded = (size + alignment - 1) / alignment * alignment;
    const size_t pages = (rounded + kPage - 1) / kPage;
    const size_t at = atomic_fetch_add(&used, (pages + 1) * kPage);
    if (at + (pages + 1) * kPage <= kRegion) {
      char* const first = region + at;
      if (mprotect(first, pages * kPage, PROT_READ | PROT_WRITE) != 0) return ENOMEM;
      char* const begin = first + pages * kPage - rounded;
      memset(first, kCanary, pages * kPage);
      memset(begin, fill_byte, size);
      sizes[at / kPage] = size << 16 | (size_t)(begin - first);
      *memory = begin;
      return 0;
    }
  }
  void* const made = __libc_memalign(alignment, size);
  if (made == NULL) return ENOMEM;
  *memory = made;
  return 0;
}

static void look(const char* from, const char* to, const char* what) {
  for (; from < to; ++from) {
    if (*from == kCanary) continue;
    (void)!write(2, what, strlen(what));
    abort();
  }
}

__attribute__((visibility("default"))) void free(void* memory) {
  char* const begin = memory;
  if (region == NULL || begin < region || begin >= region + kRegion) {
    __libc_free(memory);
    return;
  }
  const size_t page = (size_t)(begin - region) / kPage;
  char* const first = region + page * kPage;
  const size_t size = sizes[page] >> 16;
  const size_t pages = ((size_t)(begin - first) + size + kPage - 1) / kPage;
  if (size == 0 || (sizes[page] & 0xFFFF) != (size_t)(begin - first)) {
    look("", "" + 1, "memory that ATen allocated is freed twice, or not from its beginning\n");
    abort();
  }
  sizes[page] = 0;
  look(first, begin, "bytes in front of memory that ATen allocated were written\n");
  look(begin + size, first + pages * kPage, "bytes past memory that ATen allocated were written\n");
  mprotect(first, pages * kPage, PROT_NONE);
  madvise(first, pages * kPage, MADV_DONTNEED);
}
