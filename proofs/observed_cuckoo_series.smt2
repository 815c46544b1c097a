; Series of observed-remove cuckoo filters (specifications 5 and 8): the laws.
;
; Specification 8 keeps one causal history for the whole series and copies it to all filters. Here
; each filter numbers its own dots and has its own version vector, so that the series is a plain
; product.

(include "theory/observed_cuckoo.smt2")
(include "theory/series.smt2")

(declare-const p Place)
(declare-const e Element)
(declare-const d Dot)

(define-fun contains ((a State) (b Element)) Bool
  (exists ((q Place)) (filter_contains q (at a q) b)))

; Lines 6 to 17, at the place that the site chose.
(define-fun add ((a State) (q Place) (b Element) (i Dot)) State
  (put a q (filter_add q (at a q) b i)))

; Lines 18 to 27, at a place that has the element.
(define-fun remove ((a State) (q Place) (i Dot)) State
  (put a q (filter_remove (at a q) i)))

; Shrinking drops the table, which is empty, and keeps the context.
(define-fun is_empty ((a Filter)) Bool (forall ((i Entry)) (not (select (table a) i))))
(define-fun shrink ((a State) (q Place)) State
  (put a q (filter ((as const Table) false) (context (at a q)))))

; In the small world: one entry, and the entry removed.
(define-fun d1 () Dot (dot 1 1))
(define-fun one_entry () State (put bottom p0 (insert filter_bottom (entry b0 f0 d1))))
(define-fun removed () State (remove one_entry p0 d1))

; The examples come first: z3 finds them while no other state is spoken of.
(push)
(assert small_world)
(assert (well_formed one_entry))
(assert (well_formed removed))
(push)
(echo "possible: one site has an entry, another has removed it")
(assert (not (equal one_entry removed)))
(check-sat)
(pop)
(push)
(echo "possible: a site adds an element")
(assert (= d (dot 2 1)))
(assert (add_allowed p (at one_entry p) e d))
(check-sat)
(pop)
(push)
(echo "possible: a site removes an element")
(assert (= d d1))
(assert (chosen p (at one_entry p) e d))
(check-sat)
(pop)

; Planted: shrinking that forgets the version vector with the table.
(push)
(echo "refuted: shrink that forgets the version vector inflates")
(assert (is_empty (at removed p)))
(assert (not (leq removed (drop removed p))))
(check-sat)
(pop)
(push)
(echo "refuted: a dot stays removed when its version vector is forgotten")
(assert (is_empty (at removed p)))
(assert (alive p (at (merge (drop removed p) one_entry) p) d))
(check-sat)
(pop)

; Planted: merge by the shorter list.
(push)
(echo "refuted: a merge by the shorter list is an upper bound")
(assert (not (leq one_entry (merge_by_the_shorter one_entry bottom))))
(check-sat)
(pop)
(pop)

(include "theory/laws.smt2")

(push)
(echo "proved: equal states contain the same elements")
(assert (equal x y))
(assert (contains x e))
(assert (not (contains y e)))
(check-sat)
(pop)

(push)
(assert (add_allowed p (at x p) e d))
(push)
(echo "proved: add inflates")
(assert (not (leq x (add x p e d))))
(check-sat)
(pop)
(push)
(echo "proved: add keeps states well-formed")
(assert (not (well_formed (add x p e d))))
(check-sat)
(pop)
(push)
(echo "proved: add is contained")
(assert (not (contains (add x p e d) e)))
(check-sat)
(pop)
(push)
(echo "proved: merge with the delta of an add is the add")
(assert (not (equal (merge x (put bottom p (delta_of_add p e d))) (add x p e d))))
(check-sat)
(pop)
(pop)

(push)
(echo "proved: the chosen dot is alive")
(assert (chosen p (at x p) e d))
(assert (not (alive p (at x p) d)))
(check-sat)
(pop)

; The chosen dot, or one that the caller named.
(push)
(assert (alive p (at x p) d))
(push)
(echo "proved: remove inflates")
(assert (not (leq x (remove x p d))))
(check-sat)
(pop)
(push)
(echo "proved: remove keeps states well-formed")
(assert (not (well_formed (remove x p d))))
(check-sat)
(pop)
(push)
(echo "proved: a removed dot stays removed, whatever is merged")
(assert (alive p (at (merge (remove x p d) y) p) d))
(check-sat)
(pop)
(push)
(echo "proved: merge with the delta of a removal is the removal")
(assert (not (equal (merge x (put bottom p (delta_of_remove d))) (remove x p d))))
(check-sat)
(pop)
(pop)

(push)
(echo "proved: an entry moved to its other bucket changes no state")
(declare-const victim Entry)
(assert (select (table (at x p)) victim))
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
(assert (is_empty (at x p)))
(assert (not (equal x (shrink x p))))
(check-sat)
(pop)
