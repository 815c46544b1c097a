; Series of any filter (specification 5): the laws of a filter are the laws of its series.
;
; Nothing is known of the filter but the laws of theory/laws.smt2, at each place. So this holds
; for a filter of any kind, with another shape at each place.

(declare-sort Place 0)
(declare-sort Filter 0)
(declare-const filter_bottom Filter)
(declare-fun filter_well_formed (Place Filter) Bool)
(declare-fun filter_equal (Place Filter Filter) Bool)
(declare-fun filter_leq (Place Filter Filter) Bool)
(declare-fun filter_merge (Place Filter Filter) Filter)

(assert (forall ((p Place)) (filter_well_formed p filter_bottom)))
(assert (forall ((p Place) (a Filter) (b Filter))
  (=> (filter_well_formed p a) (filter_well_formed p b)
      (filter_well_formed p (filter_merge p a b)))))

; Equality is what compare says both ways.
(assert (forall ((p Place) (a Filter) (b Filter))
  (=> (filter_well_formed p a) (filter_well_formed p b)
      (= (filter_equal p a b) (and (filter_leq p a b) (filter_leq p b a))))))

; Compare is a partial order with a least state.
(assert (forall ((p Place) (a Filter)) (=> (filter_well_formed p a) (filter_leq p a a))))
(assert (forall ((p Place) (a Filter) (b Filter) (c Filter))
  (=> (filter_well_formed p a) (filter_well_formed p b) (filter_well_formed p c)
      (filter_leq p a b) (filter_leq p b c) (filter_leq p a c))))
(assert (forall ((p Place) (a Filter))
  (=> (filter_well_formed p a) (filter_leq p filter_bottom a))))

; Merge is the least upper bound.
(assert (forall ((p Place) (a Filter) (b Filter))
  (=> (filter_well_formed p a) (filter_well_formed p b)
      (and (filter_leq p a (filter_merge p a b)) (filter_leq p b (filter_merge p a b))))))
(assert (forall ((p Place) (a Filter) (b Filter) (c Filter))
  (=> (filter_well_formed p a) (filter_well_formed p b) (filter_well_formed p c)
      (filter_leq p a c) (filter_leq p b c) (filter_leq p (filter_merge p a b) c))))

(include "theory/series.smt2")
(include "theory/laws.smt2")

(declare-const p Place)
(declare-const p2 Place)
(declare-const new Filter)
(declare-const delta Filter)

; A filter of one bit, at one place.
(declare-const p0 Place)
(declare-const full Filter)
(define-fun small_world () Bool
  (and (distinct full filter_bottom)
       (forall ((q Place)) (= q p0))
       (forall ((a Filter)) (or (= a full) (= a filter_bottom)))
       (forall ((q Place) (a Filter)) (filter_well_formed q a))
       (forall ((q Place) (a Filter) (b Filter)) (= (filter_equal q a b) (= a b)))
       (forall ((q Place) (a Filter) (b Filter)) (= (filter_leq q a b) (or (= a b) (= b full))))
       (forall ((q Place) (a Filter) (b Filter))
         (= (filter_merge q a b) (ite (= a filter_bottom) b a)))))

(define-fun example ((a State) (b State)) Bool
  (and small_world (= x a) (= y b) (= z bottom) (= x2 bottom) (= y2 bottom)))

(push)
(echo "possible: two series that differ")
(assert (example (put bottom p0 full) bottom))
(assert (not (equal x y)))
(check-sat)
(pop)

(push)
(echo "proved: an update that inflates a filter inflates the series")
(assert (filter_well_formed p new))
(assert (filter_leq p (at x p) new))
(assert (not (leq x (put x p new))))
(check-sat)
(pop)

(push)
(echo "proved: an update touches no other place")
(assert (not (= p p2)))
(assert (not (= (at (put x p new) p2) (at x p2))))
(check-sat)
(pop)

(push)
(echo "proved: expand changes no state")
(assert (= (at x p) filter_bottom))
(assert (not (equal x (expand x p))))
(check-sat)
(pop)

(push)
(echo "proved: shrink changes no state, if the filter equals bottom")
(assert (filter_equal p (at x p) filter_bottom))
(assert (not (equal x (drop x p))))
(check-sat)
(pop)

(push)
(echo "proved: merge with the delta of one filter updates that filter")
(assert (filter_well_formed p new))
(assert (filter_well_formed p delta))
(assert (filter_equal p (filter_merge p (at x p) delta) new))
(assert (not (equal (merge x (put bottom p delta)) (put x p new))))
(check-sat)
(pop)

; Planted: merge by the shorter list.
(push)
(echo "refuted: a merge by the shorter list is an upper bound")
(assert (example (put bottom p0 full) bottom))
(assert (not (leq x (merge_by_the_shorter x y))))
(check-sat)
(pop)

; Planted: compare by length first (line 32 of the thesis). Shrinking makes a state smaller.
(define-sort Places () (Array Place Bool))
(define-fun leq_by_length ((in_a Places) (a State) (in_b Places) (b State)) Bool
  (and (forall ((q Place)) (=> (select in_a q) (select in_b q))) (leq a b)))

(push)
(echo "refuted: shrink inflates, if compare looks at the length")
(declare-const places Places)
(assert (example bottom bottom))
(assert (select places p))
(assert (not (leq_by_length places x (store places p false) (drop x p))))
(check-sat)
(pop)

; Planted: shrinking drops what is not empty.
(push)
(echo "refuted: shrink changes no state, whatever the filter holds")
(assert (example (put bottom p0 full) bottom))
(assert (not (equal x (drop x p))))
(check-sat)
(pop)
