/* sample.h - internal to the ring: the times at which copies of lanes are timed. An event that tells the time keeps a
 * copy from overlapping the next one, so only a sample of them has such events. Times are seconds after the origin of a
 * run. */
#ifndef GM_SRC_STREAM_SAMPLE_H
#define GM_SRC_STREAM_SAMPLE_H

/* Seconds that belong to the sample, of something that goes on at times: at the start of a run, of which all belongs to
 * it, and later. */
typedef struct gm_sample {
    double first, later;
} gm_sample;

/* Is a copy to be timed that begins at this time? Also one that may last until the sample goes on. */
int gm_sample_has(double begin);

/* Adds the seconds of [begin, end] that belong to the sample, if begin is before end. */
void gm_sample_add(gm_sample *sample, double begin, double end);

/* The seconds of the whole of [0, end] that are expected by the sample: at most `end`. */
double gm_sample_estimate(const gm_sample *sample, double end);

#endif
