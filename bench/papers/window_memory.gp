# A data set for each structure, in the order of the table: 0 to 3 newest plain with 7, 15, 31, 63
# past lanes, 4 to 15 blocked4, blocked3, blocked2, 16 to 27 any, pairs_or_oldest, split_pairs with
# 1, 6, 14 and 30, 28 to 32 sliding, 33 age-partitioned, 34 exact, 35 to 37 client.
set title 'Bits for an id in the window'
set xlabel 'error, measured'
set ylabel 'bits'
set logscale xy
set format x '10^{%T}'
set xrange [2e-2:5e-5] reverse
set yrange [2:1000]
set ytics (3, 10, 20, 30, 50, 100, 200, 500)
set key outside right top Left reverse samplen 1.5 font ',12'
plot data index 34 every ::1 using 2:3 with lines linetype 5 title 'exact', \
  data index 30 every ::1 using 4:3 with linespoints linetype 6 title 'sliding, 8 bits', \
  data index 28 every ::1 using 4:3 with linespoints linetype 6 dashtype 2 \
    title 'sliding, 4 bits', \
  data index 17 every ::1 using 4:3 with linespoints linetype 2 dashtype 2 title 'any, 6 past', \
  data index 22 every ::1 using 4:3 with linespoints linetype 2 title 'pairs or oldest, 14', \
  data index 33 every ::1 using 4:3 with linespoints linetype 5 dashtype 3 \
    title 'age-partitioned', \
  data index 12 every ::1 using 4:3 with linespoints linetype 4 dashtype 2 \
    title 'newest blocked2, 7', \
  data index 8 every ::1 using 4:3 with linespoints linetype 4 title 'newest blocked3, 7', \
  data index 26 every ::1 using 4:3 with linespoints linetype 3 title 'split pairs, 14', \
  data index 0 every ::1 using 4:3 with linespoints linetype 1 title 'newest plain, 7', \
  data index 35 every ::1 using 2:3 with lines linetype 3 dashtype 2 title 'client, 2000 each'
