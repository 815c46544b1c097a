set multiplot
set lmargin 11
set logscale x
set format x '10^{%T}'
set xrange [4e-6:0.25]
set pointsize 1.2

set size 1,0.62
set origin 0,0.38
set logscale y
set format y '10^{%T}'
set yrange [4e-6:0.25]
set title 'Error rate, measured against expected: 1 million keys'
set ylabel 'measured'
plot x with lines linetype 6 linewidth 1 notitle, \
  data index 0 every ::1 using 4:6 with points linetype 1 title 'Bloom, plain', \
  data index 1 using 4:6 with points linetype 2 title 'Bloom, 1 line', \
  data index 2 using 4:6 with points linetype 3 title 'Bloom, 2 lines', \
  data index 3 using 4:6 with points linetype 4 title 'Bloom, 3 lines', \
  data index 4 using 4:6 with points linetype 5 title 'cuckoo'

# Points of one goal are drawn next to each other: shift(i) moves those of structure i along.
shift(i) = 1.12 ** (i - 2)
set size 1,0.4
set origin 0,0
unset title
unset logscale y
set format y '%g'
set yrange [-5.5:5.5]
set ytics -5,5,5
set mytics 5
unset key
set xlabel 'expected error rate'
set ylabel "standard\ndeviations away"
plot 0 with lines linetype 6 linewidth 1, \
  5 with lines linetype 6 dashtype 2 linewidth 1, -5 with lines linetype 6 dashtype 2 linewidth 1, \
  data index 0 every ::1 using ($4 * shift(0)):7 with points linetype 1, \
  data index 1 using ($4 * shift(1)):7 with points linetype 2, \
  data index 2 using ($4 * shift(2)):7 with points linetype 3, \
  data index 3 using ($4 * shift(3)):7 with points linetype 4, \
  data index 4 using ($4 * shift(4)):7 with points linetype 5
unset multiplot
