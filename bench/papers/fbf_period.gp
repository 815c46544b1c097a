set title 'Refresh period (figure 11): a rate that doubles every 10 s'
set key left top
set logscale xy
set format y '10^{%T}'
set xlabel 'operations a second'
set ylabel 'error, from the bits that are set'
set xrange [10:400]
set yrange [1e-12:1]
plot data index 0 every ::1 using 1:2 with lines linetype 2 title 't = 5 s: remembers for 10 s', \
  data index 0 every ::1 using 1:3 with lines linetype 4 title 't = 3 s: 6 s', \
  data index 0 every ::1 using 1:4 with lines linetype 3 title 't = 2 s: 4 s', \
  data index 0 every ::1 using 1:5 with lines linetype 1 title 't = 1 s: 2 s'
