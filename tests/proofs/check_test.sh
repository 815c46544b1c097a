#!/bin/sh
# proofs/check notices what would make a proof worthless, and errors planted in the
# specifications.
#
#   check_test.sh PROOFS
set -eu
proofs=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "check_test: $1" >&2
  cat "$work/log" >&2
  exit 1
}

# refuses WHAT TEXT: check fails on the file that stdin holds, and says TEXT.
refuses() {
  cat >"$work/claims.smt2"
  ! "$proofs/check" "$work/claims.smt2" >"$work/log" 2>&1 || fail "passed: $1"
  grep -qF "$2" "$work/log" || fail "$1: did not say '$2'"
}

# breaks FILE LAW THEORY SED: with THEORY changed by SED, LAW of FILE is no longer proved. z3
# finds a proof in a fraction of the time that it gets, and spends all of it where there is none.
breaks() {
  rm -rf "$work/copy"
  cp -r "$proofs" "$work/copy"
  { echo '(set-option :timeout 500)' && sed "$4" "$proofs/theory/$3"; } >"$work/copy/theory/$3"
  [ "$(sed "$4" "$proofs/theory/$3")" != "$(cat "$proofs/theory/$3")" ] || fail "no $4 in $3"
  ! "$work/copy/check" "$work/copy/$1.smt2" >"$work/log" 2>&1 || fail "$1 passed with $4"
  grep -qF "FAILED   $1: $2: should be proved, z3 says: " "$work/log" || fail "$1: not '$2' with $4"
}

proved='(echo "proved: p") (push) (assert false) (check-sat) (pop)'
possible='(echo "possible: q") (check-sat)'
refuted='(echo "refuted: r") (check-sat)'
laws='(include "theory/laws.smt2")'

# The laws of the least type that has any: two states, false below true.
least='(define-sort State () Bool)
(define-fun bottom () State false)
(define-fun well_formed ((x State)) Bool true)
(define-fun equal ((x State) (y State)) Bool (= x y))
(define-fun leq ((x State) (y State)) Bool (=> x y))
(define-fun merge ((x State) (y State)) State (or x y))'

printf '%s\n' "$least" "$laws" "$proved" "$possible" "$refuted" >"$work/least.smt2"
"$proofs/check" "$work/least.smt2" >"$work/log" 2>&1 || fail "the least type does not pass"
(cd "$work" && "$proofs/check" least.smt2) >"$work/log" 2>&1 || fail "a relative name does not pass"

printf '%s\n' "$least" "$laws" "$proved" "$refuted" |
  refuses "no vacuity check" "nothing shows that the axioms can be met"
printf '%s\n' "$least" "$laws" "$proved" "$possible" |
  refuses "no planted error" "no planted error is refuted"
printf '%s\n' "$proved" "$possible" "$refuted" |
  refuses "no laws" "does not include theory/laws.smt2"
printf '%s\n' "$least" "(assert false)" "$laws" "$possible" "$refuted" |
  refuses "contradictory axioms" "q: should be possible, z3 says: unsat"
printf '%s\n' "$least" "$laws" "$proved" "$possible" "$refuted" '(echo "proved: s") (check-sat)' |
  refuses "a law that does not hold" "s: should be proved, z3 says: sat"
printf '%s\n' "$least" "$laws" "$proved" "$possible" "$refuted" \
  '(declare-const a Int) (declare-const b Int) (declare-const c Int)' \
  '(assert (> a 2)) (assert (> b 2)) (assert (> c 2))' \
  '(assert (= (+ (* a a a) (* b b b)) (* c c c)))' \
  '(set-option :timeout 100) (echo "proved: s") (check-sat)' |
  refuses "a question that z3 cannot answer" "s: should be proved, z3 says: unknown"
printf '%s\n' "$least" "$laws" "$proved" "$possible" "$refuted" '(check-sat)' |
  refuses "a question without a claim" "z3 says: sat"
printf '%s\n' "$least" "$laws" "$proved" "$possible" "$refuted" '(echo "proved: s")' |
  refuses "a claim without a question" "s: no answer"
printf '%s\n' "$least" "$laws" "$proved" "$possible" "$refuted" '(assert nonsense)' |
  refuses "an error of z3" "z3 says: (error"

status=0
PATH=$work "$proofs/check" >"$work/log" 2>&1 || status=$?
[ $status -eq 2 ] && grep -qF 'z3 is missing' "$work/log" || fail "passed without z3"

breaks grow_bloom 'merge is an upper bound of its left side (4.4)' grow_bloom.smt2 \
  's/(or (select x i) (select y i))/(and (select x i) (select y i))/'
breaks grow_cuckoo 'merge is an upper bound of its right side (4.4)' grow_cuckoo.smt2 \
  's/(not (select x (dual p e)))/(not (select y (dual p e)))/'
breaks observed_cuckoo 'merge keeps a dot that both sides have, in whichever bucket' \
  observed_cuckoo.smt2 's/(and (select (table x) e) (select (table y) (dual p e)))/false/'
breaks observed_cuckoo_series 'merge is an upper bound of its right side (4.4)' \
  observed_cuckoo.smt2 's/(not (select (context y) (dot_of e)))/true/'
breaks grow_bloom_series 'add inflates' grow_bloom.smt2 \
  's/(or (select (bits p e) i) (select x i))/(select (bits p e) i)/'
breaks grow_cuckoo_series 'add is contained' grow_cuckoo.smt2 \
  's/(insert x (entry (first_bucket p e)/(take_out x (entry (first_bucket p e)/'
breaks product 'merge is commutative (4.6)' series.smt2 \
  's/(filter_merge p (at x p) (at y p))/(at x p)/'
breaks version_vector 'the dots of a vector have no gaps' version_vector.smt2 \
  's/(<= 1 (counter d))/(<= 0 (counter d))/'
