# Data sets: the web log, synthetic events by Zipf's law and uniform ones, the log of Yahoo. Columns: 2
# is the optimum of the busiest slice; fairness and the busiest slice in turn from 3 on.
set terminal svg size 900,760 dynamic background rgb 'white' font 'sans-serif,14'
set bmargin 9
set key below samplen 1.5 font ',12'
set multiplot layout 2,2
set xlabel 'slices'
set xrange [0:105]
do for [i = 0:1] {
  set title i == 0 ? 'Fairness (5b, 8b)' : 'Fairness, synthetic (8a)'
  set ylabel 'fairness'
  set yrange [0:1.05]
  first = i == 0 ? 0 : 1
  second = i == 0 ? 3 : 2
  plot data index first using 1:3 with linespoints linetype 2 title 'horizontal', \
    data index first using 1:5 with linespoints linetype 1 title 'vertical', \
    data index second using 1:3 with linespoints linetype 2 dashtype 2 \
    title i == 0 ? 'horizontal, Yahoo' : 'horizontal, uniform', \
    data index second using 1:5 with linespoints linetype 1 dashtype 2 \
    title i == 0 ? 'vertical, Yahoo' : 'vertical, uniform'
}
do for [i = 0:1] {
  set title i == 0 ? 'Busiest slice (5c, 8d)' : 'Busiest slice, synthetic (8c)'
  set ylabel 'share of the lookups'
  set yrange [0:0.22]
  first = i == 0 ? 0 : 1
  second = i == 0 ? 3 : 2
  plot data index first using 1:4 with linespoints linetype 2 title 'horizontal', \
    data index first using 1:6 with linespoints linetype 1 title 'vertical', \
    data index second using 1:4 with linespoints linetype 2 dashtype 2 \
    title i == 0 ? 'horizontal, Yahoo' : 'horizontal, uniform', \
    data index second using 1:6 with linespoints linetype 1 dashtype 2 \
    title i == 0 ? 'vertical, Yahoo' : 'vertical, uniform', \
    data index first using 1:2 with lines linetype 6 linewidth 1 title 'optimum'
}
unset multiplot
