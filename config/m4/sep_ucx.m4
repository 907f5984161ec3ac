# SPDX-License-Identifier: BSD-3-Clause

# SEP_CHECK_UCX
# Two things are needed to build the transport: the UCX that will load it
# (libraries, public headers, and the configuration it was compiled with, which
# decides the layout of shared structures), and the source of the same version,
# for the private UCT headers that no package installs.
AC_DEFUN([SEP_CHECK_UCX], [
    AC_ARG_WITH([ucx],
        [AS_HELP_STRING([--with-ucx=PREFIX],
             [the UCX installation that will load the transport; default: the
              system's, or what the environment's SEP_UCX says; "auto" is
              the system's if its source can be had; "no", or "auto" without
              the source, builds the software device only])],
        [], [with_ucx=${SEP_UCX:-system}])
    AC_ARG_VAR([SEP_UCX], [same as --with-ucx])
    AC_ARG_WITH([ucx-source],
        [AS_HELP_STRING([--with-ucx-source=DIR|ARCHIVE@<:@,...@:>@],
             [source of the same UCX version, a directory or a .tar.xz or
              .tar.gz; default: the environment's SEP_UCX_SOURCE, else obtained
              with apt by contrib/fetch-source.sh. For each source of another
              version there will be a module as well; these need not be
              installed])],
        [], [with_ucx_source=${SEP_UCX_SOURCE:-auto}])
    AC_ARG_VAR([SEP_UCX_SOURCE], [same as --with-ucx-source])
    AC_ARG_ENABLE([other-ucx],
        [AS_HELP_STRING([--enable-other-ucx],
             [the one source is of another version, which need not be
              installed; then only "make module" makes sense])],
        [], [enable_other_ucx=no])

    sep_ucx=yes
    sep_ucx_reason=
    sep_ucx_include=
    AS_CASE([$with_ucx],
        [no],         [sep_ucx=no
                       sep_ucx_reason="--without-ucx"],
        [system|yes|auto], [UCX_PREFIX=
                            sep_ucx_where=system],
        [UCX_PREFIX=`cd "$with_ucx" 2>/dev/null && pwd`
         AS_IF([test -z "$UCX_PREFIX"],
               [AC_MSG_ERROR([--with-ucx=$with_ucx: no such directory])])
         sep_ucx_where=$UCX_PREFIX])

    AS_IF([test $sep_ucx = yes],
          [AS_IF([test -n "$UCX_PREFIX"],
                 [SEP_UCX_IN_PREFIX],
                 [SEP_UCX_IN_SYSTEM])])
    # Programs on its public interface need no source
    sep_ucx_libs=$sep_ucx
    UCX_PUBLIC_CPPFLAGS=
    AS_IF([test -n "$sep_ucx_include"],
          [UCX_PUBLIC_CPPFLAGS="-isystem $sep_ucx_include"])
    AS_IF([test $sep_ucx = yes], [SEP_UCX_VERSION])
    AS_IF([test $sep_ucx = yes], [SEP_UCX_FIND_SOURCE])

    AC_SUBST([UCX_PREFIX])
    AC_SUBST([UCX_CPPFLAGS])
    AC_SUBST([UCX_PUBLIC_CPPFLAGS])
    AC_SUBST([UCX_LIBS])
    AC_SUBST([UCP_LIBS])
    AC_SUBST([UCX_RPATH])
    AC_SUBST([UCX_SOURCE])
    AC_SUBST([UCX_INFO])
    AC_SUBST([UCX_VERSION], [$sep_ucx_version])
    # Its modules are in a directory of this name, see Makefile.am.
    AC_SUBST([UCX_SERIES], [`echo "$sep_ucx_version" | cut -d. -f1,2`])
    AC_SUBST([UCX_LIBDIR])
    AM_CONDITIONAL([HAVE_UCX], [test $sep_ucx = yes])
    AM_CONDITIONAL([HAVE_UCX_LIBS], [test $sep_ucx_libs = yes])
])

# The libraries of a prefix are named by file, behind libtool's back: with -L it
# would find the .la files and write the prefix into the module's run path, and
# the module must use whichever UCX the process has loaded. As libtool does not
# keep their place in the command line either, they must not be dropped for
# being mentioned before they are needed.
AC_DEFUN([SEP_UCX_IN_PREFIX], [
    UCX_LIBDIR=
    for sep_dir in "$UCX_PREFIX/lib" "$UCX_PREFIX/lib64" \
                   "$UCX_PREFIX/lib/$host_cpu-linux-gnu"; do
        AS_IF([test -e "$sep_dir/libuct.so"], [UCX_LIBDIR=$sep_dir; break])
    done
    UCX_INFO=$UCX_PREFIX/bin/ucx_info
    AS_IF([test -z "$UCX_LIBDIR"],
          [AC_MSG_ERROR([--with-ucx=$with_ucx: no libuct.so under it])])
    AS_IF([test ! -x "$UCX_INFO"],
          [AC_MSG_ERROR([--with-ucx=$with_ucx: no bin/ucx_info under it])])
    UCX_LIBS="-Wl,--push-state,--no-as-needed"
    AS_VAR_APPEND([UCX_LIBS], [",$UCX_LIBDIR/libuct.so,$UCX_LIBDIR/libucs.so"])
    AS_VAR_APPEND([UCX_LIBS], [",--pop-state"])
    UCP_LIBS="-Wl,--push-state,--no-as-needed,$UCX_LIBDIR/libucp.so,--pop-state"
    UCX_RPATH="-Wl,-rpath,$UCX_LIBDIR"
    sep_ucx_include=$UCX_PREFIX/include
])

AC_DEFUN([SEP_UCX_IN_SYSTEM], [
    AC_PATH_PROG([UCX_INFO], [ucx_info], [no])
    AS_IF([test "x$UCX_INFO" = xno],
          [SEP_MISSING([ucx_info, which tells how UCX was configured],
                       [ucx-utils])])
    sep_save_LIBS=$LIBS
    dnl Without a macro, src/config.h is the same whatever UCX it is
    AC_CHECK_LIB([uct], [uct_component_register], [:],
                 [SEP_MISSING([UCX libraries and headers], [libucx-dev])],
                 [-lucs])
    LIBS=$sep_save_LIBS
    UCX_LIBDIR=
    UCX_LIBS="-luct -lucs"
    UCP_LIBS="-lucp"
    UCX_RPATH=
    sep_ucx_include=
    AS_IF([test -n "$sep_missing_text"],
          [sep_ucx=no
           sep_ucx_reason="see the missing dependencies"])
])

AC_DEFUN([SEP_UCX_VERSION], [
    AC_MSG_CHECKING([the version of the UCX that will load the module])
    sep_ucx_version=`$SHELL "$srcdir/config/gen-ucx-config.sh" --version \
                     "$UCX_INFO" "$UCX_LIBDIR"`
    AC_MSG_RESULT([${sep_ucx_version:-unknown}])
    AS_IF([test -z "$sep_ucx_version"],
          [AC_MSG_ERROR([$UCX_INFO -v prints no version])])

    AC_CONFIG_COMMANDS([src/ucx-config.h],
        [AS_IF([test "x$sep_ucx" = xyes],
               [$SHELL "$srcdir/config/gen-ucx-config.sh" \
                    "$UCX_INFO" "$UCX_LIBDIR" src "$sep_ucx_version" ||
                AC_MSG_ERROR([cannot write src/ucx-config.h])])],
        [sep_ucx=$sep_ucx
         UCX_INFO="$UCX_INFO"
         UCX_LIBDIR="$UCX_LIBDIR"
         sep_ucx_version=$sep_ucx_version])
    sep_ucx_abi=`$SHELL "$srcdir/config/gen-ucx-config.sh" --show \
                 "$UCX_INFO" "$UCX_LIBDIR"`
])

AC_DEFUN([SEP_UCX_FIND_SOURCE], [
    AS_IF([test -n "$SEP_CACHE_DIR"],
          [sep_ucx_cache=$SEP_CACHE_DIR],
          [sep_ucx_cache=`pwd`/ucx-source])
    AS_CASE([$with_ucx_source], [*,*], [SEP_UCX_SPLIT_SOURCES])
    AC_SUBST([UCX_OTHER_SERIES])
    AS_CASE([$with_ucx_source],
        [no],       [sep_ucx=no
                     sep_ucx_reason="--without-ucx-source"],
        [auto|yes], [UCX_SOURCE=`$SHELL "$srcdir/contrib/fetch-source.sh" \
                                 --version "$sep_ucx_version" \
                                 --cache "$sep_ucx_cache" \
                                 2> sep-fetch.log`
                     sep_fetched=$?
                     cat sep-fetch.log >&2
                     sep_why=`sed -n 's/^fetch-source.sh: error: //p' \
                              sep-fetch.log | tail -n 1`
                     rm -f sep-fetch.log
                     AS_IF([test $sep_fetched != 0], [SEP_UCX_NO_SOURCE])],
        [AS_IF([test -f "$with_ucx_source"],
               [UCX_SOURCE=`$SHELL "$srcdir/contrib/fetch-source.sh" \
                            --archive "$with_ucx_source" \
                            --cache "$sep_ucx_cache"` ||
                AC_MSG_ERROR(m4_normalize([
                    --with-ucx-source=$with_ucx_source: not an archive of a
                    source tree (see above)]))],
               [UCX_SOURCE=`cd "$with_ucx_source" 2>/dev/null && pwd`
                AS_IF([test -z "$UCX_SOURCE"],
                      [AC_MSG_ERROR(m4_normalize([
                           --with-ucx-source=$with_ucx_source: neither a
                           directory nor an archive]))])])])

    AS_IF([test $sep_ucx = yes],
          [AC_MSG_CHECKING([for the private UCT headers in $UCX_SOURCE])
           AS_IF([test -e "$UCX_SOURCE/src/uct/base/uct_iface.h"],
                 [AC_MSG_RESULT([yes])],
                 [AC_MSG_RESULT([no])
                  AC_MSG_ERROR(m4_normalize([
                      $UCX_SOURCE is not a UCX source tree: it has no
                      src/uct/base/uct_iface.h]))])
           SEP_UCX_SOURCE_VERSION
           # As system headers: the warnings in them are not ours to repair.
           UCX_CPPFLAGS="-DSEP_WITH_UCX_CONFIG -isystem $UCX_SOURCE/src"
           AS_IF([test -n "$UCX_PUBLIC_CPPFLAGS"],
                 [AS_VAR_APPEND([UCX_CPPFLAGS], [" $UCX_PUBLIC_CPPFLAGS"])])
           $SHELL "$srcdir/config/gen-ucx-config.sh" "$UCX_INFO" \
               "$UCX_LIBDIR" sep-ucx-checks ||
               AC_MSG_ERROR([$UCX_INFO does not tell how UCX was configured])
           SEP_UCX_API([-include sep-ucx-checks/ucx-config.h $UCX_CPPFLAGS])
           rm -rf sep-ucx-checks])
])

# SEP_UCX_SERIES_OF(VERSION)
m4_define([SEP_UCX_SERIES_OF], [`echo "$1" | cut -d. -f1,2`])

# Of a list of sources, that of the UCX which will load the module is for this
# build. For each other one there will be a build of the module alone.
AC_DEFUN([SEP_UCX_SPLIT_SOURCES], [
    sep_sources=$with_ucx_source
    with_ucx_source=auto
    sep_save_IFS=$IFS
    IFS=,
    for sep_source in $sep_sources; do
        IFS=$sep_save_IFS
        AS_IF([test -f "$sep_source"],
              [sep_source_dir=`$SHELL "$srcdir/contrib/fetch-source.sh" \
                               --archive "$sep_source" \
                               --cache "$sep_ucx_cache"`],
              [sep_source_dir=`cd "$sep_source" 2>/dev/null && pwd`])
        AS_IF([test ! -e "$sep_source_dir/src/uct/base/uct_iface.h"],
              [AC_MSG_ERROR(m4_normalize([
                   --with-ucx-source: $sep_source is neither a source tree of
                   UCX nor an archive of one]))])
        sep_version=`$SHELL "$srcdir/config/gen-ucx-config.sh" \
                     --source-version "$sep_source_dir"`
        sep_series=SEP_UCX_SERIES_OF([$sep_version])
        AS_IF([test -z "$sep_series"],
              [AC_MSG_ERROR(m4_normalize([
                   $sep_source_dir/configure.ac does not say which release of
                   UCX it is]))])
        AS_IF([test "x$sep_version" = "x$sep_ucx_version"],
              [with_ucx_source=$sep_source_dir],
              [AS_CASE([" SEP_UCX_SERIES_OF([$sep_ucx_version]) $UCX_OTHER_SERIES "],
                   [*" $sep_series "*],
                   [AC_MSG_ERROR(m4_normalize([
                        --with-ucx-source: $sep_source is the second of UCX
                        $sep_series, and one module is for all of these]))])
               AS_VAR_APPEND([UCX_OTHER_SERIES],
                             ["${UCX_OTHER_SERIES:+ }$sep_series"])
               AS_VAR_SET([sep_source_of_`echo $sep_series | tr . _`],
                          [$sep_source_dir])])
    done
    IFS=$sep_save_IFS
])

# To be called behind AC_OUTPUT. What was found out of the machine need not be found
# out again.
AC_DEFUN([SEP_UCX_CONFIGURE_OTHERS], [
    AS_IF([test -n "$UCX_OTHER_SERIES"],
          [AS_CASE([$srcdir], [/*], [sep_srcdir=$srcdir],
                   [sep_srcdir=`cd "$srcdir" && pwd`])
           (set) | grep -E '^(ac|am|lt|pkg)_cv_@<:@A-Za-z0-9_@:>@*=' |
               grep -vE '^ac_cv_(env|member)_' > modules.cache])
    for sep_series in $UCX_OTHER_SERIES; do
        AC_MSG_NOTICE([configuring the module for UCX $sep_series])
        AS_VAR_COPY([sep_source_dir],
                    [sep_source_of_`echo $sep_series | tr . _`])
        AS_MKDIR_P([modules/$sep_series])
        cp modules.cache modules/$sep_series/config.cache
        (cd "modules/$sep_series" &&
         eval "\$SHELL \"\$sep_srcdir/configure\" $ac_configure_args" \
             '--cache-file=config.cache --disable-gtest --enable-other-ucx' \
             '"--with-ucx-source=$sep_source_dir"' > configure.log 2>&1) ||
            AC_MSG_ERROR(m4_normalize([
                the module for UCX $sep_series cannot be configured: see
                modules/$sep_series/configure.log]))
    done
    rm -f modules.cache
])

AC_DEFUN([SEP_UCX_NO_SOURCE], [
    AS_IF([test "x$with_ucx" = xauto],
          [sep_ucx=no
           sep_ucx_reason="apt cannot provide the source of UCX $sep_ucx_version"
           AC_MSG_WARN([$sep_ucx_reason: the transport will not be built])],
          [AC_MSG_ERROR(m4_normalize([
               no source of UCX $sep_ucx_version:
               ${sep_why:-apt cannot provide it (see above)}. Set SEP_UCX_SOURCE
               or --with-ucx-source to a directory or an archive such as
               ucx-$sep_ucx_version.tar.xz, or build without the transport with
               --without-ucx]))])
])

# Private headers of another version would compile, and crash.
AC_DEFUN([SEP_UCX_SOURCE_VERSION], [
    AC_MSG_CHECKING([the version of the UCX source])
    sep_src_version=`$SHELL "$srcdir/config/gen-ucx-config.sh" \
                     --source-version "$UCX_SOURCE"`
    AC_MSG_RESULT([${sep_src_version:-unknown}])
    AS_IF([test "x$enable_other_ucx" = xyes],
          [AS_IF([test -z "$sep_src_version"],
                 [AC_MSG_ERROR(m4_normalize([
                      $UCX_SOURCE/configure.ac does not say which release of UCX
                      it is]))])
           # It may call what the libraries that it is linked with lack
           SHLIB_LDFLAGS=
           sep_ucx_version=$sep_src_version],
          [test "x$sep_src_version" != "x$sep_ucx_version"],
          [AC_MSG_ERROR(m4_normalize([
               the UCX that will load the module is $sep_ucx_version, but
               $UCX_SOURCE is ${sep_src_version:-of an unknown version}: give
               the matching source with --with-ucx-source=DIR]))])
])
