# SPDX-License-Identifier: BSD-3-Clause
#
# Builds google's rdma-unit-test with Debian's packages: it has files for bazel only.
# usage: make -f build.mk HERE=this directory SOURCE=its source; in the current directory
#
# Left out are the tests that make load for minutes, whose parts are in a directory of
# their own. Which of Abseil's libraries are needed depends on its version, so all are
# offered.
sources := $(filter-out %/stress_test.cc,$(foreach part,public internal unit,\
	$(wildcard $(SOURCE)/$(part)/*.cc)))
objects := $(patsubst $(SOURCE)/%.cc,o/%.o,$(sources))
places  := $(subst :, ,$(LIBRARY_PATH)) $(wildcard /usr/lib/*-linux-gnu)
abseil  := $(sort $(patsubst lib%.so,-l%,$(notdir \
	$(foreach place,$(places),$(wildcard $(place)/libabsl_*.so)))))

rdma-unit-test: $(objects)
	$(CXX) -o $@ $(objects) -lgmock -lgtest -libverbs -lmlx5 -Wl,--as-needed $(abseil) \
		-lpthread

o/%.o: $(SOURCE)/%.cc
	@mkdir -p $(dir $@)
	$(CXX) -std=c++17 -O1 -w -I$(HERE) -I$(SOURCE) -c -o $@ $<
