#!/bin/sh
# A shared library exports what the public headers declare, and nothing else: no internals, and no
# templates of other libraries that the compiler instantiated for us.
#
#   symbols_test.sh ROOT LIBRARY...
set -eu
root=$1
shift
headers=$(sed -n '/^set(semel_public_headers/,/^)/p' "$root/cmake/SemelHeaders.cmake" | grep '^  ')

# The names that SEMEL_API marks: classes, and functions outside classes.
declared=$(cd "$root" && cat $headers | grep -E '^(class|struct) SEMEL_API |^SEMEL_API ' |
  sed -E 's/^(class|struct) SEMEL_API (\[\[[a-z]+\]\] )?([A-Za-z0-9_]+).*/\3/
          s/^SEMEL_API [^(]*[ &*]([A-Za-z0-9_]+|operator[^ (]+)\(.*/\1/' | sort -u | tr '\n' ' ')
[ -n "$declared" ] || { echo "symbols_test: the public headers declare nothing" >&2; exit 1; }

# Prints the names that do not belong. Reads the output of `nm -D --defined-only -C`.
not_public() {
  awk -v declared="$declared" '
    BEGIN { n = split(declared, names, " "); for (i = 1; i <= n; ++i) public[names[i]] = 1 }
    {
      whole = $0
      sub(/^[0-9a-f]+ [A-Za-z] /, "")
      sub(/^(typeinfo name|typeinfo|vtable|VTT|virtual thunk|non-virtual thunk) (for|to) /, "")
      name = $0
      sub(/[(<\[].*/, "", name)  # without parameters
      first = ""
      if (name ~ /^semel::/ && name !~ /internal/ && name !~ /(^|::)Body(::|$)/) {
        parts = split(name, part, "::")
        for (i = 2; i <= parts && first == ""; ++i) if (part[i] in public) first = part[i]
      }
      if (first == "") print whole
    }'
}

# Checks that the check finds what it should.
for planted in '1 T semel::window_internal::LaneTable::advance(long)' '1 T semel::TallyStore::Body::add()' \
               '1 W std::vector<semel::Digest>::reserve(unsigned long)' '1 T semel::forgotten(int)' \
               '1 V typeinfo for absl::Hidden' '1 T main'; do
  [ -n "$(echo "$planted" | not_public)" ] || { echo "symbols_test: lets pass: $planted" >&2; exit 1; }
done

for library; do
  exported=$(nm -D --defined-only -C "$library")
  [ "$(echo "$exported" | wc -l)" -ge 10 ] || { echo "symbols_test: $library exports too little" >&2; exit 1; }
  strays=$(echo "$exported" | not_public)
  [ -z "$strays" ] || { printf 'symbols_test: %s exports what is not public:\n%s\n' "$library" "$strays" >&2; exit 1; }
done
