; Grow-only Bloom filter: specification 2 of the thesis.
;
; A place is where a filter stands: alone, or at a link of a chain in a series. The place decides
; the shape, so hash functions depend on it.

(declare-sort Place 0)
(declare-sort Element 0)
(declare-sort Index 0)

; S, the indexes of the bits that are set (line 1).
(define-sort Filter () (Array Index Bool))

; {h_i(e)}, the bits of an element. Any number of hash functions, any number of bits.
(declare-fun bits (Place Element) (Array Index Bool))

(define-fun filter_bottom () Filter ((as const Filter) false))
(define-fun filter_well_formed ((p Place) (x Filter)) Bool true)

(define-fun filter_equal ((p Place) (x Filter) (y Filter)) Bool
  (forall ((i Index)) (= (select x i) (select y i))))

; Lines 3 to 5.
(define-fun filter_contains ((p Place) (x Filter) (e Element)) Bool
  (forall ((i Index)) (=> (select (bits p e) i) (select x i))))

; Lines 6 to 8.
(define-fun filter_add ((p Place) (x Filter) (e Element)) Filter
  (lambda ((i Index)) (or (select (bits p e) i) (select x i))))

; Lines 9 to 11.
(define-fun filter_leq ((p Place) (x Filter) (y Filter)) Bool
  (forall ((i Index)) (=> (select x i) (select y i))))

; Lines 12 to 14.
(define-fun filter_merge ((p Place) (x Filter) (y Filter)) Filter
  (lambda ((i Index)) (or (select x i) (select y i))))
