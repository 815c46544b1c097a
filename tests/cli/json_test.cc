// JSON texts, beside what Python takes for JSON.
#include "cli/json.h"

#include <gtest/gtest.h>

#include "cli/records.h"
#include "semel/core/internal/random.h"
#include "tests/cli/lines.h"
#include "tests/cli/process.h"

namespace semel::cli {
namespace {

using Kind = JsonReader::Kind;

class Json : public ::testing::Test {
 protected:
  std::string problem(const std::string& text) {
    padded_ = text + std::string(kPadding, '\0');
    const auto parsed = reader_.parse(std::string_view(padded_).substr(0, text.size()));
    return parsed ? "" : parsed.error().message();
  }
  // REQUIRES: the last text was read.
  JsonReader::Value at(const std::string& pointer) { return reader_.at(pointer, buffer_); }
  JsonReader::Value value(const std::string& json) {
    EXPECT_EQ(problem("{\"a\":" + json + ",\"b\":2}"), "") << json;
    EXPECT_EQ(reader_.at("/b", buffer_).text, "2") << json;
    return at("/a");
  }
  void expect(const std::string& json, Kind kind, const std::string& text) {
    const JsonReader::Value found = value(json);
    EXPECT_EQ(found.kind, kind) << json;
    EXPECT_EQ(found.text, text) << json;
  }

  JsonReader reader_;
  std::string padded_;
  std::string buffer_;
};

TEST_F(Json, TakesNumbersOfAnySize) {
  expect("18446744073709551615", Kind::whole, "18446744073709551615");
  expect("18446744073709551616", Kind::whole, "18446744073709551616");
  expect("-9223372036854775809", Kind::whole, "-9223372036854775809");
  const std::string digits = '1' + std::string(5000, '0');
  expect(digits, Kind::whole, digits);
  expect("1e400", Kind::other, "1e400");
  expect("-1E+400", Kind::other, "-1E+400");
  expect(digits + ".5", Kind::other, digits + ".5");
  expect("[1, 18446744073709551616, \"1\"]", Kind::other, "[1,18446744073709551616,\"1\"]");
  expect("{\"n\\\"1\": [0.10, 1e400, \"\\u00410\\\"7\"]}", Kind::other,
         "{\"n\\\"1\":[0.1,1e400,\"A0\\\"7\"]}");
}

TEST_F(Json, WritesANumberTheSameWayBesideOneOfAnySize) {
  for (const char* number : {"0", "-0", "-0.0", "1E5", "1e5", "1.0", "0.10", "123456789012345.678",
                             "1e-400", "-9223372036854775808", "18446744073709551615"}) {
    const std::string alone(value(number).text);
    const Kind kind = value(number).kind;
    ASSERT_EQ(problem(std::string("{\"big\":1e400,\"a\":") + number + "}"), "") << number;
    EXPECT_EQ(at("/a").text, alone) << number;
    EXPECT_EQ(at("/a").kind, kind) << number;
    EXPECT_EQ(at("/big").text, "1e400");
  }
}

TEST_F(Json, TakesAWholeTextThatIsANumber) {
  EXPECT_EQ(problem("123456789012345678901234567890"), "");
  EXPECT_EQ(at("").text, "123456789012345678901234567890");
  EXPECT_EQ(at("/a").kind, Kind::missing);
}

TEST_F(Json, RefusesWhatIsNoNumber) {
  for (const char* number :
       {"01", "-", "+1", "1.", ".5", "1e", "1e+", "0x1", "1_000", "--1", "1.2.3", "NaN", "Infinity",
        "-Infinity", "018446744073709551616", "18446744073709551616.", "1e400e1"}) {
    EXPECT_EQ(
        problem("{\"big\":1e400,\"a\":" + std::string(number) + "}").rfind("this is not JSON", 0),
        0u)
        << number;
  }
  EXPECT_EQ(problem("{\"a\":1e400").rfind("this is not JSON", 0), 0u);
  EXPECT_EQ(problem("1e400 1").rfind("this is not JSON", 0), 0u);
}

// Half of a surrogate pair has no value to compare, but does no harm to other fields.
TEST_F(Json, TakesHalfASurrogatePairUnlessItIsAskedFor) {
  for (const char* half : {R"("\ud800")", R"("\udc00")", R"("x\uD83D\u0041")",
                           R"("\ud83d\ud83d\ude00")", R"(["\udfff"])", R"({"\ud800":1})"}) {
    EXPECT_EQ(value(half).kind, Kind::torn) << half;
  }
  expect(R"("\ud83d\ude00")", Kind::string, "\xf0\x9f\x98\x80");
  expect(R"("\\ud800")", Kind::string, "\\ud800");
  ASSERT_EQ(problem(R"({"half":"\ud800","pair":"\ud83d\ude00","n":1e400})"), "");
  EXPECT_EQ(at("/pair").text, "\xf0\x9f\x98\x80");
  EXPECT_EQ(at("/n").text, "1e400");
  for (const char* broken : {R"("\ud8")", R"("\u")", R"("\ud800)", R"("\x")", "\"\\ud800\n\""}) {
    EXPECT_EQ(problem(broken).rfind("this is not JSON", 0), 0u) << broken;
  }
}

TEST_F(Json, SaysWhenItIsNestedTooDeep) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + "1e400" + std::string(depth, ']');
  };
  EXPECT_EQ(problem(nested(JsonReader::kMostDepth)), "");
  EXPECT_EQ(problem(nested(JsonReader::kMostDepth + 1)),
            "this JSON is nested too deep; allowed: 1023 levels");
}

// --- beside Python

// Texts by the grammar, some of them spoiled. They are made of few different pieces, so that
// spoiled ones are near to sound ones.
class Texts {
 public:
  explicit Texts(std::uint64_t seed) : random_(seed) {}

  std::string next() {
    std::string text =
        "{" + blank() + "\"k\"" + blank() + ":" + value(3) + ",\"x\":" + value(2) + "}";
    for (std::uint64_t n = random_.below(3); n > 0; --n) spoil(text);
    return text;
  }

 private:
  template <std::size_t N>
  std::string one_of(const char* const (&texts)[N]) {
    return texts[random_.below(N)];
  }
  std::string blank() { return one_of({"", "", "", " ", "\t", "\r "}); }

  std::string value(int depth) {
    const std::uint64_t kind = random_.below(depth > 0 ? 7 : 5);
    const std::string inside = depth > 0 ? value(depth - 1) : "";
    switch (kind) {
      case 0:
        return one_of({"true", "false", "null"});
      case 1:
      case 2:
        return string();
      case 5:
        return "[" + blank() + inside + blank() + "," + value(depth - 1) + "]";
      case 6:
        return "{" + string() + ":" + inside + "}";
      default:
        return number();
    }
  }

  std::string digits(std::uint64_t most) {
    std::string text;
    for (std::uint64_t n = random_.below(most + 1); n > 0; --n)
      text += one_of({"0", "1", "9", "7"});
    return text;
  }

  std::string number() {
    std::string text = one_of({"", "", "-"}) + one_of({"0", "1", "9", "18446744073709551615"});
    if (text.back() != '0') text += digits(25);
    if (random_.below(4) == 0) text += "." + one_of({"0", "5", "25"}) + digits(25);
    if (random_.below(4) == 0)
      text += one_of({"e", "E", "e+", "E-"}) + one_of({"0", "5", "400", "07"});
    return text;
  }

  std::string string() {
    std::string text = "\"";
    for (std::uint64_t n = random_.below(4); n > 0; --n) {
      text += one_of({"a", "7", "1e400", "\\n", "\\\"", "\\\\", "\\u0041", "\\ud800", "\\udc00",
                      "\\ud83d\\ude00", "\xc3\xa9", "\\/", "\xf0\x9f\x98\x80", "\xef\xbf\xbd"});
    }
    return text + "\"";
  }

  void spoil(std::string& text) {
    const std::size_t at = random_.below(text.size());
    switch (random_.below(4)) {
      case 0:
        text.erase(at, 1);
        break;
      case 1:
        text.insert(at,
                    one_of({"0", "1", "-", "+", ".", "e", "E",    "\"",   "\\",           "u", ",",
                            ":", "[", "]", "{", "}", " ", "\x01", "\xff", "\xed\xa0\x80", "N"}));
        break;
      case 2:
        text.resize(at + 1);
        break;
      default:
        break;
    }
  }

  Random random_;
};

constexpr const char* kOracle = R"(
import json, sys
sys.set_int_max_str_digits(0)
def refuse(word): raise ValueError(word)
def told(value):
    if isinstance(value, bool) or value is None: return 'other'
    if isinstance(value, int): return 'whole %d' % value
    if isinstance(value, str): return 'string ' + value.encode().hex()
    json.dumps(value, ensure_ascii=False).encode()
    return 'other'
def first(pairs):
    found = {}
    for name, value in pairs: found.setdefault(name, value)
    return found
for line in sys.stdin:
    try:
        document = json.loads(bytes.fromhex(line).decode(), parse_constant=refuse,
                              object_pairs_hook=first)
    except ValueError:
        print('no')
        continue
    try:
        print(told(document['k']) if isinstance(document, dict) and 'k' in document else 'missing')
    except UnicodeEncodeError:
        print('torn')
)";

std::string hex(std::string_view bytes) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += {kHex[byte / 16], kHex[byte % 16]};
  }
  return out;
}

TEST_F(Json, IsWhatPythonTakesForJson) {
  constexpr int kTexts = 20'000;
  constexpr std::uint64_t kSeed = 1;
  Texts texts(kSeed);
  std::vector<std::string> all;
  std::string input;
  for (int i = 0; i < kTexts; ++i) {
    all.push_back(texts.next());
    input += hex(all.back()) + '\n';
  }
  const Outcome oracle = run({.command = {"/usr/bin/python3", "-c", kOracle}, .input = input});
  ASSERT_EQ(oracle.status, 0) << oracle.err;
  const std::vector<std::string> answers = lines_of(oracle.out);
  ASSERT_EQ(answers.size(), all.size());
  int sound = 0, whole = 0, torn = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string expected = answers[i].substr(0, answers[i].size() - 1);
    std::string answer = "no";
    if (problem(all[i]).empty()) {
      const JsonReader::Value found = at("/k");
      answer = found.kind == Kind::missing  ? "missing"
               : found.kind == Kind::torn   ? "torn"
               : found.kind == Kind::whole  ? "whole " + std::string(found.text)
               : found.kind == Kind::string ? "string " + hex(found.text)
                                            : "other";
      ++sound;
      whole += found.kind == Kind::whole;
      torn += found.kind == Kind::torn;
    }
    // Beside a genuine U+FFFD, half of a surrogate pair cannot be told from it.
    if (answer == "torn" && expected != "torn" &&
        all[i].find("\xef\xbf\xbd") != std::string::npos) {
      continue;
    }
    ASSERT_EQ(answer, expected) << all[i];
  }
  EXPECT_GT(sound, kTexts / 5);
  EXPECT_LT(sound, kTexts * 4 / 5);
  EXPECT_GT(whole, kTexts / 20);
  EXPECT_GT(torn, kTexts / 100);
}

}  // namespace
}  // namespace semel::cli
