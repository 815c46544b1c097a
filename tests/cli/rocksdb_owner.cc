// rocksdb_owner: a program that owns a RocksDB directory and knows nothing of Semel.
//
// Use       rocksdb_owner DIRECTORY
//           It reads one command a line from standard input and answers each with "ok\n":
//             fill N            writes records 0 to N-1
//             update N COUNT R  gives COUNT random records of the first N the value of round R
//             ingest N COUNT R  does the same through an external table file
//             compact           compacts everything
//           It closes the directory and exits with 0 when its input ends.
#include <rocksdb/db.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/write_batch.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include "semel/core/internal/arithmetic.h"
#include "semel/core/internal/random.h"

namespace {

using rocksdb::Status;

// Records have 20 bytes: a key of 12 in no order, and a value of 8.
std::string hexadecimal(std::uint64_t number, int digits) {
  std::string text(static_cast<std::size_t>(digits) + 1, '\0');
  std::snprintf(text.data(), text.size(), "%0*llx", digits,
                static_cast<unsigned long long>(number));
  text.pop_back();
  return text;
}
std::string key(std::uint64_t n) { return hexadecimal(semel::mix(n + 1) >> 16, 12); }
std::string value(std::uint64_t round) { return hexadecimal(round & 0xffffffff, 8); }

std::set<std::string> some_keys(std::uint64_t records, std::uint64_t count, std::uint64_t round) {
  semel::Random random(round);
  std::set<std::string> keys;
  while (keys.size() < count) keys.insert(key(random.below(records)));
  return keys;
}

class Owner {
 public:
  explicit Owner(std::string directory) : directory_(std::move(directory)) {}

  Status open() {
    rocksdb::Options options;
    options.create_if_missing = true;
    rocksdb::DB* opened = nullptr;
    Status status = rocksdb::DB::Open(options, directory_, &opened);
    db_.reset(opened);
    return status;
  }
  Status close() { return db_->Close(); }

  Status obey(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    std::uint64_t records = 0, count = 0, round = 0;
    words >> verb >> records >> count >> round;
    if (verb == "fill") return fill(records);
    if (verb == "update") return update(records, count, round);
    if (verb == "ingest") return ingest(records, count, round);
    if (verb == "compact") return db_->CompactRange({}, nullptr, nullptr);
    return Status::InvalidArgument("unknown command");
  }

 private:
  Status fill(std::uint64_t records) {
    Status status;
    for (std::uint64_t n = 0; n < records && status.ok();) {
      rocksdb::WriteBatch batch;
      for (int i = 0; i < 1000 && n < records; ++i, ++n) {
        if (status.ok()) status = batch.Put(key(n), value(0));
      }
      if (status.ok()) status = db_->Write({}, &batch);
    }
    return status;
  }
  Status update(std::uint64_t records, std::uint64_t count, std::uint64_t round) {
    Status status;
    for (const std::string& each : some_keys(records, count, round)) {
      if (status.ok()) status = db_->Put({}, each, value(round));
    }
    return status;
  }
  Status ingest(std::uint64_t records, std::uint64_t count, std::uint64_t round) {
    const std::string file = directory_ + ".ingest.sst";
    rocksdb::SstFileWriter writer({}, {});
    Status status = writer.Open(file);
    for (const std::string& each : some_keys(records, count, round)) {
      if (status.ok()) status = writer.Put(each, value(round));
    }
    if (status.ok()) status = writer.Finish();
    if (status.ok()) status = db_->IngestExternalFile({file}, {});
    std::remove(file.c_str());
    return status;
  }

  std::string directory_;
  std::unique_ptr<rocksdb::DB> db_;
};

int failed(const Status& status) {
  std::cerr << "rocksdb_owner: " << status.ToString() << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Owner owner(argv[1]);
  if (const Status status = owner.open(); !status.ok()) return failed(status);
  for (std::string line; std::getline(std::cin, line);) {
    if (const Status status = owner.obey(line); !status.ok()) return failed(status);
    std::cout << "ok" << std::endl;
  }
  const Status closed = owner.close();
  return closed.ok() ? 0 : failed(closed);
}
