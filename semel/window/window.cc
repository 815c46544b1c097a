#include "semel/window/window.h"

#include <bit>
#include <memory>
#include <type_traits>
#include <utility>
#include <variant>

#include "semel/core/assert.h"
#include "semel/core/internal/error_rate.h"
#include "semel/hash/internal/sealed.h"
#include "semel/window/internal/endless_filter.h"
#include "semel/window/internal/endless_set.h"
#include "semel/window/internal/exact_window.h"
#include "semel/window/internal/forgetful_filter.h"
#include "semel/window/internal/goal_codec.h"
#include "semel/window/internal/id_window.h"
#include "semel/window/internal/sliding_filter.h"

namespace semel {
namespace window_internal {

static_assert(IdWindow<ForgetfulFilter> && IdWindow<SlidingFilter> && IdWindow<ExactWindow> &&
              IdWindow<EndlessFilter> && IdWindow<EndlessSet>);

void write(Writer& w, const Window::Goal& goal) {
  w.enumeration(goal.structure);
  w.enumeration(goal.on_full);
  w.boolean(goal.punctual);
  semel::write(w, goal.hash);
  w.i64(goal.window_ms);
  w.f64(goal.fpr);
  w.u64(goal.ids);
  w.u64(goal.max_bytes);
}

Window::Goal read_goal(Reader& r) {
  Window::Goal goal;
  goal.structure = r.enumeration(Window::Structure::exact);
  goal.on_full = r.enumeration(OnFull::forget);
  goal.punctual = r.boolean();
  goal.hash = read_hash_id(r);
  goal.window_ms = r.i64();
  goal.fpr = r.f64();
  goal.ids = r.u64();
  goal.max_bytes = r.u64();
  return goal;
}

Result<void> check(const Window::Goal& goal) {
  using Structure = Window::Structure;
  if (goal.structure > Structure::exact || goal.on_full > OnFull::forget || !goal.hash.valid()) {
    return Error{Errc::invalid, "a window of unknown structure, policy or hash"};
  }
  if (goal.window_ms <= 0) return Error{Errc::invalid, "a window must be longer than zero"};
  if (goal.ids == 0) return Error{Errc::invalid, "a window needs room for one id"};
  if (goal.window_ms == kForever) {
    if (goal.structure == Structure::timers)
      return Error{Errc::invalid, "timers need a window with an end"};
    if (goal.max_bytes != kNoCap || goal.on_full != OnFull::refuse) {
      return Error{Errc::invalid, "a window without an end takes no max_bytes"};
    }
  }
  const bool exact = goal.structure == Structure::exact;
  if (goal.punctual && (!exact || goal.window_ms == kForever)) {
    return Error{Errc::invalid, "only an exact window with an end can be punctual"};
  }
  if (!exact) return is_error_rate(goal.fpr) ? Result<void>() : error_rate_refused();
  // The bits are compared, because a negative zero would be another encoding.
  if (std::bit_cast<std::uint64_t>(goal.fpr) == 0) return {};
  return Error{Errc::invalid, "the fpr of an exact window must be 0"};
}

namespace {

constexpr Format kFormat{"WIN", 1, "window"};  // docs/formats/window_v1.md

using Any = std::variant<ForgetfulFilter, SlidingFilter, ExactWindow, EndlessFilter, EndlessSet>;

// Four lines per id: at 1e-6 they take a seventh less memory than three, in the same time. The
// plain layout would save another sixth, but take up to 0.2 us more for a single id. The few spare
// ids are for a load that is not quite even, which would soon need a second table.
ForgetfulFilter::Goal forgetful_goal(const Window::Goal& goal) {
  return {.window_ms = goal.window_ms,
          .fpr = goal.fpr,
          .ids = goal.ids + goal.ids / 32,
          .past_lanes = 7,
          .layout = BloomLayout::blocked4,
          .max_bytes = goal.max_bytes,
          .on_full = goal.on_full,
          .hash = goal.hash};
}

// A large first table gets three quarters of the error, because no more ids are expected. A small
// one may well be followed by a larger one, and leaves three quarters for it.
Result<ForgetfulFilter> make_forgetful(const Window::Goal& goal, TimeMs now_ms) {
  constexpr std::uint64_t kLarge = 1 << 18;
  return ForgetfulFilter::make(forgetful_goal(goal), now_ms, goal.ids < kLarge ? 0.25 : 0.75);
}

SlidingShape::Goal sliding_goal(const Window::Goal& goal) {
  return {.window_ms = goal.window_ms,
          .fpr = goal.fpr,
          .ids = goal.ids,
          .max_bytes = goal.max_bytes,
          .on_full = goal.on_full,
          .hash = goal.hash};
}

ExactWindow::Goal exact_goal(const Window::Goal& goal) {
  return {.window_ms = goal.window_ms,
          .ids = goal.ids,
          .generations = 4,
          .max_bytes = goal.max_bytes,
          .on_full = goal.on_full,
          .hash = goal.hash,
          .punctual = goal.punctual};
}

EndlessFilter::Goal endless_goal(const Window::Goal& goal) {
  return {.fpr = goal.fpr, .first_keys = goal.ids, .hash = goal.hash};
}

// These return true if a decoded structure has this goal.
bool fits(const ForgetfulFilter& read, const Window::Goal& goal) {
  return read.goal() == forgetful_goal(goal);
}
bool fits(const SlidingFilter& read, const Window::Goal& goal) {
  const auto shape = SlidingShape::for_goal(sliding_goal(goal));
  return shape && read.shape() == *shape;
}
bool fits(const ExactWindow& read, const Window::Goal& goal) {
  return read.goal() == exact_goal(goal);
}
bool fits(const EndlessFilter& read, const Window::Goal& goal) {
  return read.goal() == endless_goal(goal);
}
bool fits(const EndlessSet& read, const Window::Goal& goal) { return read.hash() == goal.hash; }

template <class W>
Result<Any> wrap(Result<W> made) {
  return Any(SEMEL_TRY(std::move(made)));
}

Result<Any> make(const Window::Goal& goal, TimeMs now_ms) {
  const bool endless = goal.window_ms == kForever;
  switch (goal.structure) {
    case Window::Structure::forgetful:
      if (endless) return wrap(EndlessFilter::make(endless_goal(goal), now_ms));
      return wrap(make_forgetful(goal, now_ms));
    case Window::Structure::timers:
      return wrap(SlidingFilter::make(sliding_goal(goal), now_ms));
    case Window::Structure::exact:
      break;
  }
  if (endless) return Any(EndlessSet(goal.hash, now_ms));
  return wrap(ExactWindow::make(exact_goal(goal), now_ms));
}

template <class W>
Result<Any> read(ByteView in, const Window::Goal& goal) {
  W made = SEMEL_TRY(W::decode(in));
  if (!fits(made, goal)) return corrupt(kFormat, "a structure of another goal");
  return Any(std::move(made));
}

Result<Any> read(ByteView in, const Window::Goal& goal) {
  const bool endless = goal.window_ms == kForever;
  switch (goal.structure) {
    case Window::Structure::forgetful:
      return endless ? read<EndlessFilter>(in, goal) : read<ForgetfulFilter>(in, goal);
    case Window::Structure::timers:
      return read<SlidingFilter>(in, goal);
    case Window::Structure::exact:
      break;
  }
  return endless ? read<EndlessSet>(in, goal) : read<ExactWindow>(in, goal);
}

TimeMs longest_ms(const Window::Goal& goal) {
  if (goal.window_ms == kForever) return kForever;
  switch (goal.structure) {
    case Window::Structure::forgetful:
      return ForgetfulFilter::longest_ms(forgetful_goal(goal));
    case Window::Structure::timers:
      return later_by(goal.window_ms, SlidingShape::for_goal(sliding_goal(goal))->tick_ms());
    case Window::Structure::exact:
      break;
  }
  return ExactWindow::longest_ms(exact_goal(goal));
}

}  // namespace
}  // namespace window_internal

struct Window::Body {
  Goal goal;
  window_internal::Any any;

  // Calls visit() with the structure. It is a switch, so that calls are inlined or direct.
  template <class Self, class Visit>
  [[gnu::always_inline]] static decltype(auto) visit_any(Self& any, Visit visit) {
    switch (any.index()) {
      case 0:
        return visit(*std::get_if<0>(&any));
      case 1:
        return visit(*std::get_if<1>(&any));
      case 2:
        return visit(*std::get_if<2>(&any));
      case 3:
        return visit(*std::get_if<3>(&any));
      default:
        return visit(*std::get_if<4>(&any));
    }
  }
  template <class Visit>
  decltype(auto) visit(Visit visit) {
    return visit_any(any, visit);
  }
  template <class Visit>
  decltype(auto) visit(Visit visit) const {
    return visit_any(any, visit);
  }
};

Result<Window> Window::make(const Goal& goal, TimeMs now_ms) {
  SEMEL_TRY(window_internal::check(goal));
  auto any = SEMEL_TRY(window_internal::make(goal, now_ms));
  return Window(std::make_unique<Body>(Body{goal, std::move(any)}));
}

TimeMs Window::longest_ms(const Goal& goal) { return window_internal::longest_ms(goal); }

Window::Window(std::unique_ptr<Body> body) : body_(std::move(body)) {}
Window::Window(const Window& other)
    : body_(other.body_ == nullptr ? nullptr : std::make_unique<Body>(*other.body_)) {}
Window::Window(Window&&) noexcept = default;
Window& Window::operator=(const Window& other) { return *this = Window(other); }
Window& Window::operator=(Window&&) noexcept = default;
Window::~Window() = default;

Verdict Window::test(Digest id) const {
  return body_->visit([&](const auto& w) { return w.test(id); });
}
Verdict Window::test(Digest id, TimeMs now_ms) const {
  return body_->visit([&](const auto& w) { return w.test(id, now_ms); });
}
Verdict Window::insert(Digest id, TimeMs at_ms) {
  return body_->visit([&](auto& w) { return w.insert(id, at_ms); });
}
Verdict Window::test_and_insert(Digest id, TimeMs at_ms) {
  return body_->visit([&](auto& w) { return w.test_and_insert(id, at_ms); });
}

void Window::test(std::span<const Digest> ids, std::span<Verdict> verdicts) const {
  body_->visit([&](const auto& w) { w.test(ids, verdicts); });
}
void Window::test(std::span<const Digest> ids, TimeMs now_ms, std::span<Verdict> verdicts) const {
  body_->visit([&](const auto& w) {
    if constexpr (requires { w.test(ids, now_ms, verdicts); }) {
      w.test(ids, now_ms, verdicts);
    } else {
      w.test(ids, verdicts);  // the window has no end
    }
  });
}
void Window::insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  body_->visit([&](auto& w) { w.insert(ids, verdicts); });
}
void Window::test_and_insert(std::span<const Digest> ids, std::span<Verdict> verdicts) {
  body_->visit([&](auto& w) { w.test_and_insert(ids, verdicts); });
}

namespace {

// Judges ids that come at these times: runs of ids that come at `now_ms` by judge(ids, verdicts),
// and each other id by judge(id, at_ms).
template <class Judge>
void judge_runs(std::span<const Digest> ids, std::span<const TimeMs> at_ms,
                std::span<Verdict> verdicts, TimeMs now_ms, Judge judge) {
  SEMEL_ASSERT(ids.size() == at_ms.size() && ids.size() == verdicts.size());
  for (std::size_t i = 0; i < at_ms.size();) {
    std::size_t end = i;
    while (end < at_ms.size() && at_ms[end] == now_ms) ++end;
    if (end > i) {
      judge(ids.subspan(i, end - i), verdicts.subspan(i, end - i));
      i = end;
    } else {
      verdicts[i] = judge(ids[i], at_ms[i]);
      ++i;
    }
  }
}

}  // namespace

void Window::insert(std::span<const Digest> ids, std::span<const TimeMs> at_ms,
                    std::span<Verdict> verdicts) {
  body_->visit([&](auto& w) {
    judge_runs(ids, at_ms, verdicts, w.now(), [&](auto... event) { return w.insert(event...); });
  });
}
void Window::test_and_insert(std::span<const Digest> ids, std::span<const TimeMs> at_ms,
                             std::span<Verdict> verdicts) {
  body_->visit([&](auto& w) {
    judge_runs(ids, at_ms, verdicts, w.now(),
               [&](auto... event) { return w.test_and_insert(event...); });
  });
}

void Window::touch(Digest id) const {
  body_->visit([&](const auto& w) {
    if constexpr (requires { w.touch(id); }) w.touch(id);
  });
}

namespace {

// Makes `into` the union of both. REQUIRES: their goals merge.
template <class W>
Result<void> unite(W& into, const W& from) {
  if (into.now() == from.now()) return into.merge(from);
  if (into.now() > from.now()) {
    W later = from;
    later.advance(into.now());
    return into.merge(later);
  }
  W later = into;  // so that a failure does not leave it advanced
  later.advance(from.now());
  SEMEL_TRY(later.merge(from));
  into = std::move(later);
  return {};
}

Result<void> unite(window_internal::EndlessSet& into, const window_internal::EndlessSet& from) {
  return into.merge(from);
}

// Two filters would be one with the keys of both in the room of one, and err more than they may.
Result<void> unite(window_internal::EndlessFilter& /*into*/,
                   const window_internal::EndlessFilter& /*from*/) {
  return Error{Errc::unsupported,
               "forgetful windows without an end do not merge: the union would err too often"};
}

}  // namespace

Result<void> Window::merge(const Window& other) {
  Goal goal = other.goal();
  goal.max_bytes = body_->goal.max_bytes;
  goal.on_full = body_->goal.on_full;
  if (goal != body_->goal) {
    return Error{Errc::mismatch,
                 "windows of different goals: only max_bytes and on_full may differ"};
  }
  return body_->visit([&](auto& into) {
    using W = std::remove_cvref_t<decltype(into)>;
    return unite(into, std::get<W>(other.body_->any));
  });
}

void Window::advance(TimeMs now_ms) {
  body_->visit([&](auto& w) { w.advance(now_ms); });
}
TimeMs Window::now() const {
  return body_->visit([](const auto& w) { return w.now(); });
}
WindowPromise Window::promise() const {
  return body_->visit([](const auto& w) { return w.promise(); });
}
WindowCounts Window::counts() const {
  return body_->visit([](const auto& w) { return w.counts(); });
}
double Window::false_positive_rate() const {
  return body_->visit([](const auto& w) { return w.false_positive_rate(); });
}
std::uint64_t Window::ids(TimeMs now_ms) const {
  return body_->visit([&](const auto& w) {
    if constexpr (requires { w.ids(now_ms); }) {
      return w.ids(now_ms);
    } else {
      return w.ids();  // the window has no end
    }
  });
}
std::uint64_t Window::bytes() const {
  return body_->visit([](const auto& w) { return w.bytes(); });
}

const Window::Goal& Window::goal() const { return body_->goal; }

namespace {

template <class W>
std::uint64_t cap_of(const W& window) {
  return window.goal().max_bytes;
}
std::uint64_t cap_of(const window_internal::SlidingFilter& filter) {
  return filter.shape().max_bytes;
}

}  // namespace

void Window::set_max_bytes(std::uint64_t max_bytes) {
  body_->visit([&](auto& w) {
    if constexpr (requires { w.set_max_bytes(max_bytes); }) {
      w.set_max_bytes(max_bytes);
      body_->goal.max_bytes = cap_of(w);
    } else {
      SEMEL_ASSERT(false);  // the window has no end
    }
  });
}

bool Window::takes(std::uint64_t ids) const {
  return body_->visit([&](const auto& w) {
    if constexpr (requires { w.takes(ids); }) {
      return w.takes(ids);
    } else {
      return false;  // the window has no end
    }
  });
}

void Window::encode(Sink out) const {
  using window_internal::write;
  seal(out, window_internal::kFormat, [&](Writer& w) {
    write(w, body_->goal);
    body_->visit([&](const auto& any) { any.encode(w.sink()); });
  });
}

Result<Window> Window::decode(ByteView in) {
  using window_internal::kFormat;
  Reader r = SEMEL_TRY(open_sealed(in, kFormat));
  const Goal goal = window_internal::read_goal(r);
  if (!r.ok() || !window_internal::check(goal)) return corrupt(kFormat, "goal");
  auto any = SEMEL_TRY(decoded_part(window_internal::read(r.view(r.rest()), goal)));
  return Window(std::make_unique<Body>(Body{goal, std::move(any)}));
}

bool Window::operator==(const Window& other) const {
  return body_->goal == other.body_->goal && body_->any == other.body_->any;
}

window_internal::ExactWindow* window_internal::ExactWindow::inside(Window& window) {
  return std::get_if<ExactWindow>(&window.body_->any);
}
const window_internal::ExactWindow* window_internal::ExactWindow::inside(const Window& window) {
  return std::get_if<ExactWindow>(&window.body_->any);
}

}  // namespace semel
