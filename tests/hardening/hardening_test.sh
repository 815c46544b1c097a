#!/usr/bin/env bash
# hardening_test.sh SOURCES COMPILER COMMAND MODULE LIBRARY..., in the folder of the build
#
# Reads the ELF files that are installed, and fails if a protection is missing. It is checked itself:
# a program that is built without them must be found wanting in each.
set -u
root=$1 compiler=$2 command=$3 module=$4
shift 4
export LC_ALL=C
failures=0

fail() {
  echo "$1: $2" >&2
  failures=$((failures + 1))
}

# Prints what is missing in a linked file, one word each.
missing() {
  local file=$1 dynamic segments symbols
  dynamic=$(readelf -dW "$file")
  segments=$(readelf -lW "$file")
  symbols=$(readelf --dyn-syms -W "$file")
  readelf -hW "$file" | grep -q 'Type: *DYN' || echo position-independent
  grep -q GNU_RELRO <<<"$segments" || echo relro
  grep -qE 'BIND_NOW|FLAGS_1.*NOW' <<<"$dynamic" || echo bind-now
  grep -q TEXTREL <<<"$dynamic" && echo no-text-relocations
  grep GNU_STACK <<<"$segments" | grep -q ' RW ' || echo stack-not-executable
  grep -q ' RWE ' <<<"$segments" && echo no-writable-code
  grep -q __stack_chk_fail <<<"$symbols" || echo stack-protector
  grep '_chk@' <<<"$symbols" | grep -qv __stack_chk_fail || echo fortify
}

# The marks of indirect branches and shadow stacks, or 'none'.
marks() { readelf -nW "$1" 2>/dev/null | grep -o 'IBT, SHSTK' | head -1; }

for file in "$command" "$module"; do
  for what in $(missing "$file"); do fail "$file" "lacks $what"; done
done
readelf -dW "$command" | grep -q 'FLAGS_1.*PIE' || fail "$command" "is no PIE"

# On x86-64 each of our objects has the mark of control-flow protection. The linked file has it only
# if the start files of the system have it too; those of Debian 12 do not.
if [ "$(uname -m)" = x86_64 ]; then
  for library in "$@"; do
    [ "${library##*.}" = a ] || continue
    objects=$(readelf -hW "$library" 2>/dev/null | grep -c 'ELF Header')
    marked=$(readelf -nW "$library" 2>/dev/null | grep -c 'IBT, SHSTK')
    [ "$objects" -gt 0 ] && [ "$objects" -eq "$marked" ] ||
      fail "$library" "$marked of $objects objects have the marks IBT and SHSTK"
  done
  if [ -n "$(marks "$("$compiler" -print-file-name=crti.o)")" ]; then
    for file in "$command" "$module"; do
      [ -n "$(marks "$file")" ] || fail "$file" "lacks the marks IBT and SHSTK"
    done
  fi
fi

# Flags that leave no mark in the file.
for flag in -fstack-clash-protection _FORTIFY_SOURCE; do
  for folder in semel client cli module; do
    without=$(grep '"command"' compile_commands.json | grep -E " -c $root/$folder/[^ ]*\.cc" |
              grep -vE '_test\.cc|document\.cc' | grep -vc -e "$flag")
    [ "$without" -eq 0 ] || fail "$folder" "$without files are compiled without $flag"
  done
done

# The checker: nothing of this may pass.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo 'int main() {}' >"$work/bare.cc"
"$compiler" -no-pie -fno-pie -fno-stack-protector -U_FORTIFY_SOURCE -Wl,-z,norelro,-z,lazy,-z,execstack \
  -o "$work/bare" "$work/bare.cc" || fail bare "cannot be compiled"
found=$(missing "$work/bare" | tr '\n' ' ')
expected='position-independent relro bind-now '
expected+='stack-not-executable no-writable-code stack-protector fortify '
[ "$found" = "$expected" ] || fail "the checker" "finds '$found' missing in a bare program"

exit $((failures > 0))
