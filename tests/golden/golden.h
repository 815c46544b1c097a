// Golden files: bytes of every released format, which every later release must read, and write
// again unchanged. A file is written once, by a run with SEMEL_WRITE_GOLDEN set that finds none; it
// is never overwritten. Tests run in the root of the repository.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "semel/core/codec.h"

namespace semel {

// A GoldenCase gives: `Type` with encode, decode and ==; `kFile`, a name below tests/golden/data;
// and `static Type make()`, the object that the file holds.
template <class GoldenCase>
class Golden : public ::testing::Test {};

TYPED_TEST_SUITE_P(Golden);

TYPED_TEST_P(Golden, IsReadAndWrittenUnchanged) {
  const std::string path = std::string("tests/golden/data/") + TypeParam::kFile;
  const auto object = TypeParam::make();
  Bytes bytes;
  object.encode(bytes);
  if (std::getenv("SEMEL_WRITE_GOLDEN") != nullptr && !std::filesystem::exists(path)) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path;
  const Bytes golden((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_EQ(bytes, golden);
  const auto read = TypeParam::Type::decode(golden);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(*read, object);
}

REGISTER_TYPED_TEST_SUITE_P(Golden, IsReadAndWrittenUnchanged);

}  // namespace semel
