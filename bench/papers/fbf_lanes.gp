# Data set 0: the paper's filters; 1: the same load at equal window and equal memory.
set terminal svg size 900,460 dynamic background rgb 'white' font 'sans-serif,14'
set key left top Left reverse samplen 1.5 font ',12'
set logscale y
set format y '10^{%T}'
set yrange [1e-6:50]
set xrange [30:175]
set xlabel 'operations a second'
set multiplot layout 1,2
set title 'Filters of 6250 bits, t = 5 s (figure 12)'
set ylabel 'error, measured'
plot data index 0 every ::1 using 1:5 with lines linetype 2 title '3 filters: 10 s, 19 kbit', \
  data index 0 every ::1 using 1:4 with lines linetype 4 title '6: 20 s, 38 kbit', \
  data index 0 every ::1 using 1:2 with lines linetype 1 dashtype 2 title '24: 110 s, 150 kbit'
set title 'All with a window of 10 s and 19 kbit'
set ylabel ''
plot data index 1 every ::1 using 1:2 with lines linetype 6 title 'pairs or oldest, 24 lanes', \
  data index 1 every ::1 using 1:3 with lines linetype 4 title '12 lanes', \
  data index 1 every ::1 using 1:4 with lines linetype 2 title '3 lanes', \
  data index 1 every ::1 using 1:5 with lines linetype 1 title 'newest, 8 lanes'
unset multiplot
