set terminal svg size 760,820 dynamic background rgb 'white' font 'sans-serif,14'
set lmargin 11
set xrange [0:70]
set multiplot layout 3,1
set title 'Dynamic resizing (figure 13): the burst from 40 s on is ours'
set key left top
set logscale y
set format y '10^{%T}'
set yrange [1e-4:300]
set ylabel 'error'
plot 0.01 with lines linetype 5 dashtype 2 linewidth 1 title 'target', \
  data every ::1 using 1:3 with lines linetype 2 title 'as printed', \
  data every ::1 using 1:4 with lines linetype 2 dashtype 2 linewidth 1 \
    title 'as printed, by equation 3', \
  data every ::1 using 1:8 with lines linetype 4 title 'made safe', \
  data every ::1 using 1:12 with lines linetype 1 title 'by fill'
unset title
unset logscale y
set format y '%g'
set yrange [0:70]
set ylabel "filters, lanes\ndashed: period in s"
plot data every ::1 using 1:5 with steps linetype 2 title 'as printed', \
  data every ::1 using 1:6 with lines linetype 2 dashtype 2 notitle, \
  data every ::1 using 1:9 with steps linetype 4 title 'made safe', \
  data every ::1 using 1:10 with lines linetype 4 dashtype 2 notitle, \
  data every ::1 using 1:13 with steps linetype 1 title 'by fill'
set yrange [0:*]
set xlabel 'seconds'
set ylabel "ids of the window\nforgotten"
plot data every ::1 using 1:7 with steps linetype 2 title 'as printed', \
  data every ::1 using 1:11 with steps linetype 4 title 'made safe', \
  data every ::1 using 1:15 with steps linetype 1 title 'by fill'
unset multiplot
