; Grow-only cuckoo filter (specification 3): the laws.

(include "theory/grow_cuckoo.smt2")
(include "theory/single.smt2")
(include "theory/laws.smt2")

(declare-const e Element)
(declare-const new Entry)
(declare-const victim Entry)
(declare-const any Entry)

(push)
(echo "possible: two states, neither below the other, and a third below neither")
(assert small_world)
(assert (not (leq x y)))
(assert (not (leq y x)))
(assert (not (leq z x)))
(assert (not (leq z y)))
(check-sat)
(pop)

(push)
(echo "proved: the universe of a merge is the union of the universes (theorem 4.4)")
(assert (not (= (in_universe here (merge x y) any)
                (or (in_universe here x any) (in_universe here y any)))))
(check-sat)
(pop)

(push)
(echo "proved: merge stores no entry twice")
(assert (stored_once here x))
(assert (stored_once here y))
(assert (not (stored_once here (merge x y))))
(check-sat)
(pop)

(push)
(echo "proved: equal states contain the same elements (theorem 4.6)")
(assert (equal x y))
(assert (not (= (filter_contains here x e) (filter_contains here y e))))
(check-sat)
(pop)

(push)
(echo "proved: contains is monotone")
(assert (leq x y))
(assert (filter_contains here x e))
(assert (not (filter_contains here y e)))
(check-sat)
(pop)

(push)
(echo "proved: add inflates (theorem 4.5)")
(assert (not (leq x (filter_add here x e))))
(check-sat)
(pop)

(push)
(echo "proved: add is contained")
(assert (not (filter_contains here (filter_add here x e) e)))
(check-sat)
(pop)

(push)
(echo "proved: add stores no entry twice")
(assert (stored_once here x))
(assert (not (stored_once here (filter_add here x e))))
(check-sat)
(pop)

(push)
(echo "proved: merge with the delta of an add is the add")
(assert (not (equal (merge x (filter_add here bottom e)) (filter_add here x e))))
(check-sat)
(pop)

(push)
(echo "proved: an entry moved to its other bucket changes no state")
(assert (select x victim))
(assert (not (equal x (insert (take_out x victim) (dual here victim)))))
(check-sat)
(pop)

; Algorithm 1, by induction over its quota: cuckooInsertImpl(x, new) equals x with new. Its base
; is line 23. In both steps `victim` is in the table, and the recursive call may lay out the table
; as it likes, so x2 stands for what it returns.
(push)
(assert (select x victim))
(assert (equal x2 (insert (insert (take_out x victim) new) (dual here victim))))
(echo "possible: a full bucket gives way to a new entry")
(push)
(assert small_world)
(assert (not (in_universe here x new)))
(check-sat)
(pop)
(echo "proved: an insertion that displaces one entry equals a plain one (algorithm 1, line 29)")
(assert (not (equal x2 (insert x new))))
(check-sat)
(pop)

(push)
(assert (select x victim))
(assert (equal y2 (insert (take_out x victim) (dual here victim))))
(assert (equal x2 (insert y2 new)))
(echo "possible: an overflowing bucket gives way to a new entry")
(push)
(assert small_world)
(assert (not (in_universe here x new)))
(check-sat)
(pop)
(echo "proved: an insertion that smooths overflow out equals a plain one (algorithm 1, line 36)")
(assert (not (equal x2 (insert x new))))
(check-sat)
(pop)

(push)
(echo "proved: insertion in either bucket gives equal states")
(assert (not (equal (insert x new) (insert x (dual here new)))))
(check-sat)
(pop)

; Planted: compare without the dual tables.
(define-fun leq_without_dual ((a State) (b State)) Bool
  (forall ((i Entry)) (=> (select a i) (select b i))))

(push)
(echo "refuted: a merge is above its right side without the dual tables")
(assert small_world)
(assert (not (leq_without_dual y (merge x y))))
(check-sat)
(pop)

; Planted: the difference with the wrong dual, D(S') for D(S).
(define-fun merge_with_wrong_dual ((a State) (b State)) State
  (lambda ((i Entry)) (or (select a i) (and (select b i) (not (select b (dual here i)))))))

(push)
(echo "refuted: a merge with the dual of the wrong side is an upper bound")
(assert small_world)
(assert (not (leq y (merge_with_wrong_dual x y))))
(check-sat)
(pop)

; Planted: each side yields to the other, so an entry that lies in different buckets is lost.
(define-fun merge_that_yields_twice ((a State) (b State)) State
  (lambda ((i Entry)) (or (and (select a i) (not (select b (dual here i))))
                          (and (select b i) (not (select a (dual here i)))))))

(push)
(echo "refuted: a merge where both sides yield is an upper bound")
(assert small_world)
(assert (not (leq x (merge_that_yields_twice x y))))
(check-sat)
(pop)

; Planted: a plain union. It is a semilattice, and it stores entries twice (figure 3.2 a).
(define-fun merge_by_union ((a State) (b State)) State
  (lambda ((i Entry)) (or (select a i) (select b i))))

(push)
(echo "refuted: a plain union stores no entry twice")
(assert small_world)
(assert (stored_once here x))
(assert (stored_once here y))
(assert (= x (insert bottom (entry b0 f0))))
(assert (= y (insert bottom (entry b1 f0))))
(assert (not (stored_once here (merge_by_union x y))))
(check-sat)
(pop)
