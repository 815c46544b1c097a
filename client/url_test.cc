// Urls: what is read, and what is refused.
#include "client/url.h"

#include <gtest/gtest.h>

namespace semel::client {
namespace {

TEST(Url, ReadsAHostAndFillsInTheRest) {
  const auto url = parse_url("redis://example.org");
  ASSERT_TRUE(url);
  ASSERT_EQ(url->addresses.size(), 1u);
  EXPECT_EQ(url->addresses[0], (Address{"example.org", 6379}));
  EXPECT_EQ(url->user, "");
  EXPECT_EQ(url->password, "");
  EXPECT_EQ(url->database, 0u);
}

TEST(Url, ReadsAllOfItsParts) {
  const auto url = parse_url("redis://ann:p%40ss%3a@a:1,[::1]:2,c/15");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->user, "ann");
  EXPECT_EQ(url->password, "p@ss:");
  EXPECT_EQ(url->database, 15u);
  const std::vector<Address> expected = {{"a", 1}, {"::1", 2}, {"c", 6379}};
  EXPECT_EQ(url->addresses, expected);
  EXPECT_EQ(url->addresses[1].text(), "[::1]:2");
  EXPECT_EQ(parse_url("redis://:secret@h")->password, "secret");
  EXPECT_EQ(parse_url("redis://h/")->database, 0u);
  EXPECT_EQ(parse_url("redis://:p@ss@h")->password, "p@ss");
}

TEST(Url, ReadsAUserWhosePasswordIsElsewhere) {
  const auto url = parse_url("redis://a%40n@h");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->user, "a@n");
  EXPECT_EQ(url->password, "");
}

TEST(Url, ShowsWhereItsPasswordIs) {
  EXPECT_EQ(password_in("redis://ann:p@ss:w@h:1/2"), "p@ss:w");
  EXPECT_EQ(password_in("redis://:x@h"), "x");
  for (const char* const none : {"redis://h:1", "redis://ann@h:1", "redis://h", "a:b@c", "", "@"}) {
    EXPECT_EQ(password_in(none), "") << none;
    EXPECT_EQ(without_password(none), none);
  }
  EXPECT_EQ(without_password("redis://ann:p@ss:w@h:1/2"), "redis://ann@h:1/2");
  EXPECT_EQ(without_password("redis+unix://:x@/s"), "redis+unix://@/s");
  EXPECT_EQ(without_password("redis://ann:@h"), "redis://ann@h");
}

TEST(Url, ReadsASocket) {
  const auto url = parse_url("redis+unix://:secret@/run/redis.sock");
  ASSERT_TRUE(url);
  ASSERT_EQ(url->addresses.size(), 1u);
  EXPECT_TRUE(url->addresses[0].unix_socket());
  EXPECT_EQ(url->addresses[0].text(), "/run/redis.sock");
  EXPECT_EQ(url->password, "secret");
}

TEST(Url, RefusesWhatIsNone) {
  for (const char* const text : {"",
                                 "redis:",
                                 "redis://",
                                 "http://h",
                                 "h:1",
                                 "redis://h:",
                                 "redis://h:0",
                                 "redis://h:65536",
                                 "redis://h:x",
                                 "redis://h,",
                                 "redis://,h",
                                 "redis://h/x",
                                 "redis://h/-1",
                                 "redis://h/1/2",
                                 "redis://h/4294967296",
                                 "redis://@h",
                                 "redis://:@h",
                                 "redis://ann:@h",
                                 "redis://a:%4@h",
                                 "redis://a:%zz@h",
                                 "redis://[::1",
                                 "redis://[::1]x",
                                 "redis://a b",
                                 "redis+unix://",
                                 "redis+unix://relative",
                                 "redis+unix:///"}) {
    const auto url = parse_url(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, Errc::invalid) << text;
    EXPECT_NE(url.error().message().find("redis://"), std::string::npos);
  }
}

TEST(Url, RefusesTlsAndSaysWhatToDo) {
  const auto url = parse_url("rediss://h");
  ASSERT_FALSE(url);
  EXPECT_EQ(url.error().code, Errc::unsupported);
  EXPECT_NE(url.error().message().find("TLS"), std::string::npos);
}

TEST(Address, ReadsWhatServersSay) {
  EXPECT_EQ(*parse_address("10.0.0.1:7000"), (Address{"10.0.0.1", 7000}));
  EXPECT_EQ(*parse_address("::1:7000"), (Address{"::1", 7000}));
  EXPECT_EQ(*parse_address("[::1]:7000"), (Address{"::1", 7000}));
  EXPECT_EQ(*parse_address(":7000"), (Address{"", 7000}));  // the host that was asked
  for (const char* const text : {"", "h", "h:", "h:0", "h:70000", "h:7x"}) {
    EXPECT_FALSE(parse_address(text)) << text;
  }
}

}  // namespace
}  // namespace semel::client
