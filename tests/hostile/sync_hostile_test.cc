// A sync with an attacker: answers and questions lie, and their checksums are right.
//
// A peer that has the secret may send any records within the range, and they are accepted. These
// tests check that nothing else happens: every sync ends, memory is allocated only for bytes that
// came, and no record outside of the range is accepted.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "semel/core/internal/random.h"
#include "semel/hash/digest.h"
#include "semel/hash/internal/checksum.h"
#include "semel/store/memory_store.h"
#include "semel/sync/internal/frame.h"
#include "semel/sync/internal/initiator.h"
#include "semel/sync/responder.h"
#include "tests/support/allocation.h"
#include "tests/support/index.h"

namespace semel {

using namespace sync_internal;

namespace {

using frame::Topic;
using Records = std::map<std::string, std::string>;

constexpr std::uint32_t kFrameBytes = 16 << 10;
// A frame of 16 KiB may name long paths; the memory for them stays below this.
constexpr std::size_t kMostAllocation = std::size_t{4} << 20;
// An honest sync of these stores takes a few dozen.
constexpr int kMostAnswers = 2000;
const KeyRange kRange{"k", "l"};
constexpr std::array kWays = {SyncWay::walk, SyncWay::sketch, SyncWay::list, SyncWay::copy};
constexpr std::array kRules = {SyncRule::join, SyncRule::source, SyncRule::destination,
                               SyncRule::callback};

class Site {
 public:
  explicit Site(std::uint64_t first, std::uint64_t last, std::uint64_t changed) {
    for (std::uint64_t n = first; n < last; ++n) {
      put(std::string("k").append(std::to_string(mix(n) % 1'000'000)),
          n % changed == 0 ? "other" : "value");
    }
    put("a", "below the range");
    put("x", "above the range");
    index_ = *IndexedStore::open(store_, numbered_secret(3), {.burst_bytes = 256});
  }
  IndexedStore& index() { return *index_; }
  void put(const std::string& key, const std::string& value) {
    const RecordWrite write{key, value};
    ASSERT_TRUE(store_.write({&write, 1}));
  }
  Records records() const {
    Records records;
    const auto cursor = *store_.cursor();
    for (cursor->seek(""); cursor->valid(); cursor->next()) {
      records.emplace(cursor->key(), cursor->value());
    }
    return records;
  }
  Records outside() const {
    Records others = records();
    std::erase_if(others, [](const auto& record) { return kRange.contains(record.first); });
    return others;
  }

 private:
  MemoryStore store_;
  std::unique_ptr<IndexedStore> index_;
};

struct Pair {
  Site here{0, 400, 1000};
  Site there{40, 440, 50};
};

SyncSettings settings_of(SyncWay way, SyncRule rule, std::uint64_t seed) {
  SyncSettings settings;
  settings.range = kRange;
  settings.way = way;
  settings.resolver.rule = rule;
  settings.resolver.remove_extra = rule == SyncRule::source;
  settings.resolver.callback = [](std::string_view, std::optional<std::string_view> source,
                                  std::optional<std::string_view>) {
    return source ? std::optional<std::string>(*source) : std::nullopt;
  };
  settings.limits.frame_bytes = kFrameBytes;
  settings.seed = seed;
  return settings;
}

Responder::Terms honest_terms() {
  Responder::Terms terms;
  terms.range = kRange;
  terms.limits.frame_bytes = kFrameBytes;
  return terms;
}

void repair_checksum(Bytes& frame) {
  if (frame.size() < frame::kHeaderBytes + frame::kChecksumBytes) return;
  const ByteView sealed = ByteView(frame).first(frame.size() - frame::kChecksumBytes);
  const std::uint64_t sum = checksum(sealed);
  for (std::size_t i = 0; i < 4; ++i) {
    frame[sealed.size() + i] = static_cast<std::uint8_t>(sum >> (8 * i));
  }
}

// Turns an honest answer into one of an attacker.
using Lie = std::function<Bytes(ByteView question, Bytes answer)>;

enum class End : std::uint8_t { done, failed, endless };

// Continues after answers that are refused without harm, as if they had been lost.
End drive(Initiator& sync, Responder& responder, const Lie& lie) {
  for (int answers = 0; answers < kMostAnswers;) {
    for (const ByteView question : sync.outstanding()) {
      if (++answers > kMostAnswers) break;
      (void)sync.receive(lie(question, responder.respond(question))).has_value();
      if (sync.failed()) return End::failed;
    }
    if (sync.done()) return End::done;
  }
  return End::endless;
}

// Replaces each part of one topic in an answer by the result of `change`.
Lie about(Topic topic, std::function<Bytes(Bytes body)> change) {
  return [topic, change = std::move(change)](ByteView /*question*/, Bytes answer) {
    const Result<frame::Opened> opened = frame::open(answer);
    if (!opened || opened->header.kind != frame::Kind::answer) return answer;
    Reader in(opened->body);
    const Result<std::vector<frame::Part>> parts = frame::decode_parts(in);
    frame::Builder builder(opened->header);
    for (const frame::Part& part : *parts) {
      Bytes body(part.body.begin(), part.body.end());
      if (part.topic == topic) body = change(std::move(body));
      frame::encode_part(part.topic, body, builder.body());
    }
    return std::move(builder).seal();
  };
}

template <class Test>
void for_each_sync(Test test) {
  for (const SyncWay way : kWays) {
    for (const SyncRule rule : kRules) {
      SCOPED_TRACE(std::string(kSyncWayNames[static_cast<std::size_t>(way)]) + " " +
                   std::to_string(static_cast<int>(rule)));
      test(way, rule);
    }
  }
}

// Checks that the sync fails and says why, or is not proved, and touches nothing outside the range.
void expect_found_out(const Lie& lie) {
  for_each_sync([&](SyncWay way, SyncRule rule) {
    Pair pair;
    const Records outside = pair.here.outside();
    Responder responder(pair.there.index(), honest_terms());
    const LargestAllocation largest;
    Initiator sync(pair.here.index(), settings_of(way, rule, 1));
    bool lied = false;  // not every way asks about the subject of the lie
    const Lie noted = [&](ByteView question, Bytes answer) {
      Bytes told = lie(question, answer);
      lied = lied || told != answer;
      return told;
    };
    EXPECT_NE(drive(sync, responder, noted), End::endless);
    EXPECT_LE(largest.bytes(), kMostAllocation);
    if (sync.failed()) {
      EXPECT_NE(sync.error().message().find("sync"), std::string::npos) << sync.error().message();
    } else {
      EXPECT_EQ(sync.report().proved, !lied);
    }
    EXPECT_EQ(pair.here.outside(), outside);
  });
}

// Bytes that are no answer do no harm: the following honest answer is accepted.
void expect_no_harm(const std::function<Bytes(ByteView question, const Bytes& answer)>& noise) {
  for_each_sync([&](SyncWay way, SyncRule rule) {
    Pair pair;
    Responder responder(pair.there.index(), honest_terms());
    Initiator sync(pair.here.index(), settings_of(way, rule, 1));
    const Lie after_noise = [&](ByteView question, Bytes answer) {
      EXPECT_FALSE(sync.receive(noise(question, answer)));
      EXPECT_FALSE(sync.failed());
      return answer;
    };
    EXPECT_EQ(drive(sync, responder, after_noise), End::done);
    EXPECT_TRUE(sync.report().proved);
  });
}

TEST(HostileResponder, NoiseDoesNoHarm) {
  Random random(1);
  expect_no_harm([&](ByteView, const Bytes&) {
    Bytes noise(random.below(200));
    for (std::uint8_t& byte : noise) byte = static_cast<std::uint8_t>(random());
    return noise;
  });
  expect_no_harm([](ByteView, const Bytes& answer) {  // damaged
    Bytes damaged = answer;
    damaged[damaged.size() / 2] ^= 1;
    return damaged;
  });
  expect_no_harm([](ByteView, const Bytes&) { return Bytes(kFrameBytes + 1); });
  expect_no_harm([](ByteView question, const Bytes&) {  // an echo
    return Bytes(question.begin(), question.end());
  });
  expect_no_harm([](ByteView, const Bytes& answer) {  // of another question
    Bytes other = answer;
    other[4] ^= 1;
    repair_checksum(other);
    return other;
  });
  expect_no_harm([](ByteView, const Bytes& answer) {  // of another secret
    Bytes other = answer;
    other[8] ^= 1;
    repair_checksum(other);
    return other;
  });
  expect_no_harm([](ByteView, const Bytes& answer) {  // of another version
    Bytes other = answer;
    other[2] = 99;
    repair_checksum(other);
    return other;
  });
}

TEST(HostileResponder, ARefusalIsReported) {
  Pair pair;
  Responder responder(pair.there.index(), honest_terms());
  Initiator sync(pair.here.index(), settings_of(SyncWay::walk, SyncRule::join, 1));
  const Lie refuses = [](ByteView question, const Bytes&) {
    return frame::refusal(frame::header_of(question), {Errc::limit, "not today"});
  };
  EXPECT_EQ(drive(sync, responder, refuses), End::failed);
  EXPECT_EQ(sync.error().code, Errc::limit);
  EXPECT_EQ(std::string(sync.error().detail()), "not today");
}

TEST(HostileResponder, CountsThatAreTooLargeAreNotBelieved) {
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{1} << 32, ~std::uint64_t{0}}) {
    SCOPED_TRACE(count);
    expect_found_out(about(Topic::hello, [&](Bytes body) {
      Reader in(body);
      frame::HelloReply reply = *frame::decode_hello_reply(in);
      const ByteView frontier = in.view(in.rest());
      reply.sum.count = count;
      reply.sum.volume = count;
      reply.total = 1e18F;
      Bytes lie;
      Writer out(lie);
      frame::encode(reply, out);
      out.bytes(frontier);
      return lie;
    }));
  }
}

TEST(HostileResponder, ContinuationsWithoutEndAreNotFollowed) {
  std::uint64_t step = 0;
  expect_found_out(about(Topic::fetch, [&](const Bytes& body) {
    Bytes lie;
    Writer out(lie);
    out.u8(0);      // not complete
    out.varint(0);  // at the first item
    const std::string from = std::string("k").append(std::to_string(1'000'000'000 + ++step));
    out.varint(from.size());
    out.bytes({reinterpret_cast<const std::uint8_t*>(from.data()), from.size()});
    if (body.size() < 40) {  // a digest comes with a count
      out.varint(1);
      out.u64(step);
      out.u64(step);
    }
    return lie;
  }));
}

TEST(HostileResponder, SlotsThatAreAlwaysTooBigAreNotSplitForever) {
  expect_found_out(about(Topic::compare, [](const Bytes& body) {
    Reader in(body);
    Bytes lie;
    Writer out(lie);
    out.varint(in.varint());
    const std::uint64_t size = in.varint();
    out.varint(size);
    // Whatever the number of slots is, all of them are 'big' up to the end.
    for (std::uint64_t i = 0; i < size; ++i) out.u8(0xff);
    return lie;
  }));
}

// The number of slots is right, so that the frame is an answer.
TEST(HostileResponder, EverySlotBigForever) {
  for (const SyncWay way : {SyncWay::walk, SyncWay::list}) {
    Pair pair;
    // A few records of some size. Each is a container, and some nodes above have few records.
    for (int n = 0; n < 40; ++n) pair.here.put("k5" + std::to_string(n), std::string(300, 'v'));
    Responder responder(pair.there.index(), honest_terms());
    Initiator sync(pair.here.index(), settings_of(way, SyncRule::join, 1));
    const Lie all_big = [&](ByteView question, Bytes answer) {
      const Result<frame::Opened> asked = frame::open(question);
      Reader in(asked->body);
      if (!frame::decode_scope(in)) return answer;
      const auto parts = frame::decode_parts(in);
      if (!parts || (*parts)[0].topic != Topic::compare) return answer;
      Reader part((*parts)[0].body);
      if (!frame::decode_compare(part)) return answer;
      const auto slots = decode_frontier(part);
      std::vector<frame::SlotAnswer> answers(slots->size());
      for (frame::SlotAnswer& each : answers) each.kind = frame::SlotAnswer::Kind::big;
      Bytes body;
      Writer out(body);
      frame::encode(answers, 0, out);
      const Lie replaced = about(Topic::compare, [&](const Bytes&) { return body; });
      return replaced(question, std::move(answer));
    };
    EXPECT_NE(drive(sync, responder, all_big), End::endless);
  }
}

TEST(HostileResponder, RecordsOutsideTheRangeAreRefused) {
  for (const char* key : {"a", "j", "l", "zebra", ""}) {
    SCOPED_TRACE(key);
    expect_found_out(about(Topic::fetch, [&](const Bytes& body) {
      Bytes lie;
      if (body.size() < 40) return body;  // of a digest
      Writer(lie).u8(1);
      frame::RecordWriter records(lie);
      records.add(key, std::string(16, 'z'));
      records.finish();
      return lie;
    }));
  }
}

// If this end has records too, it asks for other records by their digests. A record with another
// value counts as another record.
TEST(HostileResponder, RecordsThatNobodyAskedForAreNotTaken) {
  for (const SyncWay way : {SyncWay::walk, SyncWay::sketch, SyncWay::list}) {
    SCOPED_TRACE(kSyncWayNames[static_cast<std::size_t>(way)]);
    Pair pair;
    const Records before = pair.here.records();
    Responder responder(pair.there.index(), honest_terms());
    Initiator sync(pair.here.index(), settings_of(way, SyncRule::join, 1));
    const Lie other_values = about(Topic::fetch, [](Bytes body) {
      Reader in(body);
      const Result<frame::FetchReply> reply =
          frame::decode_fetch_reply(in, frame::Content::records);
      Bytes lie;
      Writer out(lie);
      frame::encode(*reply, frame::Content::records, out);
      const Result<std::vector<frame::Record>> honest = frame::decode_records(in);
      frame::RecordWriter records(lie);
      for (const frame::Record& record : *honest) records.add(record.key, "zzz");
      records.finish();
      return lie;
    });
    (void)drive(sync, responder, other_values);
    const Records after = pair.here.records();
    for (const auto& [key, value] : before) EXPECT_NE(after.at(key), "zzz") << key;
  }
}

// Flips bits anywhere in valid answers, and corrects the checksum.
TEST(HostileResponder, MutatedAnswersEndAndTouchNothingElse) {
  int failed = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Pair pair;
    const Records outside = pair.here.outside();
    Responder responder(pair.there.index(), honest_terms());
    const LargestAllocation largest;
    Initiator sync(pair.here.index(), settings_of(kWays[random.below(kWays.size())],
                                                  kRules[random.below(kRules.size())], seed));
    const double rate = random.unit();
    const Lie flips = [&](ByteView, Bytes answer) {
      if (random.unit() > rate) return answer;
      for (std::uint64_t times = 1 + random.below(8); times > 0; --times) {
        // Most flips are near the beginning, where lengths and counts are.
        const std::size_t reach = random.below(2) == 0 ? 64 : answer.size();
        const std::size_t at = random.below(std::min(reach, answer.size()));
        answer[at] ^= static_cast<std::uint8_t>(1U << random.below(8));
      }
      repair_checksum(answer);
      return answer;
    };
    const End end = drive(sync, responder, flips);
    EXPECT_NE(end, End::endless);
    failed += end == End::failed ? 1 : 0;
    EXPECT_LE(largest.bytes(), kMostAllocation);
    EXPECT_EQ(pair.here.outside(), outside);
    expect_equals_rebuilt(pair.here.index());
  }
  EXPECT_GT(failed, 100);
}

// The questions of honest syncs, of every kind.
std::vector<Bytes> honest_questions() {
  std::vector<Bytes> questions;
  for (const SyncWay way : kWays) {
    for (const SyncRule rule : kRules) {
      Pair pair;
      Responder responder(pair.there.index(), honest_terms());
      Initiator sync(pair.here.index(), settings_of(way, rule, 1));
      (void)drive(sync, responder, [&](ByteView question, Bytes answer) {
        questions.emplace_back(question.begin(), question.end());
        return answer;
      });
    }
  }
  return questions;
}

bool asks_to_store(ByteView question) {
  const Result<frame::Opened> opened = frame::open(question);
  if (!opened) return false;
  Reader in(opened->body);
  if (!frame::decode_scope(in)) return false;
  const Result<std::vector<frame::Part>> parts = frame::decode_parts(in);
  if (!parts) return false;
  for (const frame::Part& part : *parts) {
    if (part.topic == Topic::store) return true;
  }
  return false;
}

TEST(HostileInitiator, EveryQuestionGetsAnAnswerAndOnlyStoresChangeAnything) {
  const std::vector<Bytes> questions = honest_questions();
  Random random(5);
  auto there = std::make_unique<Site>(40, 440, 50);
  Records before = there->records();
  int refused = 0;
  constexpr int kQuestions = 5000;
  for (int i = 0; i < kQuestions; ++i) {
    SCOPED_TRACE(i);
    Bytes question = questions[random.below(questions.size())];
    if (i % 10 == 0) {
      question.resize(random.below(200));
      for (std::uint8_t& byte : question) byte = static_cast<std::uint8_t>(random());
    } else {
      for (std::uint64_t times = 1 + random.below(8); times > 0; --times) {
        const std::size_t reach = random.below(2) == 0 ? 64 : question.size();
        const std::size_t at = random.below(std::min(reach, question.size()));
        question[at] = static_cast<std::uint8_t>(
            random.below(2) == 0 ? random() : question[at] ^ 1U << random.below(8));
      }
      if (random.below(8) == 0) question.resize(random.below(question.size()) + 1);
      repair_checksum(question);
    }
    Responder responder(there->index(), honest_terms());
    const LargestAllocation largest;
    const Bytes answer = responder.respond(question);
    EXPECT_LE(largest.bytes(), kMostAllocation);
    EXPECT_LE(answer.size(), kFrameBytes);
    const Result<frame::Opened> opened = frame::open(answer);
    ASSERT_TRUE(opened) << opened.error().message();
    refused += opened->header.kind == frame::Kind::refusal ? 1 : 0;
    const Records after = there->records();
    if (after == before) continue;
    EXPECT_TRUE(asks_to_store(question));
    EXPECT_EQ(there->outside(), Site(0, 0, 1).records());
    there = std::make_unique<Site>(40, 440, 50);
  }
  EXPECT_GT(refused, kQuestions / 4);
  EXPECT_LT(refused, kQuestions);
}

TEST(HostileInitiator, AReadOnlyEndIsNeverWrittenTo) {
  Site there(40, 440, 50);
  const Records before = there.records();
  Responder::Terms terms = honest_terms();
  terms.read_only = true;
  Responder responder(there.index(), terms);
  for (const Bytes& question : honest_questions()) {
    const Bytes answer = responder.respond(question);
    const Result<frame::Opened> opened = frame::open(answer);
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->header.kind == frame::Kind::refusal, asks_to_store(question));
  }
  EXPECT_EQ(there.records(), before);
}

TEST(HostileInitiator, AnotherRangeKeyOrVersionIsNamed) {
  Site here(0, 100, 10), there(0, 100, 7);
  const auto words = [&](Responder::Terms terms, SyncSettings settings) {
    Responder responder(there.index(), std::move(terms));
    Initiator sync(here.index(), std::move(settings));
    EXPECT_EQ(drive(sync, responder, [](ByteView, Bytes answer) { return answer; }), End::failed);
    return std::string(sync.error().detail());
  };
  Responder::Terms narrow = honest_terms();
  narrow.range = {"k1", "k2"};
  EXPECT_NE(words(narrow, settings_of(SyncWay::walk, SyncRule::join, 1)).find("range"),
            std::string::npos);

  MemoryStore store;
  const auto other = *IndexedStore::open(store, numbered_secret(4), {});
  Responder responder(*other, honest_terms());
  Initiator sync(here.index(), settings_of(SyncWay::walk, SyncRule::join, 1));
  const Bytes of_other_key = responder.respond(sync.outstanding().front());
  const Result<frame::Opened> refused = frame::open(of_other_key);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->header.kind, frame::Kind::refusal);

  Bytes newer(sync.outstanding().front().begin(), sync.outstanding().front().end());
  newer[2] = 2;
  repair_checksum(newer);
  const Bytes of_other_version = Responder(there.index(), honest_terms()).respond(newer);
  Reader in(frame::open(of_other_version)->body);
  EXPECT_EQ(frame::decode_refusal(in)->code, Errc::unsupported);
}

}  // namespace
}  // namespace semel
