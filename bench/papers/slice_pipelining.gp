set title 'Messages for a lookup: 4 functions, 40 slices (figure 7c)'
set xlabel 'distinct events, percent'
set ylabel 'messages'
set xrange [10:90]
set xtics (20, 50, 80)
set yrange [0:4.5]
set key left bottom
plot data every ::1 using 1:2 with linespoints linetype 2 title 'vertical, parallel', \
  data every ::1 using 1:3 with linespoints linetype 1 title 'vertical, pipelined', \
  data every ::1 using 1:5 with linespoints linetype 6 title 'horizontal'
