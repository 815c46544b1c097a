# Overhead for each difference: a line for each kind of change and of keys. Dashed: what is claimed.
set terminal svg size 1000,480 dynamic background rgb 'white' font 'sans-serif,14'
set multiplot layout 1,2
set key below
set logscale xy
set format x '10^{%T}'
set xlabel 'differing records'
set ylabel 'overhead, bytes for each'
set yrange [1:500]
each(where, keys, change) = strcol(2) eq where && strcol(1) eq keys && strcol(3) eq change \
  ? column(8) : NaN
do for [where in 'scattered clustered'] {
  set title where . ' differences'
  plot for [i = 1:3] data index 0 every ::1 \
      using 4:(each(where, 'random', word('insert delete update', i))) \
      with points linetype i title word('insert delete update', i) . ', random keys', \
    for [i = 1:3] data index 0 every ::1 \
      using 4:(each(where, 'sequential', word('insert delete update', i))) \
      with points linetype i pointtype 7 title word('insert delete update', i) . ', sequential', \
    data index 0 every ::1::6 using 4:9 with lines linetype 6 dashtype 2 title 'claimed'
}
unset multiplot
