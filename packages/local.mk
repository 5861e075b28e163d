# packages/: how the program gets to other machines. Files for completion and the module file are made here and
# installed; recipes are only distributed, as each has a tool of its own that reads it.
EXTRA_DIST += \
	packages/completion/bash.in \
	packages/completion/zsh.in

# Completion of command lines. A program prints the tables from which the program itself is made; where it cannot run,
# as when a compiler for another machine makes it, there is no completion.
if BUILD_COMPLETION
noinst_PROGRAMS += packages/completion/generate
bashcompletion_DATA = packages/completion/gpumem-run
zshcompletion_DATA = packages/completion/_gpumem-run
endif
packages_completion_generate_SOURCES = packages/completion/generate.c
packages_completion_generate_LDADD =
MOSTLYCLEANFILES += packages/completion/table
CLEANFILES += packages/completion/gpumem-run packages/completion/_gpumem-run packages/completion/generate$(EXEEXT)

completion_of = $(SED) -e '/^@TABLE@$$/r packages/completion/table' -e '/^@TABLE@$$/d'

packages/completion/table: packages/completion/generate$(EXEEXT)
	$(AM_V_GEN)packages/completion/generate$(EXEEXT) >$@.new && mv $@.new $@
packages/completion/gpumem-run: packages/completion/bash.in packages/completion/table
	$(AM_V_GEN)$(completion_of) $(top_srcdir)/packages/completion/bash.in >$@.new && mv $@.new $@
packages/completion/_gpumem-run: packages/completion/zsh.in packages/completion/table
	$(AM_V_GEN)$(completion_of) $(top_srcdir)/packages/completion/zsh.in >$@.new && mv $@.new $@

# The module file, for Environment Modules and Lmod: module use DATADIR/modulefiles.
EXTRA_DIST += packages/module/gpumem.in
CLEANFILES += packages/module/$(VERSION)
moduledir = $(datadir)/modulefiles/gpumem
module_DATA = packages/module/$(VERSION)
packages/module/$(VERSION): packages/module/gpumem.in Makefile
	$(AM_V_at)$(MKDIR_P) packages/module
	$(AM_V_GEN)$(SED) -e 's|@bindir[@]|$(bindir)|' -e 's|@datadir[@]|$(datadir)|' -e 's|@pkgdatadir[@]|$(pkgdatadir)|' \
		-e 's|@prefix[@]|$(prefix)|' -e 's|@VERSION[@]|$(VERSION)|' -e 's|@MPI_NAME[@]|$(MPI_NAME)|' \
		$(top_srcdir)/packages/module/gpumem.in >$@.new && mv $@.new $@

# Recipes of containers, and of Spack.
dist_doc_DATA += CHANGELOG.md
EXTRA_DIST += \
	CITATION.cff \
	packages/container/Dockerfile \
	packages/container/gpumem.def \
	packages/spack/spack_repo/gpumem/packages/gpumem/package.py \
	packages/spack/spack_repo/gpumem/repo.yaml

# make deb: Debian's package of the distribution, configured as this build is, in deb/. The maintainer is that of
# DEBFULLNAME and DEBEMAIL, as everywhere in Debian.
EXTRA_DIST += \
	packages/debian/changelog.in \
	packages/debian/control.in \
	packages/debian/copyright \
	packages/debian/gpumem.lintian-overrides \
	packages/debian/rules.in \
	packages/debian/source/format
DEB_BUILD_OPTIONS = nocheck
DEB_DISTRIBUTION = unstable
deb_sed = $(SED) -e "s|@DEB_MAINTAINER[@]|$${DEBFULLNAME:-The gpumem authors} <$${DEBEMAIL:-`id -un`@`hostname -f`}>|" \
	-e "s|@DEB_DATE[@]|`date -R`|" -e 's|@DEB_DISTRIBUTION[@]|$(DEB_DISTRIBUTION)|' -e 's|@VERSION[@]|$(VERSION)|' \
	-e 's|@DEB_MPI_DEV[@]|$(DEB_MPI_DEV)|' -e 's|@DEB_MPI_BIN[@]|$(DEB_MPI_BIN)|' \
	-e 's|@DEB_HDF5_DEV[@]|$(DEB_HDF5_DEV)|' \
	-e 's|@DEB_BLAS_DEV[@]|$(DEB_BLAS_DEV)|' -e 's|@DEB_SECTION[@]|$(DEB_SECTION)|' \
	-e 's|@DEB_CUDA_WORDS[@]|$(DEB_CUDA_WORDS)|' -e "s|@DEB_CONFIGURE[@]|$(DEB_CONFIGURE)|"
.PHONY: deb
deb: dist
	rm -rf deb && mkdir deb && cp $(distdir).tar.gz deb/$(PACKAGE)_$(VERSION).orig.tar.gz
	cd deb && tar xf $(PACKAGE)_$(VERSION).orig.tar.gz && mkdir -p $(distdir)/debian/source
	cp $(top_srcdir)/packages/debian/copyright $(top_srcdir)/packages/debian/gpumem.lintian-overrides \
		deb/$(distdir)/debian/
	cp $(top_srcdir)/packages/debian/source/format deb/$(distdir)/debian/source/
	for file in changelog control rules; do \
		$(deb_sed) $(top_srcdir)/packages/debian/$$file.in >deb/$(distdir)/debian/$$file || exit; done
	chmod +x deb/$(distdir)/debian/rules
	cd deb/$(distdir) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL DEB_BUILD_OPTIONS='$(DEB_BUILD_OPTIONS)' \
		dpkg-buildpackage -us -uc
	rm -rf deb/$(distdir)
	ls deb

clean-local: clean-deb
.PHONY: clean-deb
clean-deb:
	rm -rf deb
