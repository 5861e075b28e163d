# docs/
dist_man_MANS += docs/gpumem-job.1 docs/gpumem-run.1 docs/gpumem-scaling.1
dist_doc_DATA += \
	docs/accuracy.md \
	docs/before_after.gnuplot \
	docs/design.md \
	docs/laboratory.md \
	docs/performance.md \
	docs/scaling.md

# The pictures of laboratory.md, which is beside their folder.
laboratorydir = $(docdir)/laboratory
dist_laboratory_DATA = \
	docs/laboratory/atomics.svg \
	docs/laboratory/cache.svg \
	docs/laboratory/gather.svg \
	docs/laboratory/global.svg \
	docs/laboratory/launch.svg \
	docs/laboratory/layout.svg \
	docs/laboratory/math.svg \
	docs/laboratory/matmul.svg \
	docs/laboratory/memory.svg \
	docs/laboratory/normalize.svg \
	docs/laboratory/occupancy.svg \
	docs/laboratory/overlap.svg \
	docs/laboratory/reduce.svg \
	docs/laboratory/shared.svg \
	docs/laboratory/transfer.svg \
	docs/laboratory/transpose.svg

# Tables and pictures of scaling.md, and the script that makes those predicted.
scalingdir = $(docdir)/scaling
dist_scaling_DATA = \
	docs/scaling/four-matmul-phases.svg \
	docs/scaling/four-matmul-speedup.svg \
	docs/scaling/four-matmul.csv \
	docs/scaling/four-normalize-phases.svg \
	docs/scaling/four-normalize-speedup.svg \
	docs/scaling/four-normalize.csv \
	docs/scaling/four-reduce-phases.svg \
	docs/scaling/four-reduce-speedup.svg \
	docs/scaling/four-reduce.csv \
	docs/scaling/gpus-matmul-phases.svg \
	docs/scaling/gpus-matmul-speedup.svg \
	docs/scaling/gpus-matmul.csv \
	docs/scaling/gpus-normalize-phases.svg \
	docs/scaling/gpus-normalize-speedup.svg \
	docs/scaling/gpus-normalize.csv \
	docs/scaling/gpus-reduce-phases.svg \
	docs/scaling/gpus-reduce-speedup.svg \
	docs/scaling/gpus-reduce.csv \
	docs/scaling/hosts-matmul-phases.svg \
	docs/scaling/hosts-matmul-speedup.svg \
	docs/scaling/hosts-matmul.csv \
	docs/scaling/hosts-normalize-phases.svg \
	docs/scaling/hosts-normalize-speedup.svg \
	docs/scaling/hosts-normalize.csv \
	docs/scaling/hosts-reduce-phases.svg \
	docs/scaling/hosts-reduce-speedup.svg \
	docs/scaling/hosts-reduce.csv \
	docs/scaling/predicted.svg
dist_scaling_SCRIPTS = docs/scaling/predict
