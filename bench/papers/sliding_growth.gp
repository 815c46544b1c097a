# Data sets 0 to 5 are by density, 6 to 11 by cardinality: bursts of 2, then of 5, each with windows
# of 100, 500 and 1000. Columns: 2 and 3 are ours, 4 and 5 the paper's rule.
set terminal svg size 900,760 dynamic background rgb 'white' font 'sans-serif,14'
set key left top Left reverse samplen 1.5 font ',12'
set multiplot layout 2,2
set xrange [0:1]
set xtics 1.0 / 3
set format x '%.2f'
set xlabel 'time'

do for [g = 0:6:6] {
  set title g == 0 ? 'Filters, by density' : 'Filters, by cardinality'
  set ylabel 'filters'
  set yrange [0:32]
  plot data index g + 3 every ::1 using 1:2 with steps linetype 3 title '5 times, window 100', \
    data index g + 4 every ::1 using 1:2 with steps linetype 2 title 'window 500', \
    data index g + 5 every ::1 using 1:2 with steps linetype 1 title 'window 1000', \
    data index g + 2 every ::1 using 1:2 with steps linetype 1 dashtype 2 \
    title '2 times, window 1000', \
    data index g + 5 every ::1 using 1:4 with steps linetype 6 \
    title "5 times, window 1000: the paper's rule"
}
do for [g = 0:6:6] {
  set title g == 0 ? 'Error, by density' : 'Error, by cardinality'
  set ylabel 'sum of the errors'
  set yrange [0:0.3]
  plot 0.02 with lines linetype 5 dashtype 2 linewidth 1 title 'goal', \
    data index g + 3 every ::1 using 1:3 with lines linetype 3 title '5 times, window 100', \
    data index g + 4 every ::1 using 1:3 with lines linetype 2 title 'window 500', \
    data index g + 5 every ::1 using 1:3 with lines linetype 1 title 'window 1000', \
    data index g + 5 every ::1 using 1:5 with lines linetype 6 \
    title "5 times, window 1000: the paper's rule"
}
unset multiplot
