# SPDX-License-Identifier: BSD-3-Clause

# SEP_ADD_FLAG_IF_SUPPORTED(VARIABLE, FLAG)
AC_DEFUN([SEP_ADD_FLAG_IF_SUPPORTED], [
    sep_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror $2"
    AC_MSG_CHECKING([whether $CC accepts $2])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
                      [AC_MSG_RESULT([yes])
                       AS_VAR_APPEND([$1], [" $2"])],
                      [AC_MSG_RESULT([no])])
    CFLAGS=$sep_save_CFLAGS
])

# SEP_ADD_SANITIZER(NAME, SHORT-NAME, DEBIAN-PACKAGE)
AC_DEFUN([SEP_ADD_SANITIZER], [
    AC_MSG_CHECKING([whether -fsanitize=$1 links])
    sep_save_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -fsanitize=$1"
    AC_LINK_IFELSE([AC_LANG_PROGRAM()],
                   [AC_MSG_RESULT([yes])],
                   [AC_MSG_RESULT([no])
                    SEP_MISSING([the runtime of -fsanitize=$1], [$3])])
    CFLAGS=$sep_save_CFLAGS
    AS_VAR_APPEND([SANITIZER_FLAGS], [" -fsanitize=$1"])
    AS_VAR_APPEND([sep_sanitizers], [" $2"])
])

# SEP_BUILD_MODE
# Chooses optimisation, warnings and sanitizers. A CFLAGS given by the user
# replaces the optimisation flags and nothing else.
AC_DEFUN([SEP_BUILD_MODE], [
    AC_ARG_ENABLE([debug],
        [AS_HELP_STRING([--enable-debug], [-O0 -g3, for stepping through])],
        [], [enable_debug=no])
    AC_ARG_ENABLE([release],
        [AS_HELP_STRING([--enable-release],
             [-O3, no assertions of our own; see contrib/configure-release])],
        [], [enable_release=no])
    AC_ARG_ENABLE([asan],
        [AS_HELP_STRING([--enable-asan], [instrument with AddressSanitizer])],
        [], [enable_asan=no])
    AC_ARG_ENABLE([ubsan],
        [AS_HELP_STRING([--enable-ubsan],
             [instrument with UndefinedBehaviorSanitizer])],
        [], [enable_ubsan=no])
    AC_ARG_ENABLE([tsan],
        [AS_HELP_STRING([--enable-tsan], [instrument with ThreadSanitizer])],
        [], [enable_tsan=no])
    AC_ARG_ENABLE([werror],
        [AS_HELP_STRING([--disable-werror],
             [let warnings pass; default: they are errors in a git checkout and
              pass in a tarball])],
        [], [AS_IF([test -e "$srcdir/.git"],
                   [enable_werror=yes], [enable_werror=no])])

    AS_IF([test "x$enable_debug" = xyes && test "x$enable_release" = xyes],
          [AC_MSG_ERROR([--enable-debug and --enable-release exclude each other])])
    AS_IF([test "x$enable_asan" = xyes && test "x$enable_tsan" = xyes],
          [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])

    MODE_CPPFLAGS=
    AS_IF([test "x$enable_debug" = xyes],
          [sep_mode=debug
           sep_opt_flags="-O0 -g3"],
          [test "x$enable_release" = xyes],
          [sep_mode=release
           sep_opt_flags="-O3 -g"
           MODE_CPPFLAGS="-DNDEBUG"],
          [test "x$enable_asan$enable_ubsan$enable_tsan" != xnonono],
          [sep_mode="default, for sanitizers"
           sep_opt_flags="-O1 -g"],
          [sep_mode=default
           sep_opt_flags="-O2 -g"])
    AS_IF([test -z "$CFLAGS"], [CFLAGS=$sep_opt_flags])
    # Only tests are in C++. It is not their speed that counts but the time to
    # compile them, which with sanitizers is six times longer at -O1.
    AS_IF([test -z "$CXXFLAGS"], [CXXFLAGS="-O0 -g"])

    WARN_FLAGS="-Wall -Wextra -Wno-unused-parameter"
    # UCX configuration tables end with {NULL}.
    AS_VAR_APPEND([WARN_FLAGS], [" -Wno-missing-field-initializers"])
    AS_IF([test "x$enable_werror" = xyes],
          [AS_VAR_APPEND([WARN_FLAGS], [" -Werror"])
           sep_warnings_are=errors],
          [sep_warnings_are="not errors"])

    SANITIZER_FLAGS=
    sep_sanitizers=
    AS_IF([test "x$enable_asan" = xyes],
          [SEP_ADD_SANITIZER([address], [asan], [libasan8])])
    AS_IF([test "x$enable_ubsan" = xyes],
          [SEP_ADD_SANITIZER([undefined], [ubsan], [libubsan1])])
    AS_IF([test "x$enable_tsan" = xyes],
          [SEP_ADD_SANITIZER([thread], [tsan], [libtsan2])
           # gcc does not let the sanitizer follow fences, and says so for each
           # of them in UCX's headers. Instrumented code also hides from it how
           # long strings are, and it then suspects formats.
           AS_VAR_APPEND([SANITIZER_FLAGS],
                         [" -Wno-tsan -Wno-format-truncation"])])
    AS_IF([test -n "$SANITIZER_FLAGS"],
          [AS_VAR_APPEND([SANITIZER_FLAGS], [" -fno-omit-frame-pointer"])
           AS_IF([test "x$enable_ubsan" = xyes],
                 [AS_VAR_APPEND([SANITIZER_FLAGS],
                                [" -fno-sanitize-recover=undefined"])])])

    # Tests are what calls, not what is looked at: mistakes are looked for in what
    # they call, and without flags of their own they are the same objects as
    # elsewhere, which ccache knows. Of threads, both sides must be seen.
    CXX_SANITIZER_FLAGS=
    CXX_SANITIZER_LIBS=
    AS_IF([test "x$enable_tsan" = xyes],
          [CXX_SANITIZER_FLAGS=$SANITIZER_FLAGS],
          [CXX_SANITIZER_LIBS=$SANITIZER_FLAGS])

    # UCX aligns what a memory pool's element holds, not the element: the packed
    # or one-word header in front of it is where it falls.
    UCX_SANITIZER_FLAGS=
    AS_IF([test "x$enable_ubsan" = xyes],
          [UCX_SANITIZER_FLAGS=-fno-sanitize=alignment])

    # A sanitizer's runtime is resolved when the program starts, so a shared
    # object that uses it cannot be fully linked by itself.
    AS_IF([test -n "$SANITIZER_FLAGS"],
          [SHLIB_LDFLAGS=],
          [SHLIB_LDFLAGS="-Wl,-z,defs"])
    SANITIZERS=$sep_sanitizers
    AC_SUBST([MODE_CPPFLAGS])
    AC_SUBST([WARN_FLAGS])
    AC_SUBST([SANITIZER_FLAGS])
    AC_SUBST([CXX_SANITIZER_FLAGS])
    AM_CONDITIONAL([TSAN], [test "x$enable_tsan" = xyes])
    AC_SUBST([CXX_SANITIZER_LIBS])
    AC_SUBST([UCX_SANITIZER_FLAGS])
    AC_SUBST([SANITIZERS])
    AC_SUBST([SHLIB_LDFLAGS])
    AC_SUBST([SEP_MODE], [$sep_mode])
    AM_CONDITIONAL([SANITIZED], [test -n "$SANITIZER_FLAGS"])
])
