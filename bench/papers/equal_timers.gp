set terminal svg size 900,560 dynamic background rgb 'white' font 'sans-serif,14'
set key below
set bmargin 6
set multiplot
set size 0.5,1
set origin 0,0
set xrange [0.5:8.5]
set xtics 1
set title "True duplicates (figures 9a, 9b)"
set xlabel 'equal timers of 8'
set ylabel 'share of what seems a duplicate'
set yrange [0:1.05]
plot data index 0 every ::1 using 1:2 with linespoints linetype 2 title 'horizontal', \
  data index 0 every ::1 using 1:4 with linespoints linetype 1 title 'vertical'

set origin 0.5,0
set title "Errors (figures 9c, 9d)"
set xlabel 'equal timers that a duplicate needs'
set ylabel 'false positives; dashed: false negatives'
set logscale y
set format y '10^{%T}'
set yrange [1e-5:1]
plot data index 1 every ::1 using 1:2 with linespoints linetype 2 title 'horizontal', \
  data index 1 every ::1 using 1:4 with linespoints linetype 1 title 'vertical', \
  data index 1 every ::1 using 1:6 with linespoints linetype 3 title 'SlidingFilter', \
  data index 1 every ::1 using 1:3 with linespoints linetype 2 dashtype 2 notitle, \
  data index 1 every ::1 using 1:5 with linespoints linetype 1 dashtype 2 notitle, \
  data index 1 every ::1 using 1:7 with linespoints linetype 3 dashtype 2 notitle
unset multiplot
