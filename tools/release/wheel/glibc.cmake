# SPDX-License-Identifier: Apache-2.0
# Links everything that follows against the glibc in OPENACLNN_GLIBC, with the C++ library inside.
#
# The linker takes the version of each symbol from the libraries that it is shown, so a library that
# was linked against glibc 2.27 loads with 2.27 and anything newer. A symbol that this glibc lacks
# stops the link (-z defs). libgcc_s stays outside: exceptions need one unwinder in a process, and
# glibc itself depends on it. Compilations are those of any other build, and come from its cache.
add_link_options(-L${OPENACLNN_GLIBC} -static-libstdc++ -Wl,-z,defs
                 -Wl,--exclude-libs,ALL)  # no symbol of the C++ library is seen from outside
add_library(older_glibc OBJECT tools/release/wheel/glibc.c)
# pthread and dl hold what newer versions of glibc have in libc itself. The loader, ld, has
# __tls_get_addr; libstdc++, which comes last, may be the only one to need it.
link_libraries($<$<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,OBJECT_LIBRARY>>:$<TARGET_OBJECTS:older_glibc>>
               -Wl,--as-needed pthread dl -Wl,--no-as-needed ld)
