# Figure 12, a group of bars for each workload: RocksDB, RocksStore, and with its index.
set terminal svg size 1000,420 dynamic background rgb 'white' font 'sans-serif,13'
set multiplot layout 1,4
set style data histograms
set style fill solid 0.8
set ylabel 'microseconds for a write'
set yrange [0:*]
set xtics rotate by -20
unset key
do for [i = 0:3] {
  set title word('sequential random sequential random', i + 1) . ', ' . word('100K 100K 1M 1M', i + 1)
  plot data index i every ::1 using 2:xticlabels(1) linetype 1
}
unset multiplot
