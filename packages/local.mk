# packages/: how the program gets to other machines. Files for completion and the module file are made here and installed;
# recipes are only distributed, as each has a tool of its own that reads it.
EXTRA_DIST += \
	packages/completion/bash.in \
	packages/completion/zsh.in

# Completion of command lines. A program prints the tables from which the program itself is made; where it cannot run, as when
# a compiler for another machine makes it, there is no completion.
if BUILD_COMPLETION
noinst_PROGRAMS += packages/completion/generate
bashcompletion_DATA = packages/completion/gpumem-run
zshcompletion_DATA = packages/completion/_gpumem-run
endif
packages_completion_generate_SOURCES = packages/completion/generate.c
packages_completion_generate_LDADD =
MOSTLYCLEANFILES += packages/completion/table
CLEANFILES += packages/completion/gpumem-run packages/completion/_gpumem-run packages/completion/generate$(EXEEXT)

packages/completion/table: packages/completion/generate$(EXEEXT)
	$(AM_V_GEN)packages/completion/generate$(EXEEXT) >$@.new && mv $@.new $@
packages/completion/gpumem-run: packages/completion/bash.in packages/completion/table
	$(AM_V_GEN)$(SED) -e '/^@TABLE@$$/r packages/completion/table' -e '/^@TABLE@$$/d' $(top_srcdir)/packages/completion/bash.in >$@.new && mv $@.new $@
packages/completion/_gpumem-run: packages/completion/zsh.in packages/completion/table
	$(AM_V_GEN)$(SED) -e '/^@TABLE@$$/r packages/completion/table' -e '/^@TABLE@$$/d' $(top_srcdir)/packages/completion/zsh.in >$@.new && mv $@.new $@
