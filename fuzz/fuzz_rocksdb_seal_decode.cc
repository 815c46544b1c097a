#include "fuzz/decode.h"
#include "semel/store/internal/rocksdb_checksum.h"
#include "semel/store/internal/rocksdb_seal.h"

// Its checksum is another one than that of the other formats.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  semel::decode_refuses_or_round_trips<semel::RocksSeal>({data, size});
  if (size < 4) return 0;
  semel::Bytes repaired(data, data + size - 4);
  semel::Writer(repaired).u32(semel::crc32c(repaired));
  semel::decode_refuses_or_round_trips<semel::RocksSeal>(repaired);
  return 0;
}
