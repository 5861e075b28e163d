# jobs/: job scripts for clusters, to copy and edit, and the program that they share, which is found on PATH.
jobsdir = $(pkgdatadir)/jobs
dist_jobs_DATA = \
	jobs/README.md \
	jobs/bench.sbatch \
	jobs/matmul.sbatch \
	jobs/normalize.sbatch \
	jobs/reduce.sbatch
dist_bin_SCRIPTS = jobs/gpumem-job
