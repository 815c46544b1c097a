# Tables 6.1 and 6.2, a bar for each size: the thesis raw, ours raw, the thesis compressed, ours
# compressed.
set terminal svg size 1100,460 dynamic background rgb 'white' font 'sans-serif,13'
set key below
set multiplot layout 1,2
set style data histograms
set style fill solid 0.8
set ylabel 'MB'
set yrange [0:*]
set xtics rotate by -20
do for [i = 0:1] {
  set title 'table 6.' . word('1 2', i + 1)
  plot data index i every ::1 using 7:xticlabels(stringcolumn(1) . ' ' . stringcolumn(2) . '% ' . \
      stringcolumn(3)) linetype 2 title 'thesis', \
    '' index i every ::1 using 6 linetype 1 title 'Semel', \
    '' index i every ::1 using 12 linetype 4 title 'thesis, gzip', \
    '' index i every ::1 using 11 linetype 3 title 'Semel, zstd'
}
unset multiplot
