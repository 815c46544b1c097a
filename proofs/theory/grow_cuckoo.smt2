; Grow-only cuckoo filter: specification 3 of the thesis.
;
; A place is where a filter stands: alone, or at a link of a chain in a series. The place decides
; the shape, so hash functions depend on it. Slots and overflow do not count: a table is a set.

(declare-sort Place 0)
(declare-sort Element 0)
(declare-sort Bucket 0)
(declare-sort Fingerprint 0)

(declare-datatype Entry ((entry (bucket Bucket) (fingerprint Fingerprint))))

; S (line 1).
(define-sort Filter () (Array Entry Bool))

(declare-fun first_bucket (Place Element) Bucket)
(declare-fun fingerprint_of (Place Element) Fingerprint)
(declare-fun alt (Place Bucket Fingerprint) Bucket)

; Equation 2.8, all that is known of the alternative bucket. It may be the bucket itself. The
; pattern has z3 go both ways from every bucket that it meets.
(assert (forall ((p Place) (b Bucket) (f Fingerprint))
  (! (= (alt p (alt p b f) f) b) :pattern ((alt p b f)))))

; Returns the same entry in its other bucket. {dual(e) | e in S} is the dual table D(S) (3.2).
; dual is its own inverse, so e is in D(S) when dual(e) is in S.
(define-fun dual ((p Place) (e Entry)) Entry
  (entry (alt p (bucket e) (fingerprint e)) (fingerprint e)))

; U(S), the universe (3.3).
(define-fun in_universe ((p Place) (x Filter) (e Entry)) Bool
  (or (select x e) (select x (dual p e))))

(define-fun filter_bottom () Filter ((as const Filter) false))
(define-fun filter_well_formed ((p Place) (x Filter)) Bool true)

; No entry lies in both of its buckets. Merge and add keep this, and no other law needs it.
(define-fun stored_once ((p Place) (x Filter)) Bool
  (forall ((e Entry)) (=> (select x e) (select x (dual p e)) (= (dual p e) e))))

(define-fun filter_equal ((p Place) (x Filter) (y Filter)) Bool
  (forall ((e Entry)) (= (in_universe p x e) (in_universe p y e))))

; Lines 3 to 8.
(define-fun filter_contains ((p Place) (x Filter) (e Element)) Bool
  (in_universe p x (entry (first_bucket p e) (fingerprint_of p e))))

; Line 15, where no entry has to make room. Displacement has laws of its own.
(define-fun insert ((x Filter) (e Entry)) Filter (store x e true))
(define-fun take_out ((x Filter) (e Entry)) Filter (store x e false))

; Lines 9 to 16.
(define-fun filter_add ((p Place) (x Filter) (e Element)) Filter
  (ite (filter_contains p x e) x
       (insert x (entry (first_bucket p e) (fingerprint_of p e)))))

; Lines 17 to 21.
(define-fun filter_leq ((p Place) (x Filter) (y Filter)) Bool
  (forall ((e Entry)) (=> (in_universe p x e) (in_universe p y e))))

; Lines 22 to 25.
(define-fun filter_merge ((p Place) (x Filter) (y Filter)) Filter
  (lambda ((e Entry)) (or (select x e) (and (select y e) (not (select x (dual p e)))))))

; A world of three buckets, one of which is its own alternative, and one fingerprint. What is
; claimed to be possible is shown in it, because z3 finds no examples in an endless world. Proofs
; do not use it.
(declare-const b0 Bucket)
(declare-const b1 Bucket)
(declare-const b2 Bucket)
(declare-const f0 Fingerprint)
(define-fun small_world () Bool
  (and (distinct b0 b1 b2)
       (forall ((b Bucket)) (or (= b b0) (= b b1) (= b b2)))
       (forall ((f Fingerprint)) (= f f0))
       (forall ((p Place) (b Bucket) (f Fingerprint))
         (= (alt p b f) (ite (= b b0) b1 (ite (= b b1) b0 b))))))
