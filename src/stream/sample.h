/* sample.h - internal to the ring: the times at which copies of lanes are timed. An event that tells the time keeps a
 * copy from overlapping the next one, so only a sample of them has such events. Times are seconds after the origin of a
 * run. */
#ifndef GM_SRC_STREAM_SAMPLE_H
#define GM_SRC_STREAM_SAMPLE_H

/* Seconds of [0, end] that belong to the sample: all of a short run, and a part of each further period. */
double gm_sample_seconds(double end);

/* Is a copy to be timed that begins at this time? Also one that may last until the sample goes on. */
int gm_sample_has(double begin);

#endif
