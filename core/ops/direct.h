/* SPDX-License-Identifier: Apache-2.0 */
/* Direct calls: both phases of an operator at once, on the calling thread and the pool, on memory
 * that the caller describes as plain data. For bindings that other compilers build later, such as
 * core/torch and core/jax: this header is all that they include, and it includes nothing of the
 * library. */
#ifndef OPENACLNN_DIRECT_H
#define OPENACLNN_DIRECT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct openaclnn_operator openaclnn_operator;

typedef struct {
  void* data;             /* of element (0, ..., 0) */
  const int64_t* shape;   /* `rank` of them */
  const int64_t* strides; /* in elements; none is negative */
  int32_t rank;
  int32_t dtype; /* an aclDataType */
} openaclnn_view;

/* What a parameter of the row receives; its kind says which member counts. */
typedef union {
  const openaclnn_view* tensor; /* NULL: not there */
  double real;                  /* of a scalar too */
  int64_t integer;              /* of a flag 0 or 1 */
  const char* text;             /* NULL: not there */
} openaclnn_value;

/* By C name, such as "aclnnElu"; NULL: unknown. */
const openaclnn_operator* openaclnn_find(const char* name);

/* 1 where inputs may have this aclDataType on the current product, else 0. */
int32_t openaclnn_accepts(const openaclnn_operator* op, int32_t dtype);

/* The dtype, rank and shape (room for 8) of an output not made yet, which is NULL among
 * the values. The number of the output counts all parameters. */
int32_t openaclnn_infer(const openaclnn_operator* op, const openaclnn_value* values, int32_t output,
                        int32_t* dtype, int32_t* rank, int64_t* shape);

/* Computes. The calling thread counts as one that calls torch (core/runtime/parallel.h). */
int32_t openaclnn_call(const openaclnn_operator* op, const openaclnn_value* values);

/* Computes for XLA: on a thread that does not call torch, into fresh memory. */
int32_t openaclnn_call_for_xla(const openaclnn_operator* op, const openaclnn_value* values);

/* The sentence of this thread's newest failure, truncated to the size; it is cleared. */
void openaclnn_take_sentence(char* text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
