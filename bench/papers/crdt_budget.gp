# There are two data sets, own chains and a shared one. Their rows are ordered by filter, then by
# sites and split, then by how often they merged.
set terminal svg size 1100,460 dynamic background rgb 'white' font 'sans-serif,13'
set key below font ',11'
set bmargin 15
set multiplot layout 1,3
set xlabel 'operations between merges'
set xrange [-0.5:4.5]
set xtics ('10^3' 0, '10^4' 1, '10^5' 2, '10^6' 3, 'never' 4)
set logscale y
set yrange [1e-3:1]
set ylabel 'false positives, goal 0.01'
# A filter has 20 rows: two sites even, two 99-1, four even, four 99-1, with 5 rows each.
do for [i = 0:2] {
  set title word('GrowBloom GrowCuckoo ObservedCuckoo', i + 1)
  first(s) = 1 + 20 * i + 5 * s
  plot for [s = 0:3] data index 0 every ::first(s)::first(s) + 4 using 0:5 with linespoints \
      linetype s + 1 title 'own, ' . word('2 2 4 4', s + 1) . ' sites, ' . \
      word('even 99-1 even 99-1', s + 1), \
    for [s = 0:3] data index 1 every ::first(s)::first(s) + 4 using 0:5 with linespoints \
      linetype s + 1 dashtype 2 title 'shared, ' . word('2 2 4 4', s + 1) . ' sites, ' . \
      word('even 99-1 even 99-1', s + 1), \
    0.01 with lines linetype 6 title 'goal'
}
unset multiplot
