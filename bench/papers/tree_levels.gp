# Data set 0: levels. Data sets 1 to 3: thresholds, for filters of 0.02, 0.05 and 0.08; errors and
# duplicates let through in turn.
set terminal svg size 900,760 dynamic background rgb 'white' font 'sans-serif,14'
set multiplot layout 2,2
set style fill solid 0.8 noborder
set boxwidth 0.35
set key left top samplen 1 font ',12'
set title 'Levels climbed (12a)'
set xlabel 'levels'
set ylabel 'events'
set xrange [0.4:5.6]
plot data index 0 every ::1 using ($1 - 0.18):3 with boxes linetype 1 title 'dense', \
  data index 0 every ::1 using ($1 + 0.18):4 with boxes linetype 2 title 'sparse'

set title 'Accesses (12b)'
set xlabel 'level, 0 is the root'
set ylabel 'accesses'
set xrange [-0.6:4.6]
set yrange [0:160000]
plot data index 0 every ::1 using ($2 - 0.18):5 with boxes linetype 1 title 'dense', \
  data index 0 every ::1 using ($2 + 0.18):6 with boxes linetype 2 title 'sparse', \
  data index 0 every ::1 using ($2 + 0.18):7 with points linetype 5 title 'sparse, BloomTree'

set title 'False positives by threshold (12c), filters of 0.08'
set xlabel 'level down to which hits are confirmed'
set ylabel 'share of the new ids'
set xrange [-0.2:4.2]
set xtics 1
set yrange [0:0.022]
set key right top
plot data index 3 every ::1 using 1:2 with linespoints linetype 6 title "dense, the paper's rule", \
  data index 3 every ::1 using 1:6 with linespoints linetype 1 title 'dense', \
  data index 3 every ::1 using 1:4 with linespoints linetype 5 title "sparse, the paper's rule", \
  data index 3 every ::1 using 1:8 with linespoints linetype 2 title 'sparse'

set title 'Duplicates let through, filters of 0.08'
set ylabel 'events of 100,000'
set yrange [-1:45]
set key left top
plot data index 3 every ::1 using 1:3 with linespoints linetype 6 title "dense, the paper's rule", \
  data index 3 every ::1 using 1:5 with linespoints linetype 5 title "sparse, the paper's rule", \
  data index 3 every ::1 using 1:7 with linespoints linetype 1 title 'dense', \
  data index 3 every ::1 using 1:9 with linespoints linetype 2 title 'sparse'
unset multiplot
