// SPDX-License-Identifier: Apache-2.0
// Data buffers: an address and a byte count.
#include "acl/acl_base_rt.h"
#include "core/acl/description.h"
#include "core/support/api_guard.h"

using namespace openaclnn;

namespace openaclnn {

HandlePool<aclDataBuffer>& buffers() { return pool_of<aclDataBuffer>(1 << 18); }

}  // namespace openaclnn

namespace {

// Reads a buffer; returns `otherwise`, with a sentence, if it is not alive.
template <class Get, class Value>
Value ask_buffer(const char* call, const aclDataBuffer* handle, Get get, Value otherwise) {
  HandlePool<aclDataBuffer>::Hold buffer;
  const Status status = find_object(buffers(), call, "dataBuffer", handle, &buffer);
  if (status.ok()) return get(*buffer);
  (void)status.code();
  return otherwise;
}

}  // namespace

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
  aclDataBuffer* made = buffers().create(data, size);
  if (made != nullptr) return made;
  return fail(ACL_ERROR_BAD_ALLOC, Reason::no_resource, "aclCreateDataBuffer",
              "too many live objects")
      .null();
}

aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  return end_object(buffers(), "aclDestroyDataBuffer", "dataBuffer", dataBuffer);
}

aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size) {
  HandlePool<aclDataBuffer>::Hold found;
  const Status status =
      find_object(buffers(), "aclUpdateDataBuffer", "dataBuffer", dataBuffer, &found);
  if (status.ok()) found->data = data, found->size = size;
  return status.code();
}

void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) {
  const auto data = [](const aclDataBuffer& buffer) { return buffer.data; };
  return ask_buffer("aclGetDataBufferAddr", dataBuffer, data, static_cast<void*>(nullptr));
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) {
  const auto size = [](const aclDataBuffer& buffer) { return buffer.size; };
  return ask_buffer("aclGetDataBufferSizeV2", dataBuffer, size, size_t{0});
}

uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer) {
  const auto size = [](const aclDataBuffer& buffer) { return static_cast<uint32_t>(buffer.size); };
  return ask_buffer("aclGetDataBufferSize", dataBuffer, size, uint32_t{0});
}
