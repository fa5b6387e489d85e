// SPDX-License-Identifier: Apache-2.0
// Text in fixed-size buffers: signal handlers may neither allocate nor lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace openaclnn::check {

template <size_t kSize>
class Text {
 public:
  Text& add(const char* text) { return add(text, std::strlen(text)); }
  Text& add(const char* text, size_t length) {
    const size_t room = kSize - 1 - length_;
    if (length > room) length = room;
    std::memcpy(data_ + length_, text, length);
    length_ += length;
    data_[length_] = '\0';
    return *this;
  }
  Text& number(uint64_t value) {
    char digits[20];
    int at = sizeof digits;
    do digits[--at] = static_cast<char>('0' + value % 10);
    while ((value /= 10) != 0);
    return add(digits + at, sizeof digits - static_cast<size_t>(at));
  }
  Text& signed_number(int64_t value) {
    if (value >= 0) return number(static_cast<uint64_t>(value));
    return add("-").number(uint64_t{0} - static_cast<uint64_t>(value));
  }
  Text& hex(uint64_t value) {
    char digits[16];
    int at = sizeof digits;
    do digits[--at] = "0123456789abcdef"[value % 16];
    while ((value /= 16) != 0);
    return add("0x").add(digits + at, sizeof digits - static_cast<size_t>(at));
  }
  Text& pointer(const void* address) { return hex(reinterpret_cast<uintptr_t>(address)); }
  // Adds the text as a JSON string, with its quotes.
  Text& quoted(const char* text) {
    add("\"");
    for (; *text != '\0'; ++text) {
      const auto byte = static_cast<unsigned char>(*text);
      if (byte == '"' || byte == '\\') {
        add("\\").add(text, 1);
      } else if (byte < 0x20) {
        add("\\u00").add(&"0123456789abcdef"[byte / 16], 1).add(&"0123456789abcdef"[byte % 16], 1);
      } else {
        add(text, 1);
      }
    }
    return add("\"");
  }
  void clear() { data_[length_ = 0] = '\0'; }

  const char* data() const { return data_; }
  size_t size() const { return length_; }

 private:
  size_t length_ = 0;
  char data_[kSize] = {};
};

using Sentence = Text<1500>;

}  // namespace openaclnn::check
