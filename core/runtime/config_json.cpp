// SPDX-License-Identifier: Apache-2.0
// Recursive-descent parser for RFC 8259, one function for each rule; copies what it accepts.
#include "core/runtime/init.h"

namespace openaclnn {
namespace {

constexpr int kMaxNesting = 10;  // of { and [, as aclInit documents

class Scanner {
 public:
  explicit Scanner(std::string_view rest) : whole_(rest.size()), rest_(rest) {}

  bool document() {
    if (!value(0)) return false;
    blanks();
    return rest_.empty() || wrong("the end of the file");
  }
  std::string& text() { return text_; }

 private:
  bool value(int depth) {
    blanks();
    const char first = rest_.empty() ? '\0' : rest_[0];
    if (first == '{') return group(depth, '}', true);
    if (first == '[') return group(depth, ']', false);
    if (first == '"') return string();
    if (first == '-' || digit(first)) return number();
    for (std::string_view word : {"true", "false", "null"}) {
      if (rest_.substr(0, word.size()) == word) return take(word.size());
    }
    return wrong("a value");
  }

  bool group(int depth, char close, bool keyed) {
    if (depth == kMaxNesting) return wrong("at most 10 levels of nesting");
    take(1);
    if (accept(close)) return true;
    do {
      if (keyed) {
        blanks();
        if (!string()) return false;
        if (!accept(':')) return wrong("':'");
      }
      if (!value(depth + 1)) return false;
    } while (accept(','));
    return accept(close) || wrong(keyed ? "',' or '}'" : "',' or ']'");
  }

  bool string() {
    if (rest_.empty() || rest_[0] != '"') return wrong("a string");
    for (size_t i = 1; i < rest_.size(); ++i) {
      if (rest_[i] == '"') return take(i + 1);
      if (static_cast<unsigned char>(rest_[i]) < ' ') break;
      if (rest_[i] == '\\') {
        ++i;
        if (i == rest_.size() ||
            std::string_view("\"\\/bfnrtu").find(rest_[i]) == std::string_view::npos) {
          break;
        }
      }
    }
    return wrong("a closed string without control characters");
  }

  // -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?
  bool number() {
    if (rest_[0] == '-') take(1);
    if (starts_with("0")) {
      take(1);
    } else if (!digits()) {
      return false;
    }
    if (starts_with(".")) {
      take(1);
      if (!digits()) return false;
    }
    if (!starts_with("eE")) return true;
    take(1);
    if (starts_with("+-")) take(1);
    return digits();
  }

  bool digits() {
    size_t count = 0;
    while (count < rest_.size() && digit(rest_[count])) ++count;
    return count > 0 ? take(count) : wrong("a digit");
  }

  static bool digit(char c) { return c >= '0' && c <= '9'; }
  bool starts_with(std::string_view any) const {
    return !rest_.empty() && any.find(rest_[0]) != std::string_view::npos;
  }
  void blanks() {
    while (starts_with(" \t\r\n")) rest_.remove_prefix(1);
  }
  bool accept(char c) {
    blanks();
    return !rest_.empty() && rest_[0] == c && take(1);
  }
  bool take(size_t count) {
    text_ += rest_.substr(0, count);
    rest_.remove_prefix(count);
    return true;
  }
  bool wrong(const char* expected) {
    text_ = "byte " + std::to_string(whole_ - rest_.size()) + " must be " + expected;
    return false;
  }

  size_t whole_;
  std::string_view rest_;
  std::string text_;
};

}  // namespace

bool compact_json(std::string_view document, std::string* text) {
  Scanner scanner(document);
  const bool valid = scanner.document();
  *text = std::move(scanner.text());
  return valid;
}

std::string_view json_member(std::string_view object, std::string_view key) {
  std::string_view name;
  bool in_string = false;
  size_t begin = 1;  // of the key or value at hand
  int depth = 0;
  for (size_t i = 0; i < object.size(); ++i) {
    const char c = object[i];
    if (c == '"') in_string = !in_string;
    if (in_string) {
      if (c == '\\') ++i;
      continue;
    }
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (depth == 1 && c == ':') {
      name = object.substr(begin + 1, i - begin - 2);  // without its quotes
      begin = i + 1;
    }
    if ((depth == 1 && c == ',') || depth == 0) {
      if (name == key && begin < i) return object.substr(begin, i - begin);
      name = {};
      begin = i + 1;
    }
  }
  return {};
}

}  // namespace openaclnn
