// SPDX-License-Identifier: Apache-2.0
// An operator that ATen computes: a line of src/openaclnn/aten/*.txt as plain data. Nothing here
// needs torch's headers, so the C symbols of all rows compile in a moment.
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
  enum class Numbers : uint8_t { any, floating, integral, scale } numbers = Numbers::any;
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
  int outputs[10];  // the parameters that take the results, ending with -1
  bool inplace;     // no outputs: the first parameter is written
  enum class Computed : uint8_t {
    as_given,
    in_float,  // 16-bit floats in float
    promoted,  // tensors of several dtypes in the one that holds them all, that of out among them
  } computed;
};

extern const Row rows[];
extern const int row_count;
extern const char* const rows_digest;  // the same for the same rows

int32_t plan(int row, const Value* values, uint64_t* workspace_size, void** executor);
int32_t run(int row, void* workspace, uint64_t workspace_size, void* executor, void* stream);

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
