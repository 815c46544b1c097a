# Data sets: 16850 ids, 4300 ids. Columns: hits and accesses of the root and of the leaves, by tree.
set terminal svg size 900,760 dynamic background rgb 'white' font 'sans-serif,14'
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.8 noborder
set key right top samplen 1 font ',12'
set xtics rotate by -20 font ',11'
set multiplot layout 2,2
set yrange [0:170000]
do for [i = 0:1] {
  set title i == 0 ? 'Hits (table 1), 16850 ids' : 'Hits, 4300 ids'
  plot data index i using 2:xtic(1) every ::1 linetype 1 title 'root', \
    data index i using 3 every ::1 linetype 2 title 'leaves'
}
do for [i = 0:1] {
  set title i == 0 ? 'Accesses (table 1), 16850 ids' : 'Accesses, 4300 ids'
  plot data index i using 4:xtic(1) every ::1 linetype 1 title 'root', \
    data index i using 5 every ::1 linetype 2 title 'leaves'
}
unset multiplot
