# Two float32 images side by side, each over its own range of greys: before and after `gpumem-run normalize`.
#
#   T=tooth.h5:/exchange
#   gpumem-run normalize "$T/data[:,0,:]" --method flatfield --flat "$T/data_white[:,0,:]" --dark "$T/data_dark[:,0,:]" --log -o after.h5:/x
#   h5dump -d '/exchange/data[0,0,0;;181,1,640;]' -b LE -o before.bin tooth.h5
#   h5dump -d /x -b LE -o after.bin after.h5
#   gnuplot -e "before='before.bin'; after='after.bin'; width=640; height=181; picture='before_after.png'" before_after.gnuplot

set terminal pngcairo size 1300, 460 font ',10'
set output picture
set palette gray
unset key
set multiplot layout 1, 2
set xrange [-0.5:width - 0.5]
set yrange [height - 0.5:-0.5]
do for [i = 1:2] {
    file = i == 1 ? before : after
    set title file noenhanced
    plot file binary array=(width, height) format='%float32' endian=little using 1 with image
}
unset multiplot
