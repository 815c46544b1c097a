// Any bytes of a server, in pieces of any size, give replies within the limits or one error.
#include <algorithm>
#include <cstdlib>

#include "client/reply_reader.h"

namespace {

// All elements of a reply and of those below it, each of which is looked at.
std::size_t elements_of(semel::client::ReplyView reply) {
  (void)reply.integer();
  (void)reply.excerpt();
  std::size_t count = reply.size();
  for (std::size_t i = 0; i < reply.size(); ++i) count += elements_of(reply.at(i));
  return count;
}

}  // namespace

// The first byte is the size of the pieces.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace semel::client;
  if (size == 0) return 0;
  const std::size_t piece = std::size_t{1} + data[0];
  std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const ReplyLimits limits{.bytes = 4096, .elements = 64};
  ReplyReader reader(limits);
  while (!bytes.empty()) {
    reader.feed(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (;;) {
      const auto reply = reader.next();
      if (!reply) return 0;
      if (!*reply) break;
      if (elements_of((*reply)->view()) > limits.elements) std::abort();
    }
    if (reader.pending() > limits.bytes) std::abort();
  }
  return 0;
}
