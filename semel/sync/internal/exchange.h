// Exchange: the questions of a round trip, and which of them still wait for their answers.
//
// Contract  All parts travel together in the next round, small ones in one frame. An answer is
//           taken once, even if it comes twice, late or out of order. A frame that answers no open
//           question changes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "semel/core/codec.h"
#include "semel/core/result.h"
#include "semel/sync/internal/frame.h"
#include "semel/sync/peer.h"

namespace semel::sync_internal {

// The asker keeps these for each part until its answer comes.
struct HelloAsk {};
struct CompareAsk {
  std::vector<Frontier::Slot> slots;
  bool list;
  int repeats;  // how often these slots were asked about before, without being split
};
struct ProbeAsk {
  std::vector<Frontier::Slot> slots;
  std::uint64_t width;  // records of a slot, roughly; 0: lists
};
struct ScanAsk {
  frame::Scan scan;
  int attempt;
};
struct FetchAsk {
  frame::Fetch fetch;
  // All bits of the numbers of each item; the question may send only half of them.
  std::vector<std::vector<std::uint32_t>> numbers;
  std::unordered_set<std::uint64_t> placed;  // for a partition by hash: all of them, by placed()
  bool copy = false;                         // the answer is compared with what is here
  int barren = 0;                            // answers in a row that brought no record
};
struct StoreAsk {
  // The records of Findings::ours() that are sent: `count` from `first` on. None under
  // Manner::exact.
  std::size_t first = 0;
  std::size_t count = 0;
};
using AskContext = std::variant<HelloAsk, CompareAsk, ProbeAsk, ScanAsk, FetchAsk, StoreAsk>;

// Names a record of a partition by hash.
inline std::uint64_t placed(std::uint32_t partition, std::uint32_t number) {
  return std::uint64_t{partition} << 32 | number;
}

class Exchange {
 public:
  // `key` names the secret; frames are numbered from `number` on.
  Exchange(std::uint32_t key, std::uint32_t number, std::uint32_t frame_bytes)
      : key_(key), number_(number), frame_bytes_(frame_bytes) {}

  void ask(frame::Topic topic, Bytes body, AskContext context);
  bool asks() const { return !next_.empty(); }

  // Errc::limit if a part is larger than a frame may be. REQUIRES: round_done().
  Result<void> begin_round(const frame::Scope& scope);
  bool round_done() const;
  std::vector<ByteView> outstanding() const;

  struct Answer {
    // The error if the other end refuses, or does not answer the question. Without an error there
    // are parts.
    std::optional<Error> fatal;
    std::vector<std::pair<std::unique_ptr<AskContext>, ByteView>> parts;
  };
  // Takes an answer. Returns an error if the frame answers no open question.
  Result<Answer> take(ByteView bytes);

  void stop();  // forgets all questions

  std::uint64_t bytes_sent() const { return bytes_sent_; }
  std::uint64_t bytes_received() const { return bytes_received_; }
  std::uint64_t first_bytes() const { return first_bytes_; }  // in the first round
  std::uint32_t rounds() const { return rounds_; }            // begun so far

 private:
  struct Draft {
    frame::Topic topic;
    Bytes body;
    std::unique_ptr<AskContext> context;
  };
  struct Question {
    std::uint32_t number;
    Bytes bytes;
    std::vector<std::pair<frame::Topic, std::unique_ptr<AskContext>>> parts;
    bool answered = false;
  };

  Result<void> send(std::span<Draft> drafts, const frame::Scope& scope);

  std::uint32_t key_;
  std::uint32_t number_;
  std::uint32_t frame_bytes_;
  std::vector<Draft> next_;
  std::vector<Question> round_;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_received_ = 0;
  std::uint64_t first_bytes_ = 0;
  std::uint32_t rounds_ = 0;
};

}  // namespace semel::sync_internal
