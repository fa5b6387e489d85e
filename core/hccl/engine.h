// SPDX-License-Identifier: Apache-2.0
// Communication between processes: the interface between the C functions (collectives.cpp), which
// make tasks of streams, and core/torch/hccl, which moves the data.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace openaclnn::hccl {

// The values of HcclResult used here.
enum Result : int32_t {
  kSuccess = 0,
  kParameter = 1,
  kNull = 2,
  kInternal = 4,
  kNotSupported = 5,
  kTimeout = 9,
  kConnect = 12,
  kRemote = 21,
};

// A failure; the sentence lacks the name of the C function.
struct __attribute__((visibility("default"))) Failure : std::runtime_error {
  Failure(Result its_code, const std::string& sentence)
      : std::runtime_error(sentence), code(its_code) {}
  Result code;
};

// Data that goes to one rank or comes from one.
struct Part {
  bool sends;
  void* data;
  uint64_t count;
  int32_t dtype;  // HcclDataType
  uint32_t peer;
};

// One call with all its arguments.
struct Collective {
  enum class Kind : uint8_t {
    all_reduce,
    broadcast,
    all_gather,
    reduce_scatter,  // `sizes` elements for each rank, at `starts`; `count` everywhere if empty
    reduce,
    exchange,  // `parts`; waits for all sends
    batch,     // `parts`; sends may still be under way at the end
  } kind;
  const char* call;  // the C function
  void* send = nullptr;
  void* receive = nullptr;
  uint64_t count = 0;
  int32_t dtype = 0;      // HcclDataType
  int32_t operation = 0;  // HcclReduceOp
  uint32_t root = 0;
  std::vector<Part> parts{};
  std::vector<uint64_t> sizes{}, starts{};
  std::shared_ptr<void> owned{};  // memory of the call itself
};

inline bool reduces(Collective::Kind kind) {
  using Kind = Collective::Kind;
  return kind == Kind::all_reduce || kind == Kind::reduce_scatter || kind == Kind::reduce;
}

// What follows the number of a root info that was made from another.
inline constexpr char kSubMark = '.';

// The ranks that joined with one root info. Functions throw Failure.
class Communicator {
 public:
  Communicator(std::string its_name, uint32_t its_rank, uint32_t all_ranks)
      : name(std::move(its_name)), rank(its_rank), ranks(all_ranks) {}
  virtual ~Communicator() = default;
  // Called on the thread of the stream. Calls of one communicator have the same order on every
  // rank.
  virtual void perform(const Collective& collective) = 0;
  // Waits for what was sent and not yet received.
  virtual void flush() = 0;
  // The first failure, or none.
  virtual std::optional<Failure> failure() = 0;

  // The root info under which the ranks that give the same key meet, each time another.
  std::string root_info_of(const std::string& key);

  const std::string name;
  const uint32_t rank, ranks;
  std::string root_info;  // with which it joined

 private:
  std::mutex mutex_;
  std::map<std::string, uint32_t> times_;  // of a key
};

// How long ranks wait for each other, in seconds.
struct Timeouts {
  int64_t connect, execution;  // HCCL_CONNECT_TIMEOUT, HCCL_EXEC_TIMEOUT
};

struct Engine {
  virtual ~Engine() = default;
  // Text of at most 255 characters under which ranks find each other.
  virtual std::string root_info(const Timeouts& timeouts) = 0;
  // Waits until all ranks have joined. Operators on the device find the communicator by its name.
  virtual std::shared_ptr<Communicator> join(const std::string& root_info, const std::string& name,
                                             uint32_t rank, uint32_t ranks, int32_t device,
                                             const Timeouts& timeouts) = 0;
};

// What the library of operators that ATen computes exports.
using FindEngine = Engine* (*)();
inline constexpr char kFindEngine[] = "openaclnn_hccl_engine";

}  // namespace openaclnn::hccl
