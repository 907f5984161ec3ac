# SPDX-License-Identifier: BSD-3-Clause
#
# Missing dependencies are collected first and reported together, so that one
# apt-get line repairs the machine instead of one configure run per package.

# SEP_DEPS_INIT
AC_DEFUN([SEP_DEPS_INIT], [
    sep_missing_text=
    sep_missing_pkgs=
    PKG_PROG_PKG_CONFIG
])

# SEP_MISSING(WHAT, DEBIAN-PACKAGE)
AC_DEFUN([SEP_MISSING], [
    AS_VAR_APPEND([sep_missing_text], ["
  $1: Debian package $2"])
    AS_VAR_APPEND([sep_missing_pkgs], [" $2"])
])

# SEP_DEPS_FINISH
# Ends configure if anything that the build cannot do without was missing.
AC_DEFUN([SEP_DEPS_FINISH], [
    AS_IF([test -n "$sep_missing_text"],
          [AC_MSG_ERROR([missing dependencies:$sep_missing_text

Install them with: apt-get install$sep_missing_pkgs])])
])

# SEP_CHECK_DEVICE
# The software device is for one processor. What of it is for none in particular
# is tested on all.
AC_DEFUN([SEP_CHECK_DEVICE], [
    AC_ARG_ENABLE([device],
        [AS_HELP_STRING([--disable-device],
             [do not build the software device, its programs and what is tested
              with it; default: it is built on x86-64])],
        [], [enable_device=auto])
    AS_CASE([$host_cpu], [x86_64], [sep_device_cpu=yes], [sep_device_cpu=no])
    AM_CONDITIONAL([HAVE_DEVICE_CPU], [test $sep_device_cpu = yes])
    AS_IF([test "x$enable_device" = xyes && test $sep_device_cpu = no],
          [AC_MSG_ERROR(m4_normalize([
               --enable-device: the software device interprets the stores of an
               x86-64, and this is $host_cpu; docs/aarch64.md says what is
               missing]))])
    AS_IF([test "x$enable_device" = xno],
          [sep_device=no
           sep_device_reason=--disable-device],
          [test $sep_device_cpu = no],
          [sep_device=no
           sep_device_reason="it needs an x86-64, see docs/aarch64.md"],
          [sep_device=yes])
    AM_CONDITIONAL([HAVE_DEVICE], [test $sep_device = yes])
])

# SEP_CHECK_VERBS
# libibverbs and libmlx5, unmodified, as packaged.
AC_DEFUN([SEP_CHECK_VERBS], [
    AC_CHECK_HEADER([rdma/mlx5-abi.h], [],
                    [SEP_MISSING([kernel header rdma/mlx5-abi.h],
                                 [linux-libc-dev])])
    sep_have_verbs=yes
    AC_CHECK_HEADER([infiniband/verbs.h], [], [sep_have_verbs=no])
    AC_CHECK_HEADER([infiniband/mlx5dv.h], [], [sep_have_verbs=no])
    sep_save_LIBS=$LIBS
    AC_CHECK_LIB([ibverbs], [ibv_get_device_list], [], [sep_have_verbs=no])
    AC_CHECK_LIB([mlx5], [mlx5dv_init_obj], [], [sep_have_verbs=no],
                 [-libverbs])
    # Since rdma-core 36
    AC_CHECK_DECLS([ibv_query_qp_data_in_order], [], [],
                   [[#include <infiniband/verbs.h>]])
    LIBS=$sep_save_LIBS
    VERBS_LIBS="-lmlx5 -libverbs"
    AC_SUBST([VERBS_LIBS])
    AS_IF([test "x$sep_have_verbs" = xno],
          [SEP_MISSING([libibverbs and libmlx5 with their headers],
                       [libibverbs-dev])])
])

# SEP_CHECK_JSON
# What the tools say to programs. Numbers without sign are there since 0.14.
AC_DEFUN([SEP_CHECK_JSON], [
    PKG_CHECK_MODULES([JSON], [json-c >= 0.14], [],
                      [SEP_MISSING([json-c], [libjson-c-dev])])
])

# SEP_CHECK_GTEST
AC_DEFUN([SEP_CHECK_GTEST], [
    AC_ARG_ENABLE([gtest],
        [AS_HELP_STRING([--disable-gtest],
             [do not build the unit tests; default: built if GoogleTest is
              installed, an error with --enable-gtest if it is not])],
        [], [enable_gtest=auto])
    sep_gtest=no
    AS_IF([test "x$enable_gtest" != xno],
          [PKG_CHECK_MODULES([GTEST], [gtest], [sep_gtest=yes], [:])])
    AS_IF([test "x$enable_gtest" = xyes && test $sep_gtest = no],
          [SEP_MISSING([GoogleTest], [libgtest-dev])])
    AS_IF([test $sep_gtest = yes],
          [GTEST_LIBS="-lgtest_main $GTEST_LIBS -lpthread $CXX_SANITIZER_LIBS"])
    AM_CONDITIONAL([HAVE_GTEST], [test $sep_gtest = yes])
    AC_ARG_ENABLE([precompiled-headers],
        [AS_HELP_STRING([--enable-precompiled-headers],
             [compile headers that all unit tests include once (with GCC);
              compiler caches know nothing of that])],
        [], [enable_precompiled_headers=no])
    AM_CONDITIONAL([PRECOMPILED_HEADERS],
                   [test "x$enable_precompiled_headers" = xyes])
])

# SEP_CHECK_MPI
# The test jobs are built once per MPI implementation. None is required.
AC_DEFUN([SEP_CHECK_MPI], [
    AC_ARG_VAR([MPICC_MPICH], [MPICH compiler wrapper])
    AC_ARG_VAR([MPICC_OPENMPI], [Open MPI compiler wrapper])
    AC_ARG_VAR([OSHCC], [OpenSHMEM compiler wrapper])
    AC_PATH_PROG([MPICC_MPICH], [mpicc.mpich], [no])
    AC_PATH_PROG([MPICC_OPENMPI], [mpicc.openmpi], [no])
    AC_PATH_PROG([OSHCC], [oshcc], [no])
    AM_CONDITIONAL([HAVE_MPICH], [test "x$MPICC_MPICH" != xno])
    AM_CONDITIONAL([HAVE_OPENMPI], [test "x$MPICC_OPENMPI" != xno])
    AM_CONDITIONAL([HAVE_OSHMEM], [test "x$OSHCC" != xno])
])

# SEP_SUMMARY
AC_DEFUN([SEP_SUMMARY], [
    AS_IF([test "x$MPICC_MPICH" = xno],
          [sep_sum_mpich="not found (Debian package libmpich-dev)"],
          [sep_sum_mpich=$MPICC_MPICH])
    AS_IF([test "x$MPICC_OPENMPI" = xno],
          [sep_sum_openmpi="not found (Debian package libopenmpi-dev)"],
          [sep_sum_openmpi=$MPICC_OPENMPI])
    AS_IF([test "x$OSHCC" = xno],
          [sep_sum_oshmem="not found (Debian package libopenmpi-dev)"],
          [sep_sum_oshmem=$OSHCC])
    AS_IF([test $sep_device = yes],
          [sep_sum_device="libmlx5sim.so, mlx5sim-run, mlx5sim-stat"],
          [sep_sum_device="not built ($sep_device_reason)"])
    AS_IF([test "x$sep_ucx" = xyes],
          [sep_sum_transport="ucx-$UCX_SERIES/libuct_sep.so.0 and libsep_preload.so"
           AS_IF([test -n "$UCX_OTHER_SERIES"],
                 [AS_VAR_APPEND([sep_sum_transport], ["
    modules as well    for UCX $UCX_OTHER_SERIES"])])
           sep_ucx_api_text=`echo $sep_ucx_api | fold -s -w 54 |
                             sed '2,$s/^/                       /'`],
          [sep_sum_transport="not built ($sep_ucx_reason)"])
    AS_IF([test "x$sep_gtest" = xyes],
          [sep_sum_gtest="sim_gtest"
           AS_IF([test "x$sep_ucx" = xyes],
                 [sep_sum_gtest="$sep_sum_gtest and sep_gtest"])],
          [test "x$enable_gtest" = xno],
          [sep_sum_gtest="not built (--disable-gtest)"],
          [sep_sum_gtest="not built (Debian package libgtest-dev)"])

    AC_MSG_NOTICE([
==============================================================================
SEP $PACKAGE_VERSION

  Build
    configuration      $sep_mode
    sanitizers         ${sep_sanitizers:-none}
    C compiler         $CC $CFLAGS
    C++ compiler       $CXX $CXXFLAGS
    warnings           ${sep_warnings_are}
    install prefix     $prefix

  Will be built
    software device    $sep_sum_device
    transport          $sep_sum_transport
    unit tests         $sep_sum_gtest

  UCX
    loads the module   ${sep_ucx_where:-not found}
    version            ${sep_ucx_version:-unknown}
    configuration      ${sep_ucx_abi:-unknown}
    private headers    ${UCX_SOURCE:-not found}
    as 1.13, but for   ${sep_ucx_api_text:-nothing}

  Test jobs (make job-programs)
    MPICH              $sep_sum_mpich
    Open MPI           $sep_sum_openmpi
    OpenSHMEM          $sep_sum_oshmem
==============================================================================])
])
