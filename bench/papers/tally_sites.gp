# Figure 14: how far each sum is off, in operations; without and with the death of a site.
set terminal svg size 1000,460 dynamic background rgb 'white' font 'sans-serif,13'
set multiplot layout 1,2
set xlabel 'seconds'
set ylabel 'counted too often'
do for [i = 0:1] {
  set title i == 0 ? 'all sites live' : 'a site dies and is replaced'
  plot data index i using 1:($4 - $2) every ::1 with lines linetype 2 title 'shards', \
    data index i using 1:($5 - $2) every ::1 with lines linetype 4 title 'shards, own ids', \
    data index i using 1:($6 - $2) every ::1 with lines linetype 3 title 'shards, ids exchanged', \
    data index i using 1:($3 - $2) every ::1 with lines linetype 1 title 'table'
}
unset multiplot
