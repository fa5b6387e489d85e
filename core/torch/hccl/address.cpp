// SPDX-License-Identifier: Apache-2.0
#include "core/torch/hccl/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace openaclnn::hccl {
namespace {

constexpr char kLoopback[] = "127.0.0.1";

std::string text_of(const sockaddr_storage& address, socklen_t size) {
  char text[NI_MAXHOST];
  const auto* plain = reinterpret_cast<const sockaddr*>(&address);
  const int failed = getnameinfo(plain, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
  return failed != 0 ? std::string() : text;
}

}  // namespace

// Connecting a datagram socket sends nothing, but selects the local address.
std::string address_towards(const std::string& host, uint16_t port) {
  if (const char* chosen = std::getenv("HCCL_IF_IP"); chosen != nullptr && *chosen != '\0')
    return chosen;
  addrinfo wanted = {}, *list = nullptr;
  wanted.ai_socktype = SOCK_DGRAM;
  if (getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &list) != 0)
    return kLoopback;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found(list, freeaddrinfo);
  for (const addrinfo* candidate = list; candidate != nullptr; candidate = candidate->ai_next) {
    const int own = socket(candidate->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (own < 0) continue;
    sockaddr_storage address = {};
    socklen_t size = sizeof address;
    const bool known = connect(own, candidate->ai_addr, candidate->ai_addrlen) == 0 &&
                       getsockname(own, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    close(own);
    const std::string text = known ? text_of(address, size) : "";
    if (!text.empty()) return text;
  }
  return kLoopback;
}

std::string own_address() {
  const char* master = std::getenv("MASTER_ADDR");
  return address_towards(master == nullptr || *master == '\0' ? kLoopback : master, 9);
}

}  // namespace openaclnn::hccl
