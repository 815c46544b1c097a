#include "semel/sync/internal/path_codec.h"

#include <cstdint>
#include <utility>

namespace semel::sync_internal {

void PathWriter::add(const BitPath& path) {
  const std::size_t shared = common_bits(last_, path);
  bits_.gamma(last_.size() - shared + 1);
  put_rest(path, shared);
  last_ = path;
}

void PathWriter::add_below(const BitPath& path) { put_rest(path, last_.size()); }

void PathWriter::put_rest(const BitPath& path, std::size_t from) {
  bits_.gamma(path.size() - from + 1);
  for (std::size_t i = from; i < path.size(); ++i) bits_.put_bit(path.bit(i));
}

std::optional<BitPath> PathReader::take() {
  const std::uint64_t back = bits_.gamma();
  if (!bits_.ok() || back - 1 > last_.size()) return std::nullopt;
  BitPath path = last_;
  path.truncate(path.size() - (back - 1));
  std::optional<BitPath> taken = take_rest(std::move(path));
  if (taken) last_ = *taken;
  return taken;
}

std::optional<BitPath> PathReader::take_below() { return take_rest(last_); }

std::optional<BitPath> PathReader::take_rest(BitPath path) {
  const std::uint64_t rest = bits_.gamma();
  if (!bits_.ok() || rest - 1 > kMostPathBits - path.size()) return std::nullopt;
  for (std::uint64_t i = 0; i < rest - 1 && bits_.ok(); ++i) path.push(bits_.get_bit());
  bytes_ += path.bytes().size() + sizeof path;
  if (!bits_.ok() || bytes_ > kMostPathBytes || !path.possible()) return std::nullopt;
  return path;
}

void encode_paths(std::span<const BitPath> paths, Writer& out) {
  Bytes coded;
  PathWriter writer(coded);
  for (const BitPath& path : paths) writer.add(path);
  out.varint(paths.size());
  out.varint(coded.size());
  out.bytes(coded);
}

Result<std::vector<BitPath>> decode_paths(Reader& in) {
  const Error kBadPath{Errc::corrupt, "sync frame: not a node"};
  const std::uint64_t count = in.varint();
  const ByteView coded = in.view(in.varint());
  if (!in.ok() || count > coded.size() * 4) return kBadPath;  // two bits each at least
  PathReader reader(coded);
  std::vector<BitPath> paths;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::optional<BitPath> path = reader.take();
    if (!path) return kBadPath;
    if (!paths.empty() && (!(paths.back() < *path) || paths.back().is_prefix_of(*path))) {
      return kBadPath;
    }
    paths.push_back(std::move(*path));
  }
  if (!reader.bits().at_end()) return kBadPath;
  return paths;
}

}  // namespace semel::sync_internal
