// Sifter: takes each event once. In one step, or with a claim before the work and a commit after it.
//
// Contract  An id is fresh, then pending while a claim is on it, then seen while the window remembers
//           it. add() takes a fresh id at once: a consumer that crashes between add() and its work
//           loses the event. claim() gives it to one owner, and only commit() takes it: if the owner
//           crashes, the id is fresh again after the deadline (claim_table.h).
//           Of all commits of an id within a window, one is answered `done`. The commit of an owner
//           that was too slow is `lost` while another holds the claim, `seen` once that one committed.
//           A commit that is repeated because its answer got lost is `seen`.
// Once      Work that takes effect in one step with its commit, and only if that is `done`, takes effect
//           once. Work that is done before the commit is done at least once: again if the owner
//           crashes before its commit, or lets the deadline pass (tests/simulation).
// Window    Any Window over digests. An id is remembered from its commit on, for the window. What a
//           full window is told to do, it does at the commit: refuse, and the claim stays; or forget
//           the oldest ids early, and these are fresh again when they return (promise() says from
//           which time on ids are kept). A window with false positives takes a fresh id for one that
//           was seen at the rate false_positive_rate(), and that event is dropped; an id whose claim
//           is on is never judged by the window.
// Time      is handed in by advance(), to the window and the claims alike.
// Cost      That of the window, and one lookup among the claims.
// Threads   const members may run at once; any other call needs the object to itself.
// Format    docs/formats/sifter_v1.md.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "semel/core/assert.h"
#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/hash/digest.h"
#include "semel/hash/seal.h"
#include "semel/sift/claim_table.h"
#include "semel/window/window.h"

namespace semel {

enum class Sighting : std::uint8_t {
  fresh,    // the first: it is yours now, unless it was only a test
  pending,  // another owner is at work on it; nothing changed
  seen,     // taken before; nothing changed
  stale,    // add: too old to judge; nothing changed
  full,     // add: no room in the window; nothing changed
};

// What add() of many leaves, where memory ran out before.
inline constexpr auto kUnjudged = static_cast<Sighting>(0xff);

enum class Commit : std::uint8_t {
  done,  // taken, by this commit
  seen,  // taken before, by this owner or by another; nothing changed
  lost,  // not claimed by this owner any more; nothing changed
  full,  // no room in the window; the claim stays, and a later commit may be done
};

template <class W>
concept DigestWindow = Window<W> && std::same_as<typename W::Id, Digest>;

template <DigestWindow W>
class Sifter {
 public:
  // A claim that nobody took over can be committed up to keep_ms after its deadline.
  // REQUIRES: keep_ms >= 0.
  Sifter(W window, TimeMs keep_ms) : window_(std::move(window)), claims_(keep_ms, window_.now()) {}

  // REQUIRES, of all that take an id: the digest was made by the hash of the window.

  // Takes a fresh id. `at_ms`: when the event happened, as in window.h. An overdue claim on the id is
  // lost if the id is taken.
  Sighting add(Digest id) { return add(id, now()); }
  Sighting add(Digest id, TimeMs at_ms);
  // The same for many, in order. If memory runs out at one of them, those before it have their
  // sightings, and that one is left as it was.
  // REQUIRES: the spans are of equal size.
  void add(std::span<const Digest> ids, std::span<Sighting> sightings);

  // What add() would find: fresh, pending or seen.
  Sighting test(Digest id) const;
  // The same after advance(now_ms). The window has to have it too: window/forgetful_filter.h.
  Sighting test(Digest id, TimeMs now_ms) const;
  void test(std::span<const Digest> ids, TimeMs now_ms, std::span<Sighting> sightings) const;

  // fresh, pending or seen. Owners and deadlines: claim_table.h. An owner that claims again what it
  // holds gets it again.
  Sighting claim(Digest id, std::uint64_t owner, TimeMs until_ms);
  Commit commit(Digest id, std::uint64_t owner);
  // These change nothing, and are false, unless `owner` holds the claim. Releasing gives the id back;
  // renewing gives a later deadline.
  bool release(Digest id, std::uint64_t owner) { return claims_.release(id, owner); }
  bool renew(Digest id, std::uint64_t owner, TimeMs until_ms) {
    return claims_.renew(id, owner, until_ms);
  }
  // Remembers an id from `at_ms` on, known or not (window.h): fresh, seen, stale or full; pending, and no
  // change, while a claim is on it.
  Sighting insert(Digest id, TimeMs at_ms);

  void advance(TimeMs now_ms) {
    window_.advance(now_ms);
    claims_.advance(now_ms);
  }
  TimeMs now() const { return window_.now(); }
  Promise promise() const { return window_.promise(); }
  double false_positive_rate() const { return window_.false_positive_rate(); }
  std::uint64_t bytes() const { return window_.bytes() + claims_.bytes(); }

  const W& window() const { return window_; }
  const ClaimTable& claims() const { return claims_; }

  // These ask the same of the window. Appends the encoding to `out`.
  void encode(Sink out) const;
  // Reads one sifter that fills `in` exactly. `in` may come from an enemy.
  static Result<Sifter> decode(ByteView in);

  // Whether both hold the same, and would go on in the same way.
  bool operator==(const Sifter& other) const = default;

 private:
  static constexpr std::uint32_t kMagic = 0x31495353;  // "SSI1": docs/formats/sifter_v1.md
  static constexpr std::size_t kHeaderSize = 12, kTrailerSize = 8;
  static constexpr std::size_t kBatch = 256;

  Sifter(W window, ClaimTable claims) : window_(std::move(window)), claims_(std::move(claims)) {}

  bool pending(Digest id) const { return pending(id, now()); }
  bool pending(Digest id, TimeMs now_ms) const {
    return claims_.look(id, now_ms) == Claim::pending;
  }
  void end_overdue(Digest id) {
    if (const std::optional<std::uint64_t> overdue = claims_.owner(id)) {
      claims_.release(id, *overdue);
    }
  }
  Sighting taken(Digest id, Verdict verdict);
  void add_few(std::span<const Digest> ids, std::span<Sighting> sightings);

  W window_;
  ClaimTable claims_;  // none committed: what is committed is in the window
};

// What the window's verdict on an id that is not pending means. A claim on an id that the window has
// just taken is overdue, and ends here: its owner hears `seen`.
template <DigestWindow W>
Sighting Sifter<W>::taken(Digest id, Verdict verdict) {
  switch (verdict) {
    case Verdict::fresh:
      end_overdue(id);
      return Sighting::fresh;
    case Verdict::duplicate:
      return Sighting::seen;
    case Verdict::stale:
      return Sighting::stale;
    case Verdict::full:
      break;
  }
  return Sighting::full;
}

template <DigestWindow W>
Sighting Sifter<W>::add(Digest id, TimeMs at_ms) {
  if (pending(id)) return Sighting::pending;
  return taken(id, window_.test_and_insert(id, at_ms));
}

template <DigestWindow W>
void Sifter<W>::add(std::span<const Digest> ids, std::span<Sighting> sightings) {
  SEMEL_ASSERT(ids.size() == sightings.size());
  for (std::size_t first = 0; first < ids.size(); first += kBatch) {
    const std::size_t count = std::min(kBatch, ids.size() - first);
    add_few(ids.subspan(first, count), sightings.subspan(first, count));
  }
}

// REQUIRES: at most kBatch ids. Those that are pending stay so throughout; the window gets the others.
template <DigestWindow W>
void Sifter<W>::add_few(std::span<const Digest> ids, std::span<Sighting> sightings) {
  std::array<Digest, kBatch> open;
  std::array<std::size_t, kBatch> place;
  std::array<Verdict, kBatch> verdicts;
  std::size_t count = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (pending(ids[i])) {
      sightings[i] = Sighting::pending;
      continue;
    }
    open[count] = ids[i];
    place[count++] = i;
  }
  constexpr auto kNoVerdict = static_cast<Verdict>(0xff);
  std::fill_n(verdicts.begin(), count, kNoVerdict);
  const auto answer = [&] {
    for (std::size_t n = 0; n < count && verdicts[n] != kNoVerdict; ++n) {
      sightings[place[n]] = taken(open[n], verdicts[n]);
    }
  };
  try {
    window_.test_and_insert(std::span<const Digest>(open).first(count),
                            std::span(verdicts).first(count));
  } catch (const std::bad_alloc&) {
    answer();
    throw;
  }
  answer();
}

template <DigestWindow W>
Sighting Sifter<W>::test(Digest id) const {
  if (pending(id)) return Sighting::pending;
  return window_.test(id) == Verdict::duplicate ? Sighting::seen : Sighting::fresh;
}

template <DigestWindow W>
Sighting Sifter<W>::test(Digest id, TimeMs now_ms) const {
  if (pending(id, now_ms)) return Sighting::pending;
  return window_.test(id, now_ms) == Verdict::duplicate ? Sighting::seen : Sighting::fresh;
}

template <DigestWindow W>
void Sifter<W>::test(std::span<const Digest> ids, TimeMs now_ms,
                     std::span<Sighting> sightings) const {
  SEMEL_ASSERT(ids.size() == sightings.size());
  std::array<Verdict, kBatch> verdicts;
  for (std::size_t first = 0; first < ids.size(); first += kBatch) {
    const std::size_t count = std::min(kBatch, ids.size() - first);
    window_.test(ids.subspan(first, count), now_ms, std::span(verdicts).first(count));
    for (std::size_t n = 0; n < count; ++n) {
      const bool seen = verdicts[n] == Verdict::duplicate;
      sightings[first + n] = pending(ids[first + n], now_ms) ? Sighting::pending
                             : seen                          ? Sighting::seen
                                                             : Sighting::fresh;
    }
  }
}

template <DigestWindow W>
Sighting Sifter<W>::insert(Digest id, TimeMs at_ms) {
  if (pending(id)) return Sighting::pending;
  const Verdict verdict = window_.insert(id, at_ms);
  if (verdict == Verdict::duplicate) end_overdue(id);  // the filter may have erred on it until now
  return taken(id, verdict);
}

template <DigestWindow W>
Sighting Sifter<W>::claim(Digest id, std::uint64_t owner, TimeMs until_ms) {
  const bool own = claims_.owner(id) == owner;
  if (!own) {
    if (pending(id)) return Sighting::pending;
    if (window_.test(id) == Verdict::duplicate) return Sighting::seen;
  }
  const Claim answer = claims_.claim(id, owner, until_ms);
  SEMEL_ASSERT(answer == Claim::granted);
  return Sighting::fresh;
}

// Inserted, not tested: a false positive on an id that came in between says nothing of this one, and
// would be forgotten with that one.
template <DigestWindow W>
Commit Sifter<W>::commit(Digest id, std::uint64_t owner) {
  const std::optional<std::uint64_t> holder = claims_.owner(id);
  if (holder != owner) {
    const bool taken = !holder && window_.test(id) == Verdict::duplicate;
    return taken ? Commit::seen : Commit::lost;
  }
  const Verdict verdict = window_.insert(id);
  SEMEL_ASSERT(verdict != Verdict::stale);  // the time is now()
  if (verdict == Verdict::full) return Commit::full;
  claims_.release(id, owner);
  return Commit::done;
}

template <DigestWindow W>
void Sifter<W>::encode(Sink out) const {
  Seal seal(out);
  Writer w(out);
  w.u32(kMagic);
  w.u64(encoded_size(claims_));
  claims_.encode(out);
  window_.encode(out);
  seal.close();
}

template <DigestWindow W>
Result<Sifter<W>> Sifter<W>::decode(ByteView in) {
  Reader r(in);
  const std::uint32_t magic = r.u32();
  const std::uint64_t size = r.u64();
  if (!r.ok() || r.rest() < kTrailerSize) return Error{Errc::truncated, "sifter: header"};
  if (magic != kMagic) return Error{Errc::unsupported, "sifter: magic"};
  const ByteView body = in.first(in.size() - kTrailerSize);
  if (load_u64(in.data() + body.size()) != checksum(body)) {
    return Error{Errc::corrupt, "sifter: checksum"};
  }
  const ByteView parts = body.subspan(kHeaderSize);
  if (size > parts.size()) return Error{Errc::corrupt, "sifter: size of the claims"};

  // Behind a sound checksum, a part that ends too early is as corrupt as any other.
  const auto refusal = [](const Error& error) {
    return Error{error.code == Errc::truncated ? Errc::corrupt : error.code, error.what};
  };
  Result<ClaimTable> claims = ClaimTable::decode(parts.first(size));
  if (!claims) return refusal(claims.error());
  if (claims->commits() != 0) return Error{Errc::corrupt, "sifter: a commit among the claims"};
  Result<W> window = W::decode(parts.subspan(size));
  if (!window) return refusal(window.error());
  if (claims->now() != window->now()) return Error{Errc::corrupt, "sifter: two times"};
  return Sifter(*std::move(window), *std::move(claims));
}

}  // namespace semel
