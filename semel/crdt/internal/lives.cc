#include "semel/crdt/internal/lives.h"

#include <algorithm>

#include "semel/core/assert.h"

namespace semel::crdt_internal {
namespace {

SiteId site_of(const LifeRun& run) { return Dot::unpacked(run.first).site; }
bool begins_site(const LifeRun& run) { return Dot::unpacked(run.first).counter == 1; }

// Returns an iterator to the first run that does not begin before this dot.
template <class Runs>
auto first_from(Runs& runs, std::uint64_t packed_dot) {
  return std::partition_point(runs.begin(), runs.end(),
                              [&](const LifeRun& run) { return run.first < packed_dot; });
}

// Returns true if one run can come before another. Packed dots of two sites are never adjacent,
// because no number is 0.
bool precedes(const LifeRun& run, const LifeRun& next) {
  return run.last < next.first && (run.last + 1 != next.first || run.life == next.before);
}

constexpr std::size_t kRunSize = 16;    // in a state
constexpr std::size_t kWholeSize = 32;  // in a delta

}  // namespace

Error forked(SiteId site) {
  return {Errc::forked,
          "a site has used its dots again: it was restored from a backup, or two use its id", site};
}

void Lives::append(std::uint64_t packed_dot, std::uint64_t life) {
  const auto next = first_from(runs_, packed_dot);
  LifeRun run{packed_dot, packed_dot, life, 0};
  if (Dot::unpacked(packed_dot).counter > 1) {
    SEMEL_ASSERT(next != runs_.begin());
    LifeRun& before = *std::prev(next);
    SEMEL_ASSERT(before.last + 1 == packed_dot);
    if (before.life == life) {
      before.last = packed_dot;
      return;
    }
    run.before = before.life;
  }
  runs_.insert(next, run);
}

void Lives::insert(const LifeRun& run) {
  const auto here = first_from(runs_, run.first);
  if (here != runs_.end() && here->first == run.first) {
    here->last = std::max(here->last, run.last);
  } else {
    runs_.insert(here, run);
  }
}

LifeRun Lives::upto(std::uint64_t packed_dot) const {
  const auto next = first_from(runs_, packed_dot + 1);
  SEMEL_ASSERT(next != runs_.begin() && std::prev(next)->last >= packed_dot);
  LifeRun run = *std::prev(next);
  run.last = packed_dot;
  return run;
}

std::optional<SiteId> Lives::clash(const Lives& other) const {
  std::optional<LifeRun> before;
  auto mine = runs_.begin();
  auto theirs = other.runs_.begin();
  while (mine != runs_.end() || theirs != other.runs_.end()) {
    LifeRun run;
    if (theirs == other.runs_.end() || (mine != runs_.end() && mine->first < theirs->first)) {
      run = *mine++;
    } else if (mine == runs_.end() || theirs->first < mine->first) {
      run = *theirs++;
    } else {
      run = *mine++;
      if (run.life != theirs->life || run.before != theirs->before) return site_of(run);
      run.last = std::max(run.last, theirs->last);
      ++theirs;
    }
    if (before && !precedes(*before, run)) return site_of(run);
    before = run;
  }
  return std::nullopt;
}

void Lives::merge(const Lives& other) {
  for (const LifeRun& run : other.runs_) insert(run);
}

std::span<const LifeRun> Lives::runs(SiteId site) const {
  const auto begin = first_from(runs_, Dot{site, 0}.packed());
  const auto end = std::partition_point(begin, runs_.end(),
                                        [&](const LifeRun& run) { return site_of(run) == site; });
  return {begin, end};
}

std::uint64_t Lives::common(const Lives& other, SiteId site) const {
  const std::span<const LifeRun> mine = runs(site), theirs = other.runs(site);
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i) {
    if (mine[i].first != theirs[i].first || mine[i].life != theirs[i].life) break;
    last = Dot::unpacked(std::min(mine[i].last, theirs[i].last)).counter;
    if (mine[i].last != theirs[i].last) break;
  }
  return last;
}

void Lives::encode(Sink out) const {
  Writer w(out);
  w.u64(runs_.size());
  for (const LifeRun& run : runs_) {
    w.u64(run.first);
    w.u64(run.life);
  }
}

Result<Lives> Lives::decode(Reader& in, const VersionVector& context) {
  const Error kBad{Errc::corrupt, "lives of sites"};
  const std::uint64_t count = in.u64();
  if (!in.ok() || in.rest() / kRunSize < count) return kBad;
  Lives lives;
  lives.runs_.reserve(count);
  auto site = context.sites().begin();  // the next one
  for (std::uint64_t i = 0; i < count; ++i) {
    LifeRun run{in.u64(), 0, in.u64(), 0};
    if (begins_site(run)) {
      if (site == context.sites().end() || site->site != site_of(run)) return kBad;
      ++site;
    } else {
      if (lives.runs_.empty()) return kBad;
      LifeRun& before = lives.runs_.back();
      if (run.first <= before.first || run.first > before.last || run.life == before.life) {
        return kBad;  // for example, beyond the end of the site
      }
      before.last = run.first - 1;
      run.before = before.life;
    }
    run.last = Dot{std::prev(site)->site, std::prev(site)->counter}.packed();
    lives.runs_.push_back(run);
  }
  if (site != context.sites().end()) return kBad;
  return lives;
}

void Lives::encode_all(Sink out) const {
  Writer w(out);
  w.u64(runs_.size());
  for (const LifeRun& run : runs_) {
    w.u64(run.first);
    w.u64(run.last);
    w.u64(run.life);
    w.u64(run.before);
  }
}

Result<Lives> Lives::decode_all(Reader& in) {
  const Error kBad{Errc::corrupt, "lives of sites"};
  const std::uint64_t count = in.u64();
  if (!in.ok() || in.rest() / kWholeSize < count) return kBad;
  Lives lives;
  lives.runs_.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const LifeRun run{in.u64(), in.u64(), in.u64(), in.u64()};
    const Dot first = Dot::unpacked(run.first), last = Dot::unpacked(run.last);
    if (first.counter == 0 || first.site != last.site || first.counter > last.counter) return kBad;
    if (begins_site(run) ? run.before != 0 : run.before == run.life) return kBad;
    if (i > 0 && !precedes(lives.runs_.back(), run)) return kBad;
    lives.runs_.push_back(run);
  }
  return lives;
}

}  // namespace semel::crdt_internal
