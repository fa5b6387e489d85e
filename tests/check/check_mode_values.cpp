// SPDX-License-Identifier: Apache-2.0
// Makes random copies, fills and operators on random views, beside a model that has a flag for
// every byte, whether it was given a value. A right program reads only such bytes. A wrong one
// reads others in its last step, and prints before what it reads:
//
//   seed N reads MISSING of BYTES
//
//   check_mode_values FIRST_SEED COUNT right|wrong
//
// Each seed has its own process, since a mistake is reported once for its place.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "../../examples/mistakes/mistake.h"

namespace {

constexpr int kBuffers = 4;
constexpr int64_t kElements = 600;

struct View {
  int64_t shape[3], strides[3], offset;

  template <class F>
  void for_each(F see) const {
    for (int64_t i = 0; i < shape[0]; ++i) {
      for (int64_t j = 0; j < shape[1]; ++j) {
        for (int64_t k = 0; k < shape[2]; ++k) {
          see(static_cast<size_t>(offset + i * strides[0] + j * strides[1] + k * strides[2]));
        }
      }
    }
  }
};

class Program {
 public:
  explicit Program(unsigned seed) : random_(seed) {
    begin();
    for (Buffer& each : buffers_) {
      must(aclrtMalloc(&each.memory, kElements * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
      each.valued.assign(kElements * sizeof(float), false);
    }
  }
  ~Program() {
    must(aclrtSynchronizeStream(nullptr));
    for (Buffer& each : buffers_) must(aclrtFree(each.memory));
    end();
  }

  void right(int steps) {
    for (int i = 0; i < steps; ++i) step();
  }

  // Reads a view with bytes that have no value; false when there is none.
  bool wrong(unsigned seed) {
    for (int i = 0; i < 1000; ++i) {
      const size_t from = below(kBuffers), to = (from + 1) % kBuffers;
      View in = view();
      const size_t missing = missing_of(buffers_[from], in);
      if (missing == 0) continue;
      std::fprintf(stderr, "seed %u reads %zu of %zu\n", seed, missing, bytes_of(in));
      run(from, in, to, contiguous(in));
      return true;
    }
    return false;
  }

 private:
  struct Buffer {
    void* memory;
    std::vector<bool> valued;  // by byte
  };

  size_t below(size_t limit) { return random_() % limit; }

  // Of permuted dims with gaps, sometimes with a stride of 0.
  View view() {
    View made = {};
    int order[] = {0, 1, 2};
    std::shuffle(order, order + 3, random_);
    int64_t reach = 1;
    for (const int dim : order) {
      made.shape[dim] = 1 + static_cast<int64_t>(below(6));
      made.strides[dim] = reach + static_cast<int64_t>(below(3) == 0 ? below(3) : 0);
      reach = made.strides[dim] * made.shape[dim];
    }
    if (below(4) == 0) made.strides[order[below(3)]] = 0;
    made.offset = static_cast<int64_t>(below(static_cast<size_t>(kElements - reach)));
    return made;
  }

  // An output of the same shape, without strides of 0.
  View contiguous(const View& like) {
    View made = like;
    const int64_t gap = static_cast<int64_t>(1 + below(2));
    made.strides[2] = gap;
    made.strides[1] = gap * made.shape[2];
    made.strides[0] = made.strides[1] * made.shape[1];
    made.offset = static_cast<int64_t>(
        below(static_cast<size_t>(kElements - made.strides[0] * made.shape[0])));
    return made;
  }

  static std::vector<bool> covered(const View& view) {
    std::vector<bool> bytes(kElements * sizeof(float));
    view.for_each([&](size_t at) {
      for (size_t b = 0; b < sizeof(float); ++b) bytes[at * sizeof(float) + b] = true;
    });
    return bytes;
  }
  static size_t bytes_of(const View& view) {
    const std::vector<bool> bytes = covered(view);
    return static_cast<size_t>(std::count(bytes.begin(), bytes.end(), true));
  }
  static size_t missing_of(const Buffer& buffer, const View& view) {
    const std::vector<bool> bytes = covered(view);
    size_t missing = 0;
    for (size_t i = 0; i < bytes.size(); ++i) missing += bytes[i] && !buffer.valued[i];
    return missing;
  }

  static aclTensor* tensor_of(const Buffer& buffer, const View& view) {
    const int64_t storage = kElements;
    return aclCreateTensor(view.shape, 3, ACL_FLOAT, view.strides, view.offset, ACL_FORMAT_ND,
                           &storage, 1, buffer.memory);
  }

  void run(size_t from, const View& in, size_t to, const View& out) {
    aclTensor *self = tensor_of(buffers_[from], in), *result = tensor_of(buffers_[to], out);
    leaky_relu(self, result, nullptr);
    must(aclrtSynchronizeStream(nullptr));
    must(aclDestroyTensor(self));
    must(aclDestroyTensor(result));
    const std::vector<bool> bytes = covered(out);
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i]) buffers_[to].valued[i] = true;
    }
  }

  static void set(Buffer& buffer, size_t at, size_t count) {
    std::fill_n(buffer.valued.begin() + static_cast<std::ptrdiff_t>(at), count, true);
  }

  void step() {
    Buffer& buffer = buffers_[below(kBuffers)];
    char* memory = static_cast<char*>(buffer.memory);
    const size_t all = kElements * sizeof(float);
    const size_t at = below(all), count = 1 + below(std::min<size_t>(all - at, 400));
    static char host[kElements * sizeof(float)];
    switch (below(6)) {
      case 0: must(aclrtMemset(memory + at, count, 1, count)); return set(buffer, at, count);
      case 1:
        must(aclrtMemcpy(memory + at, count, host, count, ACL_MEMCPY_HOST_TO_DEVICE));
        return set(buffer, at, count);
      case 2: {  // of whatever is there, in any direction
        Buffer& other = buffers_[below(kBuffers)];
        const size_t to = below(all - count);
        const std::vector<bool> before = other.valued, source = buffer.valued;
        must(aclrtMemcpyAsync(static_cast<char*>(other.memory) + to, count, memory + at, count,
                              ACL_MEMCPY_DEVICE_TO_DEVICE, nullptr));
        must(aclrtSynchronizeStream(nullptr));
        for (size_t i = 0; i < count; ++i) other.valued[to + i] = before[to + i] || source[at + i];
        return;
      }
      case 3:
        for (size_t i = 0; i < count; ++i) {
          if (!buffer.valued[at + i]) return;
        }
        must(aclrtMemcpy(host, count, memory + at, count, ACL_MEMCPY_DEVICE_TO_HOST));
        return;
      default: {
        const size_t from = below(kBuffers), to = (from + 1 + below(kBuffers - 1)) % kBuffers;
        for (int i = 0; i < 30; ++i) {
          const View in = view();
          if (missing_of(buffers_[from], in) == 0) return run(from, in, to, contiguous(in));
        }
      }
    }
  }

  std::mt19937 random_;
  Buffer buffers_[kBuffers];
};

}  // namespace

int main(int, char** words) {
  const auto first = static_cast<unsigned>(std::stoul(words[1]));
  const auto count = static_cast<unsigned>(std::stoul(words[2]));
  for (unsigned seed = first; seed < first + count; ++seed) {
    const pid_t child = fork();
    if (child == 0) {
      Program* program = new Program(seed);
      program->right(static_cast<int>(seed % 150));
      if (words[3][0] == 'w') (void)program->wrong(seed);
      delete program;
      std::exit(0);
    }
    waitpid(child, nullptr, 0);
  }
}
