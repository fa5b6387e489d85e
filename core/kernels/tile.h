// SPDX-License-Identifier: Apache-2.0
// A tile is rows × columns of an operand, packed row-major into a buffer that fits L1.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/kernels/element.h"
#include "core/kernels/half.h"
#include "core/kernels/transpose.h"

namespace openaclnn::OPENACLNN_ISA {
namespace {

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

inline int64_t bytes_of(Element element) {
  return element == Element::f64 ? 8 : element == Element::f32 ? 4 : 2;
}
inline void* element_at(void* data, Element element, int64_t index) {
  return static_cast<char*>(data) + index * bytes_of(element);
}

// The types of elements are structs; those of 16 bits are in half.h.
struct F32 {
  static constexpr Element kElement = Element::f32;
  using Raw = float;
  using Computed = float;
  static FloatRegister load(const Raw* in) { return load_register<FloatRegister>(in); }
  static float from(Raw raw) { return raw; }
  static Raw rounded(double x) { return static_cast<float>(x); }
  static Raw canonical(Raw raw) { return openaclnn::OPENACLNN_ISA::canonical(raw); }
};
struct F64 {  // for loops over blocks, not registers
  static constexpr Element kElement = Element::f64;
  using Raw = double;
  using Computed = double;
};

// Calls work(Type{}) with the type of an element that is not double.
inline auto with_type(Element element, const auto& work) {
  return element == Element::f32   ? work(F32{})
         : element == Element::f16 ? work(F16{})
                                   : work(Bf16{});
}

inline float float_at(const void* in, Element element) {
  return with_type(element, [=]<class Type>(Type) {
    return Type::from(*static_cast<const typename Type::Raw*>(in));
  });
}

// Converts n contiguous values of any element type to the compute type; a DOUBLE input makes that
// double.
template <class T>
inline void widen(T* out, const void* in, Element element, int64_t n) {
  if (bytes_of(element) == sizeof(T)) return void(std::memcpy(out, in, n * sizeof(T)));
  with_type(element, [=]<class Type>(Type) {
    const auto* const from = static_cast<const typename Type::Raw*>(in);
    if constexpr (__is_same(T, float) && !__is_same(Type, F32)) {
      widen<Type>(out, from, n);
    } else {
      for (int64_t i = 0; i < n; ++i) out[i] = Type::from(from[i]);
    }
  });
}

// … and back, rounding once.
template <class T>
inline void narrow(void* out, const T* in, Element element, int64_t n) {
  if (bytes_of(element) == sizeof(T)) return void(std::memcpy(out, in, n * sizeof(T)));
  if (element == Element::f64) {
    for (int64_t i = 0; i < n; ++i) static_cast<double*>(out)[i] = in[i];
    return;
  }
  with_type(element, [=]<class Type>(Type) {
    auto* const to = static_cast<typename Type::Raw*>(out);
    if constexpr (__is_same(T, float) && !__is_same(Type, F32)) {
      narrow<Type>(to, in, n);
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = Type::rounded(in[i]);
    }
  });
}

// Where the elements of a tile lie. Strides are in elements.
struct Placement {
  int64_t rows, columns, row_stride, column_stride;
  bool packed() const { return column_stride == 1 && (rows == 1 || row_stride == columns); }
  bool constant() const { return column_stride == 0 && (rows == 1 || row_stride == 0); }
};

// Where the rows and columns of one side of a copy lie.
struct Steps {
  int64_t row, column;
  bool transposed() const { return row == 1 && (column > 1 || column < -1); }
};

// Copies rows × columns elements from one strided place to another. If one side is dense along its
// rows and the other along its columns, this is a transposition. Otherwise the loop over columns is
// the inner one, unless one side is dense along its rows, or there are so few columns that the loop
// costs more than the copies. Without the unrolled loop, group norm of every second position of
// fp32 4x320x49 takes 1.2 times as long.
template <class Raw>
inline void move(Raw* to, Steps out, const Raw* from, Steps in, int64_t rows, int64_t columns) {
  if (in.transposed() && out.column == 1)
    return transpose(to, out.row, from, in.column, rows, columns);
  if (out.transposed() && in.column == 1)
    return transpose(to, out.column, from, in.row, columns, rows);
  constexpr int64_t kFew = 32 / sizeof(Raw);
  if (out.transposed() || in.transposed() || (columns < kFew && columns < rows)) {
    for (int64_t c = 0; c < columns; ++c) {
      Raw* t = to + c * out.column;
      const Raw* f = from + c * in.column;
      for (int64_t r = 0; r < rows; ++r) copy_element(t + r * out.row, f + r * in.row);
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r, to += out.row, from += in.row) {
    if (out.column == 1 && in.column == 1) {
      std::memcpy(to, from, columns * sizeof(Raw));
    } else if (out.column == 1 && in.column == 0) {
      for (int64_t c = 0; c < columns; ++c) copy_element(to + c, from);
    } else {
#pragma GCC unroll 4
      for (int64_t c = 0; c < columns; ++c) copy_element(to + c * out.column, from + c * in.column);
    }
  }
}

inline void move(void* to, Steps out, const void* from, Steps in, int64_t rows, int64_t columns,
                 Element element) {
  const auto as = [&]<class Raw>(Raw) {
    move(static_cast<Raw*>(to), out, static_cast<const Raw*>(from), in, rows, columns);
  };
  switch (bytes_of(element)) {
    case 2: as(uint16_t{}); break;
    case 4: as(uint32_t{}); break;
    default: as(uint64_t{}); break;
  }
}

// Copies strided elements to and from a packed buffer.
inline void gather(void* out, const void* in, Element element, const Placement& at) {
  move(out, {at.columns, 1}, in, {at.row_stride, at.column_stride}, at.rows, at.columns, element);
}

inline void scatter(void* out, const void* in, Element element, const Placement& at) {
  move(out, {at.row_stride, at.column_stride}, in, {at.columns, 1}, at.rows, at.columns, element);
}

// Non-temporal stores of whole lines of 64 bytes; `out` begins a line. The pool orders streaming
// stores before it reports that the work is done.
inline void stream_lines(void* out, const void* in, int64_t bytes) {
  auto* const to = static_cast<char*>(out);
  auto* const from = static_cast<const char*>(in);
  for (int64_t i = 0; i < bytes; i += kRegisterBytes)
    stream_register(to + i, load_register<WordRegister>(from + i));
}

// Copies with non-temporal stores, except for the ragged ends.
inline void stream_copy(void* out, const void* in, int64_t bytes) {
  auto* to = static_cast<char*>(out);
  auto* from = static_cast<const char*>(in);
  int64_t head = -reinterpret_cast<intptr_t>(to) & 63;
  if (head > bytes) head = bytes;
  if (head != 0) std::memcpy(to, from, head);
  to += head, from += head, bytes -= head;
  const int64_t whole = bytes & ~int64_t{63};
  stream_lines(to, from, whole);
  if (bytes != whole) std::memcpy(to + whole, from + whole, bytes - whole);
}

}  // namespace
}  // namespace openaclnn::OPENACLNN_ISA
