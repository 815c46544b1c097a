// Two sites that count together, a retry that goes astray, and a third site that joins.
#include <cstdio>
#include <optional>
#include <utility>

#include "semel/hash/hasher.h"
#include "semel/tally/table.h"

using semel::Bytes;
using semel::ByteView;
using semel::Hasher;
using semel::SiteId;
using semel::TimeMs;
using semel::tally::Answer;
using semel::tally::opaque_id;
using semel::tally::Outcome;
using semel::tally::Table;

namespace {

// A new site starts from a copy of a member that has admitted it.
std::optional<Table> joined(Table& member, SiteId site, TimeMs now) {
  if (!member.admit(site)) return std::nullopt;
  Bytes copy;
  member.encode(copy);
  auto table = Table::decode(copy);
  if (!table || !table->become(site, now)) return std::nullopt;
  return std::move(*table);
}

// Stands in for a network, which delivers some of the entries, now and then, in any order.
void send(Table& from, Table& to, TimeMs now) {
  from.publish([&](std::string_view key, ByteView entry) {
    const auto taken = to.receive(key, entry, now);
    if (!taken) std::puts(taken.error().message().c_str());
  });
}

}  // namespace

int main() {
  const TimeMs now = 1'700'000'000'000;
  const Hasher hash = Hasher::fast(/*seed=*/1);
  Table::Settings settings;
  settings.recognition.hash = hash.id();
  settings.site = 1;
  Table paris = *Table::make(settings, now);
  auto second_site = joined(paris, 2, now);
  if (!second_site) return 1;
  Table& lima = *second_site;
  send(paris, lima, now);  // lima is ready when all members have said that they know it

  // The answer is lost; the client tries again, at the other site.
  const auto order = opaque_id(hash, "order 17");
  if (!order) return std::puts(order.error().message().c_str()), 1;
  const auto first = paris.add({"sold", 5, *order}, now);
  const auto second = lima.add({"sold", 5, *order}, now + 10);
  if (!first || !second) return 1;
  std::printf("lima has not heard of it: %s\n",
              second->outcome == Outcome::applied ? "applied" : "duplicate");

  for (int round = 0; round < 3; ++round) {
    send(paris, lima, now + 20);
    send(lima, paris, now + 20);
  }
  const auto sold = lima.get("sold");
  if (!sold || *sold != 5) return std::puts("counted twice"), 1;
  std::printf("sold %lld, not folded %llu\n", static_cast<long long>(**sold),
              static_cast<unsigned long long>(lima.info().unfolded));

  auto oslo = joined(paris, 3, now + 30);
  if (!oslo) return 1;
  for (int round = 0; round < 3; ++round) {
    for (auto [from, to] : {std::pair{&paris, &lima}, {&lima, &*oslo}, {&*oslo, &paris}}) {
      send(*from, *to, now + 30);
      send(*to, *from, now + 30);
    }
  }
  const auto late = oslo->add({"sold", 5, *order}, now + 40);
  if (!late || late->outcome != Outcome::duplicate) return std::puts("oslo forgot"), 1;
  std::puts("oslo knows the order");
  return 0;
}
