set terminal svg size 900,460 dynamic background rgb 'white' font 'sans-serif,14'
set multiplot layout 1,2
set key right top
set logscale xy
set xlabel 'counters'
set ylabel 'standard deviation, percent of the total'
set title '131,072 differing records'
set xtics (16, 64, 256, 1024, 4096)
plot data index 0 every ::1 using 1:2 with points linetype 1 title 'measured', \
  data index 0 every ::1 using 1:3 with lines linetype 6 title 'sqrt(2/n)', \
  '+' using (512):(6) every ::::0 with points linetype 2 pointsize 1.5 title 'the paper'

# With 4 bits the deviation is small where the mean is far off; the total error includes both.
rms(mean, deviation) = sqrt(deviation ** 2 + (100 * (mean - 1)) ** 2)
set key left top
set xtics auto
set format x '10^{%T}'
set yrange [1:100]
set xlabel 'differing records'
set ylabel 'root mean square of the error, percent'
set title '1 KB'
plot data index 1 every ::2 using 1:(rms($2, $3)) with linespoints linetype 1 \
    title '1024 counters of 8 bits', \
  data index 1 every ::2 using 1:(rms($4, $5)) with linespoints linetype 2 title '512 of 16 bits', \
  data index 1 every ::2 using 1:(rms($6, $7)) with linespoints linetype 3 title '2048 of 4 bits'
unset multiplot
