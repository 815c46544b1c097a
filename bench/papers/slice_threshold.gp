# Data sets: m by equation 1, then m = 143000.
set terminal svg size 900,520 dynamic background rgb 'white' font 'sans-serif,14'
set key below
set bmargin 8
set multiplot layout 1,2
set xrange [0.5:7.5]
set xtics 1
set xlabel 'threshold'
set ylabel 'false positives; dashed: false negatives'
set logscale y
set format y '10^{%T}'
set yrange [1e-5:1]
do for [i = 0:1] {
  set title i == 0 ? 'm by equation 1 (figure 5d)' : 'm = 143000'
  plot data index i using 1:2 with linespoints linetype 2 title "the paper's rule", \
    data index i using 1:4 with linespoints linetype 1 title 'ours', \
    data index i using 1:3 with linespoints linetype 5 dashtype 2 title 'both'
}
unset multiplot
