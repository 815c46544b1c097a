# Data sets: 0 by the share of failed slices; 1 to 3 the slices needed, by the maximal error; 4 diced.
set terminal svg size 900,560 dynamic background rgb 'white' font 'sans-serif,14'
set key below
set bmargin 10
set multiplot
set size 0.5,1
set origin 0,0
set title 'False positives (figure 1a)'
set xlabel 'share of slices that failed'
set ylabel 'false positives'
set yrange [0:1]
plot data index 0 every ::1 using 1:2 with lines linetype 2 title 'horizontal', \
  data index 0 every ::1 using 1:3 with lines linetype 1 title 'vertical', \
  data index 0 every ::1 using 1:4 with points linetype 2 title 'measured', \
  data index 0 every ::1 using 1:5 with points linetype 1 title 'measured', \
  data index 4 every ::1 using ($1 / 40):3 with lines linetype 3 title 'h-v', \
  data index 4 every ::1 using ($1 / 40):4 with points linetype 3 title 'measured'

set origin 0.5,0
set title 'Slices that are needed (figure 1b)'
set xlabel 'failed slices'
set ylabel 'slices'
set yrange [0:140]
plot data index 1 every ::1 using 2:3 with linespoints linetype 2 title 'horizontal, 0.05', \
  data index 2 every ::1 using 2:3 with linespoints linetype 4 title '0.10', \
  data index 3 every ::1 using 2:3 with linespoints linetype 5 title '0.15', \
  data index 1 every ::1 using 2:4 with linespoints linetype 1 title 'vertical, 0.05', \
  data index 2 every ::1 using 2:4 with linespoints linetype 3 title '0.10', \
  data index 3 every ::1 using 2:4 with linespoints linetype 6 title '0.15'
unset multiplot
