# A data set for each filter, a to f.
set terminal svg size 1100,760 dynamic background rgb 'white' font 'sans-serif,13'
set key below
set multiplot layout 2,3
set xlabel 'operations between merges'
set logscale x
set xrange [700:1.4e7]
set format x '10^{%T}'
set ylabel 'false positives'
names = 'GBF5 GCF4 ORCF4 ScGBF5 ScGCF4 ScORCF4'
do for [i = 0:5] {
  set title 'figure 6.1' . word('a b c d e f', i + 1) . ', ' . word(names, i + 1)
  if (i < 3) { set yrange [0.025:0.035] } else { set yrange [0:*] }
  plot data index i every ::1 using 1:3 with linespoints linetype 1 title '50-50', \
    data index i every ::1 using 1:4 with linespoints linetype 2 title '80-20', \
    data index i every ::1 using 1:5 with linespoints linetype 3 title '99-1', \
    data index i every ::1 using 1:2 with lines linetype 5 dashtype 2 title 'local', \
    0.03125 with lines linetype 6 dashtype 3 title 'expected'
}
unset multiplot
