# A group of bars for each size of a batch: ours and stored ids.
set multiplot layout 1,2
set style data histograms
set style fill solid 0.8
set ylabel 'operations a second, thousands'
set yrange [0:*]
unset key
do for [i = 0:1] {
  set title i == 0 ? 'batches of 50' : 'batches of 1000'
  plot data index i every ::1 using ($2 / 1000):xticlabels(1) linetype 1
}
unset multiplot
