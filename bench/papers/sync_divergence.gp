set terminal svg size 1300,480 dynamic background rgb 'white' font 'sans-serif,14'
set multiplot layout 1,3
set xlabel 'differing records, percent'
set ylabel 'MB'
set title 'figure 9: bytes'
plot data index 0 every ::1 using 1:($3 / 1e6) with linespoints linetype 1 title 'all', \
  data index 0 every ::1 using 1:($5 / 1e6) with linespoints linetype 2 title 'without records', \
  data index 0 every ::1 using 1:($6 / 1e6) with linespoints linetype 3 \
    title 'the paper, without records', \
  data index 0 every ::1 using 1:($7 / 1e6) with lines linetype 6 dashtype 2 title 'enumeration'

set title 'figure 10: time'
set ylabel 'CPU seconds of both ends'
plot data index 0 every ::1 using 1:9 with linespoints linetype 1 notitle

set title 'figure 15: bytes over enumeration'
set ylabel 'bytes / bytes of one set'
set logscale xy
plot for [i = 2:5] data index 1 every ::1 using 1:i with linespoints linetype i \
    title word('. walk sketch list copy', i), \
  data index 1 every ::1 using 1:6 with points linetype 1 pointsize 1.5 title "the plan's choice"
unset multiplot
