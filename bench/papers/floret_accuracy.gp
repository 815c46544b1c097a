set key below
set xlabel 'time'
set ylabel 'records that the other set does not have'
set xrange [0:150]
set yrange [0:*]
plot data index 0 every ::1 using 1:2 with lines linetype 6 title 'A alone', \
  data index 0 every ::1 using 1:3 with lines linetype 5 title 'B alone', \
  data index 0 every ::1 using 1:4:6 with yerrorbars linetype 1 linewidth 1 pointsize 0.3 \
    title 'A alone, estimated', \
  data index 0 every ::1 using 1:5:6 with yerrorbars linetype 2 linewidth 1 pointsize 0.3 \
    title 'B alone, estimated'
