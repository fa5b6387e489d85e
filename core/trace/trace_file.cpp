// SPDX-License-Identifier: Apache-2.0
// The trace file: events in the format of chrome://tracing.
#include <cstdio>
#include <string>

#include "core/trace/output.h"
#include "core/trace/recorder.h"

namespace openaclnn::trace {

void Recorder::write_event(const std::string& fields) {
  if (json_ == nullptr) return;
  std::fprintf(json_, "%s{%s}", first_event_ ? "" : ",\n", fields.c_str());
  first_event_ = false;
}

void Recorder::name_process(Track track, const std::string& name) {
  const std::string pid = std::to_string(static_cast<int>(track));
  write_event("\"ph\": \"M\", \"name\": \"process_name\", \"pid\": " + pid +
              ", \"args\": {\"name\": " + quoted(name) + "}");
  write_event("\"ph\": \"M\", \"name\": \"process_sort_index\", \"pid\": " + pid +
              ", \"args\": {\"sort_index\": " + pid + "}");
}

void Recorder::name_track(Track track, int number, const std::string& name) {
  write_event("\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": " +
              std::to_string(static_cast<int>(track)) + ", \"tid\": " + std::to_string(number) +
              ", \"args\": {\"name\": " + quoted(name) + "}");
}

void Recorder::event(Track track, int number, const std::string& name, int64_t begin, int64_t end,
                     const Arguments& arguments) {
  std::string fields;
  for (const auto& [argument, value] : arguments) {
    fields += (fields.empty() ? "" : ", ") + quoted(argument) + ": " + json_value(value);
  }
  write_event("\"ph\": \"X\", \"name\": " + quoted(name) +
              ", \"pid\": " + std::to_string(static_cast<int>(track)) +
              ", \"tid\": " + std::to_string(number) + ", \"ts\": " + micros(begin - start_) +
              ", \"dur\": " + micros(end - begin) + ", \"args\": {" + fields + "}");
}

// Writes a flow arrow from cause to effect.
void Recorder::arrow(const char* name, const char* phase, Track track, int number, int64_t at,
                     uint64_t id) {
  write_event(std::string("\"ph\": ") + phase + ", \"cat\": " + quoted(name) +
              ", \"name\": " + quoted(name) + ", \"id\": " + std::to_string(id) +
              ", \"pid\": " + std::to_string(static_cast<int>(track)) +
              ", \"tid\": " + std::to_string(number) + ", \"ts\": " + micros(at - start_));
}

}  // namespace openaclnn::trace
