; A state that is one filter, at one place.

(define-sort State () Filter)
(declare-const here Place)
(define-fun bottom () State filter_bottom)
(define-fun well_formed ((x State)) Bool (filter_well_formed here x))
(define-fun equal ((x State) (y State)) Bool (filter_equal here x y))
(define-fun leq ((x State) (y State)) Bool (filter_leq here x y))
(define-fun merge ((x State) (y State)) State (filter_merge here x y))
