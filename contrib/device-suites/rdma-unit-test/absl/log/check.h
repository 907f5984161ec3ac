// SPDX-License-Identifier: BSD-3-Clause
#include "absl/log/log.h"
