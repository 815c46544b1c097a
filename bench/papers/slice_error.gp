# Three data sets, for the targets 0.02, 0.05 and 0.08, of each number of ids.
set terminal svg size 1100,460 dynamic background rgb 'white' font 'sans-serif,14'
set key below
set bmargin 8
set multiplot layout 1,3
set xlabel 'slices'
set xrange [0:105]
set yrange [0:0.03]
set ylabel 'false positives of the whole stream'
do for [i = 0:2] {
  set title word('4300 5700 2049', i + 1) . ' ids (figure ' . word('5a 7a 7b', i + 1) . ')'
  plot for [t = 0:2] data index 3 * i + t using 1:2 with linespoints linetype 2 \
    title (t == 0 ? 'horizontal' : ''), \
    for [t = 0:2] data index 3 * i + t using 1:3 with linespoints linetype 1 \
    title (t == 0 ? 'vertical' : ''), \
    for [t = 0:2] data index 3 * i + t using 1:8 with lines linetype 2 dashtype 2 linewidth 1 \
    title (t == 0 ? 'horizontal, expected' : ''), \
    for [t = 0:2] data index 3 * i + t using 1:6 with lines linetype 1 dashtype 2 linewidth 1 \
    title (t == 0 ? 'vertical, expected' : '')
}
unset multiplot
