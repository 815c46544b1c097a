#!/usr/bin/env bash
# linkage_test.sh MODULE DOCUMENT COMPILED
#
# Reads semel.so, and fails if it exports more than its entry points. Where COMPILED is 'plain' (no
# sanitizer), it also fails if the module needs a library besides those of libc, or if a build on
# Debian 12 needs another version of glibc than DOCUMENT says.
set -u
module=$1 document=$2 compiled=$3
export LC_ALL=C
failures=0

fail() {
  echo "$module: $1" >&2
  failures=$((failures + 1))
}

exported=$(nm -D --defined-only "$module" | cut -d ' ' -f 3 | sort | tr '\n' ' ')
[ "$exported" = 'RedisModule_OnLoad ValkeyModule_OnLoad ' ] || fail "it exports $exported"
[ "$compiled" = plain ] || exit $((failures > 0))

# The functions for logarithms, and for variables of threads, are in files of their own, which belong
# to libc.
for library in $(readelf -dW "$module" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
  case $library in
    libc.so.6 | libm.so.6 | ld-linux*.so.*) ;;
    *) fail "it needs $library" ;;
  esac
done

glibc=$(readelf -VW "$module" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1 | sed 's/GLIBC_//')
echo "It needs glibc $glibc."
if [ "$(. /etc/os-release && echo "$ID-${VERSION_ID:-}")" = debian-12 ]; then
  grep -q "glibc $glibc or later" "$document" || fail "$document does not say 'glibc $glibc or later'"
fi
exit $((failures > 0))
