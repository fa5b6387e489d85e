// SPDX-License-Identifier: Apache-2.0
// A library whose functions make the mistakes that the fuzzer must report, one each; x is a tensor
// of 8 floats or fewer. Handles are real enough for the fuzzer: they hold shape and address.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
  int alive, rank;
  int64_t count;
  float* data;
} Tensor;

static char text[256];
static const Tensor *x, *y;
static int32_t mode;

static int refuse(const char* name, int status) {
  snprintf(text, sizeof text, "[PID:1] 2026 AclNN_Parameter_Error(EZ1001): %s: x is wrong\n", name);
  return status;
}

int aclrtSetDevice(int32_t device) { return device; }
const char* aclGetRecentErrMsg(void) {
  static char taken[sizeof text];
  memcpy(taken, text, sizeof text);
  text[0] = 0;
  return taken;
}
void* aclCreateTensor(const int64_t* dims, uint64_t rank, int32_t dtype, const int64_t* strides,
                      int64_t offset, int32_t format, const int64_t* storage, uint64_t storage_rank,
                      void* data) {
  (void)format, (void)storage, (void)storage_rank;
  Tensor* t = malloc(sizeof *t);
  *t = (Tensor){dtype == 0 && strides == NULL && offset == 0, (int)rank, 1, data};
  for (uint64_t i = 0; i < rank; ++i) t->count *= dims[i];
  t->alive &= rank == 1 && data != NULL && t->count > 0;
  return t;
}
int aclDestroyTensor(const void* tensor) { return (void)tensor, 0; }  // handles are never reused
void* aclCreateScalar(void* value, int32_t dtype) {
  return (void)value, (void)dtype, calloc(1, 64);
}
void* aclCreateIntArray(const int64_t* v, uint64_t n) { return (void)v, (void)n, calloc(1, 64); }
void* aclCreateBoolArray(const void* v, uint64_t n) { return (void)v, (void)n, calloc(1, 64); }
void* aclCreateFloatArray(const void* v, uint64_t n) { return (void)v, (void)n, calloc(1, 64); }
void* aclCreateTensorList(const void* v, uint64_t n) { return (void)v, (void)n, calloc(1, 64); }
void* aclCreateScalarList(const void* v, uint64_t n) { return (void)v, (void)n, calloc(1, 64); }
int aclDestroyScalar(const void* p) { return (void)p, 0; }
int aclDestroyIntArray(const void* p) { return (void)p, 0; }
int aclDestroyBoolArray(const void* p) { return (void)p, 0; }
int aclDestroyFloatArray(const void* p) { return (void)p, 0; }
int aclDestroyTensorList(const void* p) { return (void)p, 0; }
int aclDestroyScalarList(const void* p) { return (void)p, 0; }
int aclDestroyAclOpExecutor(void* p) { return (void)p, 0; }

static int plan(const char* name, const Tensor* a, int64_t number, const Tensor* out,
                uint64_t* size, void** executor) {
  if (a == NULL || out == NULL) return refuse(name, 161001);
  if (!a->alive || !out->alive || a->count != out->count) return refuse(name, 161002);
  x = a, y = out, mode = (int32_t)number;
  *size = 0;
  *executor = text;
  return 0;
}

// Memory as ATen allocates it: a byte of it, or beside it.
static void use(int byte, int writes, int freed) {
  void* memory = NULL;
  if (posix_memalign(&memory, 64, 60) != 0) abort();
  volatile char* const at = memory;
  if (freed) free(memory);
  if (writes)
    at[byte] = 1;
  else
    (void)at[byte];
  if (!freed) free(memory);
}

// out = x, both [n]; the mistake is made with mode 7.
#define FUNCTION(name, most, mistake)                                                      \
  int name##GetWorkspaceSize(const Tensor* a, int64_t number, Tensor* out, uint64_t* size, \
                             void** executor) {                                            \
    if (number > most) return refuse(#name, 161002);                                       \
    return plan(#name, a, number, out, size, executor);                                    \
  }                                                                                        \
  int name(void* workspace, uint64_t size, void* executor, void* stream) {                 \
    (void)workspace, (void)size, (void)executor, (void)stream;                             \
    if (mode != 7) memcpy(y->data, x->data, (size_t)y->count * sizeof(float));             \
    if (mode == 7) mistake;                                                                \
    return 0;                                                                              \
  }

FUNCTION(aclnnRight, 2, (void)0)
FUNCTION(aclnnDies, 9, abort())
FUNCTION(aclnnHangs, 9, for (;;) sleep(1))
FUNCTION(aclnnDiffers, 9, {
  volatile float* f = malloc(64);
  for (int i = 0; i < y->count; ++i) y->data[i] = f[2];
})
FUNCTION(aclnnReadsPast, 9, *(volatile float*)&x->data[x->count])
FUNCTION(aclnnWritesPast, 9, y->data[y->count] = 1)
FUNCTION(aclnnReadsBefore, 9, *(volatile float*)&x->data[-1])
FUNCTION(aclnnHeapFront, 9, use(-1, 1, 0))
FUNCTION(aclnnHeapPast, 9, use(61, 1, 0))
FUNCTION(aclnnHeapReadPast, 9, use(64, 0, 0))
FUNCTION(aclnnHeapFreed, 9, use(0, 0, 1))
FUNCTION(aclnnChangesInput, 9, x->data[0] = 42)
FUNCTION(aclnnStray, 9, y->data[-1] = 42)
FUNCTION(aclnnSays, 9, fputs("a warning\n", stderr))
FUNCTION(aclnnSilent, 9, return 161002)
FUNCTION(aclnnOddStatus, 9, return refuse("aclnnOddStatus", 7))
FUNCTION(aclnnInternal, 9, return refuse("aclnnInternal", 561000))
FUNCTION(aclnnUntouched, 9, return 0)

int aclnnNeverGetWorkspaceSize(const Tensor* a, int64_t number, Tensor* out, uint64_t* size,
                               void** executor) {
  (void)a, (void)number, (void)out, (void)size, (void)executor;
  return refuse("aclnnNever", 161002);
}
int aclnnNever(void) { return 0; }
