; Grow-only Bloom filter (specification 2): the laws.

(include "theory/grow_bloom.smt2")
(include "theory/single.smt2")
(include "theory/laws.smt2")

(declare-const e Element)

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
(assert (not (leq x (filter_add here x e))))
(check-sat)
(pop)

(push)
(echo "proved: add is contained")
(assert (not (filter_contains here (filter_add here x e) e)))
(check-sat)
(pop)

(push)
(echo "proved: contains is monotone")
(assert (leq x y))
(assert (filter_contains here x e))
(assert (not (filter_contains here y e)))
(check-sat)
(pop)

; A delta of an add is the filter that has only that element.
(push)
(echo "proved: merge with the delta of an add is the add")
(assert (not (equal (merge x (filter_add here bottom e)) (filter_add here x e))))
(check-sat)
(pop)

; Planted: intersection in place of union.
(define-fun merge_by_intersection ((a State) (b State)) State
  (lambda ((i Index)) (and (select a i) (select b i))))

(push)
(echo "refuted: a merge by intersection is an upper bound")
(assert (not (leq x (merge_by_intersection x y))))
(check-sat)
(pop)

; Planted: words combined with xor in place of or.
(define-fun merge_by_xor ((a State) (b State)) State
  (lambda ((i Index)) (xor (select a i) (select b i))))

(push)
(echo "refuted: a merge by exclusive or is idempotent")
(assert (not (equal (merge_by_xor x x) x)))
(check-sat)
(pop)

; Planted: one set bit is taken for the element.
(define-fun contains_by_one_bit ((a State) (b Element)) Bool
  (exists ((i Index)) (and (select (bits here b) i) (select a i))))

(push)
(echo "refuted: an element is contained when one of its bits is set")
(assert (contains_by_one_bit x e))
(assert (not (filter_contains here x e)))
(check-sat)
(pop)
