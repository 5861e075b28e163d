# GM_COMPLETION: the folders of completion for bash and zsh. Sets bashcompletiondir, zshcompletiondir and the automake
# conditional BUILD_COMPLETION: not for another machine, as a program that is built prints the tables.
AC_DEFUN([GM_COMPLETION], [
AC_ARG_WITH([bash-completion-dir],
    [AS_HELP_STRING([--with-bash-completion-dir=DIR], [completion for bash @<:@default: DATADIR/bash-completion/completions@:>@])],
    [], [with_bash_completion_dir='${datadir}/bash-completion/completions'])
AC_ARG_WITH([zsh-completion-dir],
    [AS_HELP_STRING([--with-zsh-completion-dir=DIR], [completion for zsh @<:@default: DATADIR/zsh/site-functions@:>@])],
    [], [with_zsh_completion_dir='${datadir}/zsh/site-functions'])
AS_CASE([$with_bash_completion_dir:$with_zsh_completion_dir],
    [no:*|yes:*|*:no|*:yes], [AC_MSG_ERROR([--with-bash-completion-dir and --with-zsh-completion-dir need a folder])])
AC_SUBST([bashcompletiondir], [$with_bash_completion_dir])
AC_SUBST([zshcompletiondir], [$with_zsh_completion_dir])
AM_CONDITIONAL([BUILD_COMPLETION], [test "$cross_compiling" != yes])
])
