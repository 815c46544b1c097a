#include "cli/chunk_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "cli/commands.h"
#include "cli/compression.h"

namespace semel::cli {

void Buffer::grow(std::size_t capacity, std::size_t used) {
  if (capacity <= capacity_) return;
  std::unique_ptr<char[]> larger(new char[capacity + kPadding]);
  std::memset(larger.get() + capacity, 0, kPadding);
  if (used > 0) std::memcpy(larger.get(), bytes_.get(), used);
  bytes_ = std::move(larger);
  capacity_ = capacity;
}

ChunkReader::ChunkReader(Plan plan, std::function<bool(int fd)> ready,
                         std::function<void(const std::string&)> complain)
    : plan_(std::move(plan)), ready_(std::move(ready)), complain_(std::move(complain)) {}

bool ChunkReader::next(Chunk& chunk) {
  while (!stopped_ && (open_ || open_next())) {
    if (!fill(chunk)) continue;
    chunk.header.clear();
    if (expects_header_ && !take_header(chunk)) continue;
    if (chunk.size == 0 && chunk.header.empty()) continue;
    chunk.header_lines = std::exchange(header_lines_, 0);
    chunk.number = chunks_++;
    chunk.input = inputs_opened_ - 1;
    chunk.columns = columns_;
    return true;
  }
  return false;
}

bool ChunkReader::open_next() {
  if (inputs_opened_ == plan_.inputs.size()) return false;
  const std::string& path = plan_.inputs[inputs_opened_++];
  const bool standard = path == "-";
  name_ = input_name(path);
  std::error_code error;
  file_ = standard ? File::borrow(STDIN_FILENO) : File::open_to_read(path, error);
  open_ = true;
  ended_ = false;
  beginning_seen_ = false;
  rest_.clear();
  header_lines_ = 0;
  expects_header_ = plan_.has_header;
  if (error) {
    fail(cannot("read", name_, error));
  } else if (!plan_.has_header) {
    auto columns = find_columns(plan_.syntax, plan_.questions, std::nullopt);
    if (columns) columns_ = std::make_shared<const Columns>(*std::move(columns));
    if (!columns) fail(columns.error().message());
  }
  return true;
}

void ChunkReader::fail(const std::string& text) {
  complain_(text);
  failed_ = true;
  open_ = false;
}

bool ChunkReader::fill(Chunk& chunk) {
  if (!open_) return false;
  std::size_t used = rest_.size();
  chunk.buffer.grow(std::max(plan_.chunk_bytes, 2 * used), 0);
  std::memcpy(chunk.buffer.data(), rest_.data(), used);
  rest_.clear();
  CutProgress progress;
  for (;;) {
    const std::string_view bytes(chunk.buffer.data(), used);
    if (!see_beginning(bytes)) return false;
    chunk.size = beginning_seen_ ? whole_records(plan_.syntax, bytes, ended_, progress) : 0;
    if (chunk.size > 0) {
      rest_ = bytes.substr(chunk.size);
      return true;
    }
    if (ended_) {
      open_ = false;
      return false;
    }
    if (used == chunk.buffer.capacity()) chunk.buffer.grow(2 * used, used);
    if (!ready_(file_.fd())) {
      stopped_ = true;
      return false;
    }
    std::size_t got = 0;
    const std::error_code error =
        read_some(file_.fd(), chunk.buffer.data() + used, chunk.buffer.capacity() - used, got);
    used += got;
    ended_ = got == 0;
    // The bytes that came before the error are still good.
    if (error) fail(cannot("read", name_, error));
    if (error && used == 0) return false;
  }
}

bool ChunkReader::see_beginning(std::string_view bytes) {
  if (beginning_seen_ || (!ended_ && may_become_compressed(bytes))) return true;
  beginning_seen_ = true;
  const Compression compression = compression_of(bytes);
  if (!compression) return true;
  fail(refused_compression(compression, plan_.inputs[inputs_opened_ - 1], plan_.command));
  return false;
}

Result<void> ChunkReader::compare_header(const std::vector<std::string>& names) const {
  if (first_header_.input.empty() || names == first_header_.names) return {};
  std::string text = "the header of " + name_ + " is not that of " + first_header_.input + ": ";
  const auto [here, there] = std::mismatch(names.begin(), names.end(), first_header_.names.begin(),
                                           first_header_.names.end());
  if (here == names.end() || there == first_header_.names.end()) {
    return Error{Errc::mismatch, text + "it has " + std::to_string(names.size()) +
                                     " columns and not " +
                                     std::to_string(first_header_.names.size())};
  }
  return Error{Errc::mismatch, text + "column " + std::to_string(here - names.begin() + 1) +
                                   " is " + quoted(*here) + " and not " + quoted(*there)};
}

bool ChunkReader::take_header(Chunk& chunk) {
  const auto taken = read_header(chunk);
  if (!taken) fail(taken.error().message());
  return taken.has_value();
}

Result<void> ChunkReader::read_header(Chunk& chunk) {
  const Cut cut = cut_record(plan_.syntax, chunk.text(), true);
  const std::string header(chunk.text().substr(0, cut.size));
  std::vector<std::string> names = names_in(plan_.syntax, header);
  SEMEL_TRY(compare_header(names));
  auto columns = find_columns(plan_.syntax, plan_.questions, header);
  if (!columns) {
    return Error{Errc::invalid, "the header of " + name_ + ' ' + columns.error().message()};
  }
  columns_ = std::make_shared<const Columns>(*std::move(columns));
  expects_header_ = false;
  header_lines_ = cut.lines;
  if (first_header_.input.empty()) {
    chunk.header = header;
    first_header_ = {name_, std::move(names)};
  }
  chunk.size -= cut.size;
  std::memmove(chunk.buffer.data(), chunk.buffer.data() + cut.size, chunk.size);
  return {};
}

}  // namespace semel::cli
