// BitPath: a node of the trie, named by the bits that all keys below it begin with.
//
// Bits      A key is read as nine bits for each byte: a 1 (there is a byte), then the byte, its
//           highest bit first; and a 0 at the end. So no key is the beginning of another, the order
//           of the bits is the order of the keys, and any two keys part at some bit.
// Range     The keys below a node are a range: see range().
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "semel/store/key_range.h"

namespace semel {

class BitPath {
 public:
  BitPath() = default;  // the root
  // All bits of a key, its end included: the node of this key alone.
  static BitPath of_key(std::string_view key);

  std::size_t size() const { return size_; }  // in bits
  bool bit(std::size_t i) const { return (bits_[i / 8] >> (7 - i % 8) & 1) != 0; }
  void push(bool bit);
  // The first `size` of these bits, packed as in bytes(). REQUIRES: bits.size() == (size + 7) / 8.
  void append(std::string_view bits, std::size_t size);
  void truncate(std::size_t size);  // REQUIRES: size <= size()

  // True if every key below `other` is below this.
  bool is_prefix_of(const BitPath& other) const;
  bool is_prefix_of_key(std::string_view key) const;
  // REQUIRES: possible().
  KeyRange range() const;
  std::string first_key() const;  // range().first

  // The bits, padded with zeros to whole bytes.
  std::string_view bytes() const { return bits_; }
  // REQUIRES: bits.size() == (size + 7) / 8. Bits beyond `size` are cleared.
  static BitPath from_bytes(std::string_view bits, std::size_t size);
  // False for bits that no key begins with: something behind the 0 that ends a key.
  bool possible() const;

  bool operator==(const BitPath&) const = default;
  // The order of the keys below; a node comes before those below it.
  std::strong_ordering operator<=>(const BitPath& other) const;

 private:
  std::string bits_;
  std::size_t size_ = 0;
};

// How many bits the two have in common at their beginning.
std::size_t common_bits(const BitPath& a, const BitPath& b);
// The same of bits that lie somewhere else, packed as in BitPath::bytes().
struct PackedBits {
  std::string_view bytes;
  std::size_t size = 0;
};
std::size_t common_bits(PackedBits a, PackedBits b);
// The same of two keys, read as their nine bits a byte; for equal keys all bits.
std::size_t common_bits(std::string_view a, std::string_view b);

}  // namespace semel
