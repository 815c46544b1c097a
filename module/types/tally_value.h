// TallyValue: the table of counters behind a key.
//
// Contract  As in semel/tally/table.h, at one site. Ids are hashed here, with the secret of the
//           key. Reads and retries change nothing, not even the time of the table.
// Format    docs/formats/module_tally_v1.md.
#pragma once

#include <memory>
#include <string_view>

#include "module/host/value.h"
#include "semel/hash/hasher.h"
#include "semel/hash/keyed_digest.h"
#include "semel/tally/table.h"

namespace semel::module {

class TallyValue final : public host::Value {
 public:
  static const host::TypeSpec kType;

  // Sets recogniser.hash to the hash of the secret. Errors are those of Table::make.
  static Result<std::unique_ptr<TallyValue>> make(const Secret& secret,
                                                  tally::Recognition recogniser, TimeMs now_ms);
  static Result<std::unique_ptr<host::Value>> decode(ByteView in);

  tally::Table& table() { return table_; }
  const tally::Table& table() const { return table_; }
  const Hasher& hasher() const { return hasher_; }

  bool advance(TimeMs now_ms) override {
    table_.advance(now_ms);
    return true;
  }
  void encode(Sink out) const override;
  std::uint64_t bytes() const override { return sizeof(*this) + table_.bytes(); }
  std::unique_ptr<host::Value> clone() const override;
  host::Figures figures() const override;
  host::ErrorRate error_rate() const override;
  std::size_t parts() const override;

  TallyValue(const Secret& secret, const Hasher& hasher, tally::Table table)
      : secret_(secret), hasher_(hasher), table_(std::move(table)) {}

 private:
  Secret secret_;
  Hasher hasher_;
  tally::Table table_;
};

}  // namespace semel::module
