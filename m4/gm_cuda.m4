# GM_CUDA: the CUDA toolkit, if there is one. Sets NVCC, NVCC_ARCH (its -gencode flags), CUDA_CPPFLAGS, CUDA_LIBS and
# the automake conditional HAVE_CUDA. The runtime is linked statically: the program then starts where there is neither
# toolkit nor driver.
AC_DEFUN([GM_CUDA], [
AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda@<:@=DIR@:>@],
        [build for CUDA GPUs; DIR holds bin/nvcc @<:@default: if nvcc is on PATH or in /usr/local/cuda@:>@])],
    [], [with_cuda=auto])
AC_ARG_WITH([cuda-arch],
    [AS_HELP_STRING([--with-cuda-arch=LIST],
        [machine code for these, as in 80,90a; ptx80: PTX @<:@default: 80, 90a, the newest that nvcc knows, ptx80@:>@])],
    [], [with_cuda_arch=default])
AC_ARG_VAR([NVCC], [CUDA compiler])
AC_ARG_VAR([NVCCFLAGS], [flags for NVCC, as in "-O3 -ccbin g++-13"])

gm_cuda_why=
NVCC_ARCH=
CUDA_CPPFLAGS=
CUDA_LIBS=
AS_CASE([$with_cuda],
    [no], [gm_cuda_why="not wanted"],
    [yes|auto],
    [AC_PATH_PROG([NVCC], [nvcc], [], [$PATH$PATH_SEPARATOR/usr/local/cuda/bin])
     gm_cuda_places="on PATH or in /usr/local/cuda/bin"],
    [AC_PATH_PROG([NVCC], [nvcc], [], [$with_cuda/bin])
     gm_cuda_places="in $with_cuda/bin"])
gm_cuda_arch_given=$with_cuda_arch
AS_IF([test $with_cuda != no],
    [AS_IF([test -n "$NVCC"], [gm_cuda_try], [gm_cuda_why="no nvcc $gm_cuda_places"])])

AS_IF([test -n "$gm_cuda_why" && test $with_cuda != no && test $with_cuda != auto],
    [AC_MSG_ERROR([CUDA was asked for: $gm_cuda_why])])
AS_IF([test -n "$gm_cuda_why" && test $with_cuda != no && test -n "$NVCC" && test "$gm_cuda_arch_given" != default],
    [AC_MSG_ERROR([--with-cuda-arch=$gm_cuda_arch_given: $gm_cuda_why])])
AS_IF([test -z "$gm_cuda_why"], [AC_DEFINE([GM_HAVE_CUDA], [1], [Define to 1 if the program is built for CUDA devices.])])
AM_CONDITIONAL([HAVE_CUDA], [test -z "$gm_cuda_why"])
AC_SUBST([NVCC_ARCH])
AC_SUBST([CUDA_CPPFLAGS])
AC_SUBST([CUDA_LIBS])
])

# Checks what nvcc compiles, and whether the result links with CC. Sets gm_cuda_why if it does not.
m4_define([gm_cuda_try], [
: ${NVCCFLAGS="-O3"}
gm_cuda_version=`$NVCC --version | sed -n ['s/.*release \([0-9.]*\),.*/\1/p']`
AS_IF([test "$with_cuda_arch" = default], [gm_cuda_default_arch])
for gm_arch in `AS_ECHO(["$with_cuda_arch"]) | tr ',' ' '`; do
    AS_CASE([$gm_arch],
        [ptx*], [gm_number=`AS_ECHO(["$gm_arch"]) | sed 's/^ptx//'`
            NVCC_ARCH="$NVCC_ARCH -gencode arch=compute_$gm_number,code=compute_$gm_number"],
        [gm_number=`AS_ECHO(["$gm_arch"]) | sed 's/^sm_//'`
            NVCC_ARCH="$NVCC_ARCH -gencode arch=compute_$gm_number,code=sm_$gm_number"
            AS_IF([test "$gm_number" = 90a], [NVCC_ARCH="$NVCC_ARCH -DGM_HAVE_SM90A"])])
done

# Toolkits put their headers and libraries in different places, and nvcc knows them.
for gm_word in `$NVCC --dryrun -x cu -c /dev/null 2>&1 | sed -n ['s/"//g; s/^#\$ TOP=/-T/p; s/^#\$ INCLUDES=//p; s/^#\$ LIBRARIES=//p']`; do
    AS_CASE([$gm_word],
        [-T*], [gm_top=`AS_ECHO(["$gm_word"]) | sed 's/^-T//'`
            AS_IF([test -d "$gm_top/include"], [CUDA_CPPFLAGS="-isystem $gm_top/include"])
            gm_cuda_places="$gm_top/lib64 $gm_top/lib"],
        [-I*], [CUDA_CPPFLAGS="-isystem `AS_ECHO(["$gm_word"]) | sed 's/^-I//'`"],
        [-L*], [gm_cuda_places="$gm_cuda_places `AS_ECHO(["$gm_word"]) | sed 's/^-L//'`"])
done
for gm_place in $gm_cuda_places; do
    AS_IF([test -f "$gm_place/libcudart_static.a"], [CUDA_LIBS="-L$gm_place"])
done
CUDA_LIBS="$CUDA_LIBS -lcudart_static -ldl -lrt -lpthread"

AC_MSG_CHECKING([whether $NVCC compiles for $with_cuda_arch])
cat >conftest_cuda.cu <<GM_EOF
static __global__ void fill(float *x) { *x = 1.0f; }
extern "C" int launch(float *x) { fill<<<1, 1>>>(x); return (int)cudaGetLastError(); }
GM_EOF
AS_IF([$NVCC $NVCC_ARCH $gm_nvccflags $NVCCFLAGS -c -o conftest_cuda.o conftest_cuda.cu >&AS_MESSAGE_LOG_FD 2>&1],
    [AC_MSG_RESULT([yes])
     GM_TRY_LINK([the CUDA runtime], [$CUDA_CPPFLAGS], [conftest_cuda.o $CUDA_LIBS],
        [AC_LANG_PROGRAM([[#include <cuda_runtime_api.h>
int launch(float *x);]], [[return launch(0) + cudaGetDeviceCount(0);]])],
        [],
        [gm_cuda_why="$CC does not link what $NVCC compiled: see config.log"])],
    [AC_MSG_RESULT([no])
     gm_cuda_why="$NVCC does not compile for $with_cuda_arch: see config.log (another host compiler: NVCCFLAGS=\"-O3 -ccbin g++-13\")"])
rm -f conftest_cuda.cu conftest_cuda.o
])

# 80, 90a and the newest, as far as nvcc knows them; PTX of the oldest of them for every other device.
m4_define([gm_cuda_default_arch], [
gm_known=`$NVCC --list-gpu-code 2>/dev/null | sed 's/^sm_//' | sort -n`
gm_oldest=`AS_ECHO(["$gm_known"]) | sed -n 1p`
gm_newest=`AS_ECHO(["$gm_known"]) | sed -n '$p'`
AS_IF([test "${gm_oldest:-80}" -lt 80], [gm_oldest=80])
with_cuda_arch=$gm_oldest
# 90a, the variant with the instructions of Hopper, is known from CUDA 12 on.
AS_CASE([" "`AS_ECHO(["$gm_known"]) | tr '\n' ' '`], [*" 90 "*],
    [AS_CASE([$gm_cuda_version], [11.*], [with_cuda_arch="$with_cuda_arch,90"], [with_cuda_arch="$with_cuda_arch,90a"])])
AS_CASE([",$with_cuda_arch,"], [*",$gm_newest,"*|*",${gm_newest}a,"*], [], [with_cuda_arch="$with_cuda_arch,$gm_newest"])
with_cuda_arch="$with_cuda_arch,ptx$gm_oldest"
])
