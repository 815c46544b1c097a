; Version vectors: the laws, and that a vector stands for a set of dots without gaps.

(include "theory/version_vector.smt2")

(define-sort State () Vector)
(define-fun bottom () State ((as const State) 0))
(define-fun well_formed ((x State)) Bool (vector_well_formed x))
(define-fun equal ((x State) (y State)) Bool
  (forall ((s Int)) (= (select x s) (select y s))))
(define-fun leq ((x State) (y State)) Bool
  (forall ((s Int)) (<= (select x s) (select y s))))
(define-fun merge ((x State) (y State)) State (vector_merge x y))

(include "theory/laws.smt2")

(declare-const s Int)
(declare-const any Dot)

(push)
(echo "possible: two states, neither below the other, and a third below neither")
(assert (not (leq x y)))
(assert (not (leq y x)))
(assert (not (leq z x)))
(assert (not (leq z y)))
(check-sat)
(pop)

(push)
(echo "proved: the dots of a vector have no gaps")
(assert (not (closed (dots_of x))))
(check-sat)
(pop)

(push)
(echo "proved: the dots of a merge are the union of the dots")
(assert (not (= (select (dots_of (merge x y)) any)
                (or (select (dots_of x) any) (select (dots_of y) any)))))
(check-sat)
(pop)

(push)
(echo "proved: a smaller vector has fewer dots")
(assert (leq x y))
(assert (select (dots_of x) any))
(assert (not (select (dots_of y) any)))
(check-sat)
(pop)

(push)
(echo "proved: a vector with fewer dots is smaller")
(assert (forall ((d Dot)) (=> (select (dots_of x) d) (select (dots_of y) d))))
(assert (> (select x s) (select y s)))
; The instance that z3 does not guess: the last dot of the site s.
(assert (=> (select (dots_of x) (dot s (select x s))) (select (dots_of y) (dot s (select x s)))))
(check-sat)
(pop)

(push)
(echo "proved: the next dot is new")
(assert (select (dots_of x) (next_dot x s)))
(check-sat)
(pop)

(push)
(echo "proved: advance adds the next dot and no other")
(assert (not (= (select (dots_of (advance x s)) any)
                (or (= any (next_dot x s)) (select (dots_of x) any)))))
(check-sat)
(pop)

(push)
(echo "proved: advance inflates")
(assert (not (leq x (advance x s))))
(check-sat)
(pop)

(push)
(echo "proved: advance keeps vectors well-formed")
(assert (not (well_formed (advance x s))))
(check-sat)
(pop)

(push)
(echo "proved: dots have a total order")
(declare-const c Dot)
(declare-const d Dot)
(declare-const f Dot)
(assert (not (and (or (dot_leq c d) (dot_leq d c))
                  (=> (dot_leq c d) (dot_leq d c) (= c d))
                  (=> (dot_leq c d) (dot_leq d f) (dot_leq c f)))))
(check-sat)
(pop)

; Planted: the lesser counter in place of the greater.
(define-fun merge_by_minimum ((v State) (w State)) State
  (lambda ((i Int)) (ite (<= (select v i) (select w i)) (select v i) (select w i))))

(push)
(echo "refuted: a merge by the minimum is an upper bound")
(assert (not (leq x (merge_by_minimum x y))))
(check-sat)
(pop)

; Planted: the sum, as of counters.
(define-fun merge_by_sum ((v State) (w State)) State
  (lambda ((i Int)) (+ (select v i) (select w i))))

(push)
(echo "refuted: a merge by the sum is idempotent")
(assert (not (equal (merge_by_sum x x) x)))
(check-sat)
(pop)

; Planted: the last counter of a site is given out again.
(push)
(echo "refuted: the last dot is new")
(assert (select (dots_of x) (dot s (select x s))))
(check-sat)
(pop)
