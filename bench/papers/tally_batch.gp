# Figure 15, a group of bars for each way in which a batch is kept: medians and quartiles.
set terminal svg size 1500,420 dynamic background rgb 'white' font 'sans-serif,13'
set multiplot layout 1,5
set style data histograms
set style histogram errorbars gap 2 linewidth 2
set errorbars 1 front linecolor rgb '#404040'
set style fill solid 0.8
set ylabel 'microseconds for a batch of 50'
set yrange [0:*]
set xtics rotate by -20
unset key
array titles = ['every write on disk, with values', 'every write on disk', \
  'on disk each second, with values', 'on disk each second', 'in memory']
do for [i = 0:4] {
  set title titles[i + 1]
  plot data index i every ::1 using 3:2:4:xticlabels(1) linetype 1
}
unset multiplot
