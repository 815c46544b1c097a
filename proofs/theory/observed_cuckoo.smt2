; Observed-remove cuckoo filter: specification 4 of the thesis, with its causal history H as any
; set of dots: the context. A whole state has a version vector there, a delta the dots it speaks
; of.
;
; A place is where a filter stands: alone, or at a link of a chain in a series. The place decides
; the shape, so hash functions depend on it, and it numbers its own dots.

(include "theory/version_vector.smt2")

(declare-sort Place 0)
(declare-sort Element 0)
(declare-sort Bucket 0)
(declare-sort Fingerprint 0)

(declare-datatype Entry ((entry (bucket Bucket) (fingerprint Fingerprint) (dot_of Dot))))

; S and H (line 1).
(define-sort Table () (Array Entry Bool))
(declare-datatype Filter ((filter (table Table) (context Dots))))

(declare-fun first_bucket (Place Element) Bucket)
(declare-fun fingerprint_of (Place Element) Fingerprint)
(declare-fun alt (Place Bucket Fingerprint) Bucket)

; Equation 2.8, all that is known of the alternative bucket. It may be the bucket itself. The
; pattern has z3 go both ways from every bucket that it meets.
(assert (forall ((p Place) (b Bucket) (f Fingerprint))
  (! (= (alt p (alt p b f) f) b) :pattern ((alt p b f)))))

; Returns the same entry in its other bucket.
(define-fun dual ((p Place) (e Entry)) Entry
  (entry (alt p (bucket e) (fingerprint e)) (fingerprint e) (dot_of e)))

(define-fun in_universe ((p Place) (x Filter) (e Entry)) Bool
  (or (select (table x) e) (select (table x) (dual p e))))

; A dot names one add, of one site, and with it one fingerprint and one pair of buckets.
(declare-fun named_bucket (Place Dot) Bucket)
(declare-fun named_fingerprint (Place Dot) Fingerprint)
(define-fun named_entry ((p Place) (d Dot)) Entry
  (entry (named_bucket p d) (named_fingerprint p d) d))

(define-fun filter_bottom () Filter (filter ((as const Table) false) no_dots))

; Every entry is the one that its dot names, in one of its two buckets, and its dot was observed.
(define-fun filter_well_formed ((p Place) (x Filter)) Bool
  (forall ((e Entry))
    (=> (select (table x) e)
        (and (select (context x) (dot_of e))
             (or (= e (named_entry p (dot_of e))) (= e (dual p (named_entry p (dot_of e)))))))))

; No dot has two entries. Merge and add keep this, and no other law needs it.
(define-fun stored_once ((x Filter)) Bool
  (forall ((e Entry) (f Entry))
    (=> (select (table x) e) (select (table x) f) (= (dot_of e) (dot_of f)) (= e f))))

(define-fun filter_equal ((p Place) (x Filter) (y Filter)) Bool
  (and (forall ((d Dot)) (= (select (context x) d) (select (context y) d)))
       (forall ((e Entry)) (= (in_universe p x e) (in_universe p y e)))))

; An entry with the dot is in the table. The specification looks for it with any bucket and
; fingerprint (line 27). In a well-formed state there is only the entry that the dot names.
(define-fun alive ((p Place) (x Filter) (d Dot)) Bool (in_universe p x (named_entry p d)))
(define-fun alive_by_search ((x Filter) (d Dot)) Bool
  (exists ((b Bucket) (f Fingerprint)) (select (table x) (entry b f d))))

; The dot stands in an entry of the element.
(define-fun matches ((p Place) (x Filter) (e Element) (d Dot)) Bool
  (in_universe p x (entry (first_bucket p e) (fingerprint_of p e) d)))

; Lines 3 to 8.
(define-fun filter_contains ((p Place) (x Filter) (e Element)) Bool
  (exists ((d Dot)) (matches p x e d)))

; Lines 9 to 17, for a dot that the context does not have. Displacement has laws of its own.
(define-fun insert ((x Filter) (e Entry)) Filter
  (filter (store (table x) e true) (store (context x) (dot_of e) true)))

(define-fun take_out ((x Filter) (e Entry)) Filter
  (filter (store (table x) e false) (context x)))

(define-fun filter_add ((p Place) (x Filter) (e Element) (d Dot)) Filter
  (insert x (entry (first_bucket p e) (fingerprint_of p e) d)))

; The adding site ensures this: the dot is new, and from now on names the element's entry.
(define-fun add_allowed ((p Place) (x Filter) (e Element) (d Dot)) Bool
  (and (not (select (context x) d))
       (= (named_bucket p d) (first_bucket p e))
       (= (named_fingerprint p d) (fingerprint_of p e))))

; Lines 18 to 25. The thesis removes any matching dot; here it is the least by site and counter.
(define-fun chosen ((p Place) (x Filter) (e Element) (d Dot)) Bool
  (and (matches p x e d)
       (forall ((c Dot)) (=> (matches p x e c) (dot_leq d c)))))

(define-fun filter_remove ((x Filter) (d Dot)) Filter
  (filter (lambda ((e Entry)) (and (select (table x) e) (not (= (dot_of e) d)))) (context x)))

; Deltas.
(define-fun delta_of_add ((p Place) (e Element) (d Dot)) Filter
  (filter_add p filter_bottom e d))
(define-fun delta_of_remove ((d Dot)) Filter
  (filter ((as const Table) false) (store no_dots d true)))

; Lines 26 to 30.
(define-fun tombstone ((p Place) (x Filter) (d Dot)) Bool
  (and (select (context x) d) (not (alive p x d))))

(define-fun filter_leq ((p Place) (x Filter) (y Filter)) Bool
  (and (forall ((d Dot)) (=> (select (context x) d) (select (context y) d)))
       (forall ((d Dot)) (=> (tombstone p x d) (tombstone p y d)))))

(define-fun only_in ((x Filter) (y Filter) (e Entry)) Bool
  (and (select (table x) e) (not (select (table y) e))))

; Lines 31 to 39, a line for each of S1 to S4.
(define-fun filter_merge ((p Place) (x Filter) (y Filter)) Filter
  (filter (lambda ((e Entry))
            (or (and (select (table x) e) (select (table y) e))
                (and (only_in x y e) (not (select (context y) (dot_of e))))
                (and (only_in y x e) (not (select (context x) (dot_of e))))
                (and (select (table x) e) (select (table y) (dual p e)))))
          (lambda ((d Dot)) (or (select (context x) d) (select (context y) d)))))

; A world of one place, one element, two buckets and one fingerprint. What is claimed to be
; possible is shown in it, because z3 finds few examples in an endless world. Proofs do not use
; it.
(declare-const p0 Place)
(declare-const e0 Element)
(declare-const b0 Bucket)
(declare-const b1 Bucket)
(declare-const f0 Fingerprint)
(define-fun small_world () Bool
  (and (distinct b0 b1)
       (forall ((p Place)) (= p p0))
       (forall ((e Element)) (= e e0))
       (forall ((b Bucket)) (or (= b b0) (= b b1)))
       (forall ((f Fingerprint)) (= f f0))
       (forall ((p Place) (b Bucket) (f Fingerprint)) (= (alt p b f) (ite (= b b0) b1 b0)))
       (forall ((p Place) (d Dot)) (= (named_bucket p d) b0))))
