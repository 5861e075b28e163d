# jobs/: job scripts for clusters, to copy and edit, and the programs that they start, which are found on PATH.
jobsdir = $(pkgdatadir)/jobs
dist_jobs_DATA = \
	jobs/README.md \
	jobs/bench.sbatch \
	jobs/matmul.sbatch \
	jobs/normalize.sbatch \
	jobs/reduce.sbatch \
	jobs/scaling.sbatch
dist_bin_SCRIPTS = jobs/gpumem-job jobs/gpumem-scaling
# In a clone it goes by this name as well.
EXTRA_DIST += jobs/scaling
