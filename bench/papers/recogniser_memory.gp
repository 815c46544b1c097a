# A data set for each sort of ids: 0 numbered, 1 opaque. A bar for each recogniser.
set title 'Bytes for a remembered operation'
set style data histograms
set style fill solid 0.8
set datafile separator '\t'
set ylabel 'bytes'
set logscale y
set yrange [0.1:200]
set xtics rotate by -20
plot data index 0 every ::1 using 2:xticlabels(1) linetype 1 title 'numbered', \
  newhistogram '', data index 1 every ::1 using 2:xticlabels(1) linetype 2 title 'opaque'
