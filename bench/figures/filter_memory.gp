set title 'Memory for a wanted error rate'
set xlabel 'error rate'
set ylabel 'bits per key'
set logscale x
set format x '10^{%T}'
set xrange [0.1:1e-7] reverse
set yrange [0:50]
plot data using 1:7 with steps linetype 5 linewidth 1.5 title 'cuckoo, buckets of 4', \
  data using 1:4 with lines linetype 2 title 'Bloom, 1 line', \
  data using 1:5 with lines linetype 3 title 'Bloom, 2 lines', \
  data using 1:6 with lines linetype 4 title 'Bloom, 3 lines', \
  data using 1:3 with lines linetype 1 title 'Bloom, plain', \
  data using 1:2 with lines linetype 6 dashtype 2 title 'least possible: log_2(1 / error)'
