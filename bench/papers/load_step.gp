set terminal svg size 760,640 dynamic background rgb 'white' font 'sans-serif,14'
set lmargin 11
set xrange [60:400]
set logscale y
set format y '10^{%T}'
set multiplot layout 2,1
set title 'The load steps up by 100 at 120 s, and down at 240 s'
set key right top
set yrange [5e-6:3000]
set ylabel 'error, measured'
plot 1e-3 with lines linetype 5 dashtype 2 linewidth 1 title 'goal', \
  data every ::1 using 1:10 with lines linetype 2 title 'Algorithm 3, as printed', \
  data every ::1 using 1:7 with lines linetype 4 title 'Algorithm 3, made safe', \
  data every ::1 using 1:4 with lines linetype 1 title 'by fill'
unset title
set yrange [10:200000]
set xlabel 'seconds'
set ylabel 'memory, kB'
plot data every ::1 using 1:11 with lines linetype 2 title 'as printed', \
  data every ::1 using 1:8 with lines linetype 4 title 'made safe', \
  data every ::1 using 1:5 with lines linetype 1 title 'by fill'
unset multiplot
