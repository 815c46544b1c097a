set title 'Calls while lanes are refreshed'
set xlabel 'size of the filter, MiB'
set ylabel 'ns'
set logscale xy
set xrange [4:1024]
set yrange [50:1e9]
plot data using 1:6 with linespoints linetype 6 dashtype 2 title 'clearing a lane at once', \
  data using 1:5 with linespoints linetype 1 title 'longest call', \
  data using 1:4 with linespoints linetype 3 title '99.9th percentile', \
  data using 1:3 with linespoints linetype 2 title 'median'
