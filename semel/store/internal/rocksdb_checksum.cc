#include "semel/store/internal/rocksdb_checksum.h"

#include <rocksdb/file_checksum.h>

namespace semel::store_internal {

RunningCrc32c::RunningCrc32c() {
  static const auto factory = rocksdb::GetFileChecksumGenCrc32cFactory();
  generator_ = factory->CreateFileChecksumGenerator({});
}

RunningCrc32c::~RunningCrc32c() = default;

void RunningCrc32c::add(ByteView bytes) {
  generator_->Update(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::uint32_t RunningCrc32c::value() {
  generator_->Finalize();
  std::uint32_t sum = 0;
  for (const char byte : generator_->GetChecksum()) {  // the highest byte first
    sum = sum << 8 | static_cast<std::uint8_t>(byte);
  }
  return sum;
}

}  // namespace semel::store_internal
