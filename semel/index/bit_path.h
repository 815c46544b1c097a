// BitPath: a node of the trie, named by the bits that all keys below it begin with.
//
// A key is read as nine bits for each byte: a 1 (a byte follows), then the byte with its highest
// bit first. A 0 marks the end. So no key is a prefix of another, the order of the bits is the
// order of the keys, and any two keys differ at some bit. The keys below a node form a range: see
// range().
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "semel/core/api.h"
#include "semel/store/key_range.h"

namespace semel {

class SEMEL_API BitPath {
 public:
  BitPath() = default;  // the root
  // Returns all bits of a key with its end: the node that holds this key alone.
  static BitPath of_key(std::string_view key);

  std::size_t size() const { return size_; }  // in bits
  bool bit(std::size_t i) const { return (bits_[i / 8] >> (7 - i % 8) & 1) != 0; }
  void push(bool bit);
  // Appends the first `size` of these bits, packed as in bytes().
  // REQUIRES: bits.size() == (size + 7) / 8.
  void append(std::string_view bits, std::size_t size);
  void truncate(std::size_t size);  // REQUIRES: size <= size()

  // Returns true if every key below `other` is below this node.
  bool is_prefix_of(const BitPath& other) const;
  bool is_prefix_of_key(std::string_view key) const;
  // REQUIRES: possible().
  KeyRange range() const;
  std::string first_key() const;  // range().first

  // Returns the bits, padded with zeros to whole bytes.
  std::string_view bytes() const { return bits_; }
  // Reads `size` bits and clears the padding. REQUIRES: bits.size() == (size + 7) / 8.
  static BitPath from_bytes(std::string_view bits, std::size_t size);
  // Returns false for bits that no key begins with: bits after the 0 that ends a key.
  bool possible() const;

  bool operator==(const BitPath&) const = default;
  // Orders nodes like the keys below them. A node comes before the nodes below it.
  std::strong_ordering operator<=>(const BitPath& other) const;

 private:
  std::string bits_;
  std::size_t size_ = 0;
};

// These return the number of leading bits that both have in common.
SEMEL_API std::size_t common_bits(const BitPath& a, const BitPath& b);
// Bits that lie somewhere else, packed as in BitPath::bytes().
struct PackedBits {
  std::string_view bytes;
  std::size_t size = 0;
};
SEMEL_API std::size_t common_bits(PackedBits a, PackedBits b);
// Compares two keys, each read as nine bits a byte. Equal keys have all their bits in common.
SEMEL_API std::size_t common_bits(std::string_view a, std::string_view b);

}  // namespace semel
