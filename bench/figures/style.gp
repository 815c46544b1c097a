# The common style of the figures. make-figures sets `data` and `figure`.
set terminal svg size 760,520 dynamic background rgb 'white' font 'sans-serif,14'
set output figure
set datafile separator tab
set datafile missing '-'
set border 3 linecolor rgb '#606060'
set tics nomirror
set grid linecolor rgb '#e0e0e0' linetype 1
set key left top Left reverse samplen 2
set linetype 1 linecolor rgb '#0072b2' linewidth 2 pointtype 6
set linetype 2 linecolor rgb '#d55e00' linewidth 2 pointtype 4
set linetype 3 linecolor rgb '#009e73' linewidth 2 pointtype 8
set linetype 4 linecolor rgb '#cc79a7' linewidth 2 pointtype 12
set linetype 5 linecolor rgb '#404040' linewidth 2 pointtype 2
set linetype 6 linecolor rgb '#808080' linewidth 2 pointtype 1
