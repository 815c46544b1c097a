# Figure 11: a bar for each structure and kind of keys, and the paper's. A data set for each size of
# values.
set terminal svg size 1100,460 dynamic background rgb 'white' font 'sans-serif,13'
set datafile separator '\t'
set key below
set multiplot layout 1,2
set style data histograms
set style fill solid 0.8
set ylabel 'percent of keys and values'
set logscale y
set yrange [0.05:20]
set xtics rotate by -20
do for [i = 0:1] {
  set title word('13 13', i + 1) . ' + ' . word('243 256', i + 1) . ' bytes'
  plot data index i every ::1 using 9:xticlabels(stringcolumn(3) . ', ' . stringcolumn(1)) \
      linetype 2 title 'paper', \
    '' index i every ::1 using 7 linetype 1 title 'Semel, one pass', \
    '' index i every ::1 using 8 linetype 3 title 'Semel, grown'
}
unset multiplot
