# Data set 0: figure 9; 1: figure 10; 2: by the number of past filters.
set terminal svg size 1100,440 dynamic background rgb 'white' font 'sans-serif,14'
set key right bottom Left reverse samplen 1.5 font ',12'
set logscale y
set format y '10^{%T}'
set multiplot layout 1,3

set title 'One past filter (figure 9)'
set xlabel 'operations'
set xtics 250
set ylabel 'error'
plot data index 0 every ::1 using 1:2 with points linetype 1 title 'measured', \
  data index 0 every ::1 using 1:3 with lines linetype 2 title 'equation 3', \
  data index 0 every ::1 using 1:5 with lines linetype 3 title 'corrected, a bound'

set title '300 operations (figure 10)'
set xlabel 'bits of a filter'
set xtics 10000
set ylabel ''
set key right top
plot data index 1 every ::1 using 1:6 with points linetype 1 title 'from the bits set', \
  data index 1 every ::1 using 1:3 with lines linetype 2 title 'equation 3', \
  data index 1 every ::1 using 1:5 with lines linetype 3 title 'corrected, a bound'

set title 'More past filters'
set xlabel 'past filters'
set xtics autofreq
set logscale x 2
set xrange [0.8:80]
set yrange [5e-4:0.1]
set key left top
plot data index 2 every ::1 using 1:4 with points linetype 1 title 'measured', \
  data index 2 every ::1 using 1:2 with points linetype 4 title 'measured, as printed', \
  data index 2 every ::1 using 1:3 with lines linetype 2 title 'equation 3', \
  data index 2 every ::1 using 1:5 with lines linetype 3 title 'corrected, a bound'
unset multiplot
