# docs/
dist_man_MANS += docs/gpumem-run.1
dist_doc_DATA += \
	docs/accuracy.md \
	docs/before_after.gnuplot \
	docs/design.md \
	docs/performance.md
