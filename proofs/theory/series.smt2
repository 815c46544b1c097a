; Series of filters: specification 5 of the thesis, as a product.
;
; A series maps places, the links of the chains of all sites, to filters. The thesis has one list
; where Semel has chains; the indexes of a list are places too. A filter that is absent is bottom:
; the thesis says so of merge (section 3.5.2) and forgets it in compare (line 32).

(define-sort State () (Array Place Filter))

(define-fun at ((x State) (p Place)) Filter (select x p))
(define-fun put ((x State) (p Place) (f Filter)) State (store x p f))

(define-fun bottom () State ((as const State) filter_bottom))

(define-fun well_formed ((x State)) Bool
  (forall ((p Place)) (filter_well_formed p (at x p))))

(define-fun equal ((x State) (y State)) Bool
  (forall ((p Place)) (filter_equal p (at x p) (at y p))))

; Lines 29 to 33.
(define-fun leq ((x State) (y State)) Bool
  (forall ((p Place)) (filter_leq p (at x p) (at y p))))

; Lines 34 to 42.
(define-fun merge ((x State) (y State)) State
  (lambda ((p Place)) (filter_merge p (at x p) (at y p))))

; Lines 6 to 20, for a place that is absent.
(define-fun expand ((x State) (p Place)) State (put x p filter_bottom))

; Lines 21 to 28.
(define-fun drop ((x State) (p Place)) State (put x p filter_bottom))

; An error to plant: only the places that both sides have are merged, the rest is forgotten.
(define-fun merge_by_the_shorter ((x State) (y State)) State
  (lambda ((p Place))
    (ite (or (= (at x p) filter_bottom) (= (at y p) filter_bottom))
         filter_bottom
         (filter_merge p (at x p) (at y p)))))
