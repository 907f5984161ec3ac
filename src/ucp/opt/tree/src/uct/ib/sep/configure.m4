# SPDX-License-Identifier: BSD-3-Clause

# The sep_mlx5 transport as a module of UCX. It needs verbs, mlx5dv and the UAR
# object that came with mlx5dv_devx_alloc_uar().
sep_happy=no
AC_ARG_WITH([sep],
    [AS_HELP_STRING([--with-sep],
        [Build the sep_mlx5 transport (default is guess).])],
    [], [with_sep=guess])

AS_IF([test "x$with_sep" != xno && test "x$with_ib" != xno],
    [save_LDFLAGS="$LDFLAGS"
     save_CPPFLAGS="$CPPFLAGS"
     LDFLAGS="$IBVERBS_LDFLAGS $LDFLAGS"
     CPPFLAGS="$IBVERBS_CPPFLAGS $CPPFLAGS"
     AC_CHECK_HEADER([infiniband/mlx5dv.h],
         [AC_CHECK_LIB([mlx5], [mlx5dv_devx_alloc_uar],
             [sep_happy=yes
              uct_modules="${uct_modules}:sep"],
             [], [-libverbs])])
     LDFLAGS="$save_LDFLAGS"
     CPPFLAGS="$save_CPPFLAGS"])

AS_IF([test "x$with_sep" = xyes && test $sep_happy = no],
    [AC_MSG_ERROR([sep requested but libmlx5 or its headers are not found])])

AM_CONDITIONAL([HAVE_SEP], [test $sep_happy = yes])
AC_CONFIG_FILES([src/uct/ib/sep/Makefile])
