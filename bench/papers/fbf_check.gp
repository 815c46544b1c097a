# Data set 0: all in the first period; 1: over the first two; 2: for a long time.
set terminal svg size 900,460 dynamic background rgb 'white' font 'sans-serif,14'
set key left top Left reverse samplen 1.5 font ',12'
set logscale y
set format y '10^{%T}'
set yrange [1e-6:20]
set xlabel 'operations'
set multiplot layout 1,2
do for [arrangement = 1:2] {
  set title arrangement == 1 ? 'Evenly over the first two periods (figure 8)' \
    : 'As many in each window, for a long time'
  set ylabel arrangement == 1 ? 'error, measured' : ''
  plot data index arrangement every ::1 using 1:2 with linespoints linetype 2 \
    title "paper's simple check", \
    data index arrangement every ::1 using 1:3 with linespoints linetype 4 \
    title "paper's optimised check", \
    data index arrangement every ::1 using 1:8 with linespoints linetype 3 \
    title 'split pairs, 8 lanes', \
    data index arrangement every ::1 using 1:9 with linespoints linetype 1 title 'newest, 8 lanes'
}
unset multiplot
