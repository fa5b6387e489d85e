// SPDX-License-Identifier: Apache-2.0
// An operator that ATen computes: a line of src/openaclnn/aten/*.txt as plain data. No torch
// headers, so the C functions of all rows compile in a moment.
//
// How this works
//
// The rows become one generated file (rows.cpp, by src/openaclnn/aten/source.py): the table
// `rows`, and for each row two C functions, aclnnXxxGetWorkspaceSize and aclnnXxx. It is compiled
// into two libraries, which execute the rows differently:
//
//   C program                          torch_npu
//      | links lib64/aten/libopapi.so     | dlopens libaclnn_math.so where libopapi.so
//      v  (names only, jumps)             v  lacks the function
//   libopenaclnn_aten.so --dlopen--> libaclnn_math.so -------> libtorch_cpu.so
//   core/aten             Backend    core/torch/aten           ATen
//   installed, no torch              compiled on first use
//      |                                |
//      v                                v
//   libopenaclnn.so: executors, streams, check mode
//
// For C programs (plan_for_c, run_for_c): an executor is openaclnn's own (aclOpExecutor), which can
// be repeatable and is watched by check mode; its work (AtenWork) calls the function table
// `Backend` of libaclnn_math.so. That library and PyTorch are loaded at the first call
// (backend.cpp), so a program starts without PyTorch; if they are missing, phase 1 fails.
//
// For torch_npu (plan_for_npu, run_for_npu): torch is in the process already. An executor is a Call
// in a pool of libaclnn_math.so, consumed by its run; refusals may be deferred (core/npu/queue.h).
//
// Both: phase 1 converts the arguments to ATen values (call.h), and checks them against the row
// (limits.h) and with ATen's meta kernels (phase1.h). Phase 2 waits for the stream, calls the ATen
// operator (resolve.h) or composite (composite.h), on the calling thread or, for C programs,
// possibly the stream's (core/ops/foreign.h), and copies results to the caller's tensors (put()).
// Kernels that take a row's arguments as they are write there themselves (direct.h).
#pragma once

#include <cstdint>

namespace openaclnn::aten {

// The types of the C function's arguments.
union Value {
  const void* pointer;
  int64_t integer;
  double real;
};

inline Value value(const void* pointer) { return {.pointer = pointer}; }
inline Value value(int64_t integer) { return {.integer = integer}; }
inline Value value(int32_t integer) { return {.integer = integer}; }
inline Value value(int8_t integer) { return {.integer = integer}; }
inline Value value(bool flag) { return {.integer = flag}; }
inline Value value(double real) { return {.real = real}; }
inline Value value(float real) { return {.real = real}; }

enum class Kind : uint8_t {
  tensor,
  tensors,
  scalar,
  scalars,
  ints,
  bools,
  floats,
  integer,  // int64_t and int8_t
  real,     // double and float
  flag,
  dtype,  // an aclDataType
  text,
};

// An element of a parameter's shape; src/openaclnn/aten/parameters.py has the notation.
struct Size {
  enum class Kind : uint8_t {
    named,     // the same size wherever the name occurs; value: index of the name
    number,    // value
    rest,      // any dims, the same in all parameters
    any,       // any dims
    of_value,  // the number, the list or the shape of parameter `value`
  } kind;
  bool optional;  // may be missing, but then in all parameters
  bool positive;  // at least 1
  int64_t value;
  const char* name;
};

// Limits of a parameter that ATen does not check.
struct Limits {
  const Size* shape = nullptr;  // of a tensor; the length of a list
  int sizes = -1;               // -1: any shape
  bool nullable = false;        // only of composites: ATen's operators have a schema
  bool flat = false;            // only the number of elements counts
  int condition = -1;           // the flag that makes it relevant
  int unless = -1;              // the flag that allows NULL
  enum class Numbers : uint8_t { any, floating, integral, packed, scale, unset };
  Numbers numbers = Numbers::any;
  int64_t least = INT64_MIN, most = INT64_MAX;
  int multiple = -1;            // the parameter that divides it, at least 1
  const Size* bound = nullptr;  // the factors of the bound of indices
  int factors = 0;
  int ignored = -1;  // the parameter whose number is accepted beside them
};

struct Parameter {
  const char* name;
  Kind kind;
  bool written;
  Limits limits{};
};

// An argument of the ATen operator: a parameter, or a constant of the row.
struct Argument {
  enum class From : uint8_t { parameter, dtype_of_out, none, flag, integer, real, text } from;
  int64_t integer;  // the parameter, or the value
  double real;
  const char* text;
};

struct Row {
  const char* name;
  const Parameter* parameters;
  int parameter_count;
  const char* op;        // of ATen, or the composite when overload is nullptr
  const char* overload;  // "" for the default
  const Argument* arguments;
  int argument_count;
  int outputs[12];  // the parameters that take the results, ending with -1
  bool inplace;     // no outputs: the first parameter is written
  enum class Computed : uint8_t {
    as_given,
    in_float,  // 16-bit floats in float
    promoted,  // tensors of several dtypes in the one that holds them all, that of out among them
    moved,     // values only move: reading uninitialised inputs is no mistake yet (check mode)
  } computed;
};

extern const Row rows[];
extern const int row_count;
extern const char* const rows_digest;  // the same for the same rows

// Both phases of a row, as the generated C functions call them: in libopenaclnn_aten
// (core/aten/calls.cpp), and in libaclnn_math.so (core/torch/aten/engine.cpp).
int32_t plan_for_c(int row, const Value* values, uint64_t* workspace_size, void** executor);
int32_t run_for_c(int row, void* workspace, uint64_t workspace_size, void* executor, void* stream);
int32_t plan_for_npu(int row, const Value* values, uint64_t* workspace_size, void** executor);
int32_t run_for_npu(int row, void* workspace, uint64_t workspace_size, void* executor,
                    void* stream);

// The function table of the backend, exported as kBackend.
struct Backend {
  const char* rows_digest;
  uint64_t torch_abi;  // aoti_torch_abi_version() of the torch that it was compiled for
  int32_t (*prepare)(int row, const Value* values, void** call);  // what compute needs
  int32_t (*compute)(const void* call);                           // any number of times
  void (*drop)(void* call);
  void (*set_threads)(int count);
};
inline constexpr char kBackend[] = "openaclnn_aten_backend";

}  // namespace openaclnn::aten
