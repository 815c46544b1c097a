; Dots and version vectors: the causal histories of specification 4, as they are stored.

(declare-datatype Dot ((dot (site Int) (counter Int))))

(define-sort Dots () (Array Dot Bool))
(define-fun no_dots () Dots ((as const Dots) false))

; The order of dots by which removal chooses.
(define-fun dot_leq ((d Dot) (c Dot)) Bool
  (or (< (site d) (site c)) (and (= (site d) (site c)) (<= (counter d) (counter c)))))

; The last counter seen of each site, 0 for none.
(define-sort Vector () (Array Int Int))

(define-fun vector_well_formed ((v Vector)) Bool (forall ((s Int)) (>= (select v s) 0)))

(define-fun vector_merge ((v Vector) (w Vector)) Vector
  (lambda ((s Int)) (ite (>= (select v s) (select w s)) (select v s) (select w s))))

; The dots that a version vector stands for.
(define-fun dots_of ((v Vector)) Dots
  (lambda ((d Dot)) (and (<= 1 (counter d)) (<= (counter d) (select v (site d))))))

(define-fun next_dot ((v Vector) (s Int)) Dot (dot s (+ (select v s) 1)))
(define-fun advance ((v Vector) (s Int)) Vector (store v s (+ (select v s) 1)))

; No gaps: with a dot come all earlier ones of its site.
(define-fun closed ((c Dots)) Bool
  (forall ((d Dot))
    (=> (select c d)
        (and (<= 1 (counter d))
             (or (= (counter d) 1) (select c (dot (site d) (- (counter d) 1))))))))
