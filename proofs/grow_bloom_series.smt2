; Series of grow-only Bloom filters (specifications 5 and 6): the laws.

(include "theory/grow_bloom.smt2")
(include "theory/series.smt2")
(include "theory/laws.smt2")

(declare-const p Place)
(declare-const e Element)
(declare-const i Index)

(define-fun contains ((a State) (b Element)) Bool
  (exists ((q Place)) (filter_contains q (at a q) b)))

; Lines 3 to 11 of specification 6, at the place that the site chose.
(define-fun add ((a State) (q Place) (b Element)) State
  (ite (contains a b) a (put a q (filter_add q (at a q) b))))

(push)
(echo "possible: two states, neither below the other, and a third below neither")
(assert (not (leq x y)))
(assert (not (leq y x)))
(assert (not (leq z x)))
(assert (not (leq z y)))
(check-sat)
(pop)

(push)
(echo "proved: add inflates")
(assert (not (leq x (add x p e))))
(check-sat)
(pop)

(push)
(echo "proved: add is contained")
(assert (not (contains (add x p e) e)))
(check-sat)
(pop)

(push)
(echo "proved: contains is monotone")
(assert (leq x y))
(assert (contains x e))
(assert (not (contains y e)))
(check-sat)
(pop)

(push)
(echo "proved: equal states contain the same elements")
(assert (equal x y))
(assert (contains x e))
(assert (not (contains y e)))
(check-sat)
(pop)

(push)
(echo "proved: expand changes no state")
(assert (= (at x p) filter_bottom))
(assert (not (equal x (expand x p))))
(check-sat)
(pop)

(push)
(echo "proved: shrink changes no state")
(assert (filter_equal p (at x p) filter_bottom))
(assert (not (equal x (drop x p))))
(check-sat)
(pop)

(push)
(echo "proved: merge with the delta of an add is the add")
(assert (not (contains x e)))
(assert (not (equal (merge x (put bottom p (filter_add p filter_bottom e))) (add x p e))))
(check-sat)
(pop)

; Planted: merge by the shorter list.
(push)
(echo "refuted: a merge by the shorter list is an upper bound")
(assert (not (leq x (merge_by_the_shorter x y))))
(check-sat)
(pop)

; Planted: a full filter is replaced by an empty one, not followed by it.
(push)
(echo "refuted: expand changes no state at a place that is taken")
(assert (not (equal x (expand x p))))
(check-sat)
(pop)
