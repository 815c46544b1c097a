; Series of grow-only cuckoo filters (specifications 5 and 7): the laws.

(include "theory/grow_cuckoo.smt2")
(include "theory/series.smt2")
(include "theory/laws.smt2")

(declare-const p Place)
(declare-const e Element)

(define-fun contains ((a State) (b Element)) Bool
  (exists ((q Place)) (filter_contains q (at a q) b)))

; Lines 3 to 15 of specification 7, at the place that the site chose. Where an insertion fails,
; the place is that of a new filter (line 12).
(define-fun add ((a State) (q Place) (b Element)) State
  (ite (contains a b) a (put a q (filter_add q (at a q) b))))

(define-fun one_entry ((b Bucket)) State (put bottom p (insert filter_bottom (entry b f0))))
(define-fun example ((a State) (b State)) Bool
  (and small_world (= x a) (= y b) (= z bottom) (= x2 bottom) (= y2 bottom)))

(push)
(echo "possible: two sites have added different elements")
(assert (example (one_entry b0) (one_entry b2)))
(assert (not (equal x y)))
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
(echo "proved: an entry moved to its other bucket changes no state")
(declare-const victim Entry)
(assert (select (at x p) victim))
(assert (not (equal x (put x p (insert (take_out (at x p) victim) (dual p victim))))))
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
(assert (example (one_entry b0) bottom))
(assert (not (leq x (merge_by_the_shorter x y))))
(check-sat)
(pop)

; Planted: an entry is displaced to another filter. Buckets have a meaning only at their place.
(push)
(echo "refuted: an entry moved to another place changes no state")
(declare-const p2 Place)
(assert (example (one_entry b0) bottom))
(assert (not (equal x (put (drop x p) p2 (at x p)))))
(check-sat)
(pop)
