// EntryDigest: the digests of records, keyed with the secret of the replication group.
//
// Contract  Equal records have equal digests at all sites of the group. An XOR of digests that
//           outsiders can compute is forged with linear algebra in milliseconds. Without the
//           secret, only chance finds a set of records whose digests cancel.
//           Key and value are told apart: ("ab", "c") and ("a", "bc") have different digests.
// Cost      About 75 ns for a record of 100 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "semel/core/codec.h"
#include "semel/hash/keyed_digest.h"

namespace semel {

class EntryDigest {
 public:
  explicit EntryDigest(const Secret& secret) : key_(secret, KeyPurpose::entry) {}

  // This is not const, because it assembles the record in a buffer that it reuses.
  Digest operator()(std::string_view key, std::string_view value) {
    const std::uint64_t length = key.size();
    buffer_.resize(sizeof length);
    store_u64(reinterpret_cast<std::uint8_t*>(buffer_.data()), length);
    buffer_.append(key).append(value);
    return key_(buffer_);
  }

  HashId id() const { return key_.id(); }

 private:
  DigestKey key_;
  std::string buffer_;
};

}  // namespace semel
