# jobs/: job scripts for clusters, to copy and edit.
jobsdir = $(pkgdatadir)/jobs
dist_jobs_DATA = \
	jobs/matmul.sbatch \
	jobs/normalize.sbatch
