// An exact model of a recogniser: which ids were taken, when, and their contents. The same history
// drives both, and the recogniser may differ from the model only where its promise allows:
//
//   * an id taken at or after kept_from_ms is a duplicate, or with another content a conflict;
//   * one taken before forgotten_before_ms, or never, is new;
//   * `stale` is only a sequence of a client that has forgotten one as high.
//
// It has no cap, and an error so low that no id is ever taken for another.
#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "semel/core/internal/arithmetic.h"
#include "semel/tally/internal/recogniser.h"
#include "tests/support/encoded.h"
#include "tests/support/keys.h"

namespace semel::tally {

using namespace internal;

using Query = Recogniser::Query;
using Answers = std::vector<Outcome>;

inline Query opaque(std::uint64_t id, std::uint64_t content = 0) {
  return {OperationId::opaque(key(id)), key(content)};
}
inline Query numbered(std::uint64_t client, std::uint64_t sequence, std::uint64_t content = 0) {
  return {OperationId::numbered(key(client), sequence), key(content)};
}
inline Query nameless() { return {OperationId::none(), key(0)}; }

inline Answers taken(Recogniser& recogniser, std::span<const Query> queries) {
  Answers answers(queries.size());
  recogniser.test_and_insert(queries, answers);
  return answers;
}
inline Answers tested(const Recogniser& recogniser, std::span<const Query> queries) {
  Answers answers(queries.size());
  recogniser.test(queries, answers);
  return answers;
}

// Knows everything that was ever taken, and says what is wrong with an answer.
class RecogniserModel {
 public:
  explicit RecogniserModel(Recogniser::Kind kind) : kind_(kind) {}

  // Returns why the answer is impossible; empty if it is possible.
  std::string objection(const Query& query, Outcome answer, const WindowPromise& promise) const {
    if (query.id.kind == OperationId::Kind::none) {
      return answer == Outcome::applied ? "" : "an operation without an id is known";
    }
    if (answer == Outcome::full) return "full without a cap";
    if (answer == Outcome::stale) {
      return may_be_stale(query, promise) ? "" : "stale without reason";
    }
    const auto known = operations_.find(name(query));
    const bool kept = known != operations_.end() && known->second.at_ms >= promise.kept_from_ms;
    const bool gone =
        known == operations_.end() || known->second.at_ms < promise.forgotten_before_ms;
    if (kept && answer == Outcome::applied) return "a retry within the window is missed";
    if (gone && answer != Outcome::applied) return "a new id is taken for a known one";
    if (answer == Outcome::applied) return "";
    const bool same = kind_ != Recogniser::Kind::exact || known->second.content == query.content;
    return (answer == Outcome::duplicate) == same ? "" : "the contents are confused";
  }

  void take(const Query& query, TimeMs at_ms) {
    if (query.id.kind == OperationId::Kind::none) return;
    const Taken once{query.content, at_ms, at_ms};
    Taken& known = operations_.try_emplace(name(query), once).first->second;
    known = {query.content, std::min(known.first_ms, at_ms), std::max(known.at_ms, at_ms)};
  }
  bool knows(const Query& query) const { return operations_.contains(name(query)); }

 private:
  struct Taken {
    Digest content;
    TimeMs first_ms, at_ms;
  };
  using Name = std::pair<std::pair<bool, std::uint64_t>, std::uint64_t>;

  static Name name(const Query& query) {
    return {{query.id.kind == OperationId::Kind::numbered, query.id.digest.lo}, query.id.sequence};
  }
  // Returns true only if the client has forgotten a sequence at or above this one.
  bool may_be_stale(const Query& query, const WindowPromise& promise) const {
    const bool numbers = query.id.kind == OperationId::Kind::numbered;
    if (kind_ != Recogniser::Kind::clients || !numbers) return false;
    return std::any_of(operations_.begin(), operations_.end(), [&](const auto& known) {
      return known.first.first == name(query).first && known.first.second >= query.id.sequence &&
             known.second.first_ms < promise.kept_from_ms;
    });
  }

  Recogniser::Kind kind_;
  std::map<Name, Taken> operations_;
};

struct RecogniserStep {
  int what;
  std::uint64_t number;
  int amount;
};

inline std::ostream& operator<<(std::ostream& out, const RecogniserStep& step) {
  return out << '{' << step.what << ", " << step.number << ", " << step.amount << '}';
}

// Half of the ids are opaque. The content follows from the id, with a few exceptions.
inline Query query_of(std::uint64_t number, bool other_content) {
  const std::uint64_t content = other_content ? 1'000'000 : number;
  if (number % 16 == 0) return nameless();
  return number % 2 == 0 ? opaque(number, content) : numbered(number % 3, number / 2, content);
}

inline void follow(const Recogniser::Goal& goal, TimeMs start_ms,
                   const std::vector<RecogniserStep>& history) {
  Recogniser recogniser = *Recogniser::make(goal, start_ms);
  RecogniserModel model(goal.kind);
  const auto judge = [&](const Query& query, Outcome answer, bool takes) {
    RC_ASSERT(model.objection(query, answer, recogniser.promise()) == "");
    if (takes && answer == Outcome::applied) model.take(query, recogniser.now());
  };
  for (const RecogniserStep& step : history) {
    const Query query = query_of(step.number, step.amount == 0);
    switch (step.what) {
      case 0:
        recogniser.advance(recogniser.now() + step.amount * 20);
        break;
      case 1:
        judge(query, recogniser.test(query), false);
        break;
      case 2: {  // a batch, with some entries twice
        std::vector<Query> batch;
        for (int i = 0; i < step.amount; ++i) {
          batch.push_back(query_of(step.number + mix(step.number + i) % 8, i % 5 == 4));
        }
        const Answers before = tested(recogniser, batch);
        for (std::size_t i = 0; i < batch.size(); ++i) judge(batch[i], before[i], false);
        const Answers answers = taken(recogniser, batch);
        for (std::size_t i = 0; i < batch.size(); ++i) judge(batch[i], answers[i], true);
        break;
      }
      case 3: {  // an id that another site took, or that a log has
        // The model cannot tell which of two contents of one id is remembered.
        if (model.knows(query) && goal.kind == Recogniser::Kind::exact) break;
        const TimeMs at_ms = recogniser.now() - step.amount * 50;
        const Outcome answer = recogniser.insert(query, at_ms);
        const bool late = at_ms < recogniser.promise().kept_from_ms;
        RC_ASSERT(answer == Outcome::applied || answer == Outcome::stale);
        if (answer == Outcome::stale && !late) judge(query, Outcome::stale, false);
        if (answer == Outcome::applied && !late) model.take(query, at_ms);
        break;
      }
      case 4:  // goes on as its copy from bytes does
        recogniser = *Recogniser::decode(encoded(recogniser));
        break;
      default:
        judge(query, recogniser.test_and_insert(query), true);
    }
  }
}

}  // namespace semel::tally
