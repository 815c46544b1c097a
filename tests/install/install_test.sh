#!/bin/sh
# An installation serves an outside project, through CMake and through pkg-config: under a PREFIX,
# below a DESTDIR, and after it was moved; with the static library and with the shared one. It brings
# the public headers, and nothing else.
#
#   install_test.sh CMAKE GENERATOR COMPILER BUILD LIBDIR VERSION
set -eu
cmake=$1 generator=$2 compiler=$3 build=$4 libdir=$5 version=$6
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "install_test: $1" >&2
  exit 1
}

# Shows the output of a command only if it fails.
quietly() {
  "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; fail "failed: $*"; }
}

# needs PROGRAM LIBRARY: the program is linked against this shared library.
needs() {
  readelf -d "$1" | grep -q "NEEDED.*\[$2"
}

# loads MODULE: a server takes the module as it is installed. Servers refuse a file that may not be
# executed.
loads() {
  [ -f "$1" ] || return 0
  redis-server --port 0 --unixsocket "$work/socket" --dir "$work" --save '' --loadmodule "$1" \
    >"$work/server.log" 2>&1 &
  server=$!
  tries=100
  until redis-cli -s "$work/socket" BF.ADD seen alice >"$work/answer" 2>&1; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] && kill -0 $server 2>/dev/null ||
      { kill $server 2>/dev/null; cat "$work/server.log" >&2; fail "$1 does not load"; }
    sleep 0.1
  done
  redis-cli -s "$work/socket" SHUTDOWN NOSAVE >/dev/null 2>&1 || true
  wait $server || true
  grep -qx 1 "$work/answer" || fail "$1: BF.ADD answers $(cat "$work/answer")"
}

# works_in PREFIX: the installation there can be found and used.
works_in() {
  prefix=$1 outside=$work/outside
  rm -rf "$outside"
  mkdir "$outside"

  "$prefix/bin/semel" --version | grep -qF "$version" || fail "$prefix: semel --version"
  [ -f "$prefix/share/man/man1/semel.1" ] || fail "$prefix: no manual"
  bash -n "$prefix/share/bash-completion/completions/semel" || fail "$prefix: no completion"

  quietly "$cmake" -S "$here/outside" -B "$outside/build" -G "$generator" \
    -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix"
  grep -qF "semel_DIR:PATH=$prefix/" "$outside/build/CMakeCache.txt" ||
    fail "$prefix: find_package took another semel"
  quietly "$cmake" --build "$outside/build"
  for program in outside outside_shared outside_rocksdb outside_rocksdb_shared \
      every_class_semel every_class_shared; do
    quietly "$outside/build/$program"
  done
  needs "$outside/build/outside_shared" libsemel.so.0.1 || fail "$prefix: semel::shared is not shared"
  needs "$outside/build/outside_rocksdb_shared" libsemel_rocksdb.so.0.1 ||
    fail "$prefix: semel::rocksdb_shared is not shared"
  ! needs "$outside/build/outside" libsemel.so || fail "$prefix: semel::semel is not static"

  loads "$prefix/$libdir/semel/semel.so"

  export PKG_CONFIG_PATH="$prefix/$libdir/pkgconfig"
  [ "$(pkg-config --modversion semel)" = "$version" ] || fail "$prefix: pkg-config --modversion"
  quietly "$compiler" -std=c++20 "$here/outside/outside.cc" -o "$outside/by_pkg_config" \
    $(pkg-config --cflags --libs semel)
  quietly env LD_LIBRARY_PATH="$prefix/$libdir" "$outside/by_pkg_config"
  quietly "$compiler" -std=c++20 "$here/outside/outside_rocksdb.cc" -o "$outside/rocksdb_by_pkg_config" \
    $(pkg-config --cflags --libs semel-rocksdb)
  quietly env LD_LIBRARY_PATH="$prefix/$libdir" "$outside/rocksdb_by_pkg_config"
}

quietly "$cmake" --install "$build" --prefix "$work/first"
works_in "$work/first"
! grep -rF "$work" "$work/first/$libdir/cmake" "$work/first/$libdir/pkgconfig" ||
  fail "the files above name the place of the installation"
mv "$work/first" "$work/moved"
works_in "$work/moved"

quietly env DESTDIR="$work/destdir" "$cmake" --install "$build" --prefix /usr/local
works_in "$work/destdir/usr/local"

# Every class that the shared library exports is used in outside/every_class.cc, but for those of
# RocksDB.
headers=$(sed -n 's/^  //p' "$here/../../cmake/SemelHeaders.cmake" | grep -vE 'rocksdb|tally_directory')
for class in $(cd "$here/../.." && sed -nE 's/^(class|struct) SEMEL_API (\[\[[a-z]+\]\] )?([A-Za-z0-9_]+).*/\3/p' $headers); do
  [ "$class" = SeriesBase ] || grep -qE "::$class[,<>]" "$here/outside/every_class.cc" ||
    fail "outside/every_class.cc does not use $class"
done

# The headers are those of cmake/SemelHeaders.cmake. Each compiles alone against the installation.
sed -n 's/^  //p' "$here/../../cmake/SemelHeaders.cmake" | sort >"$work/listed"
cd "$work/moved/include"
find . -type f | sed 's|^\./||' | sort >"$work/installed"
diff "$work/listed" "$work/installed" >&2 || fail "not the headers that cmake/SemelHeaders.cmake lists"
for header in $(cat "$work/listed"); do
  echo "#include \"$header\"" >"$work/alone.cc"
  quietly "$compiler" -std=c++20 -Wall -Wextra -Werror -fsyntax-only -I. "$work/alone.cc"
done
