// SPDX-License-Identifier: BSD-3-Clause
// What google's rdma-unit-test uses of magic_enum: its number is name enough.
#include <string>

namespace magic_enum {
template<typename T> std::string enum_name(T value)
{
    return std::to_string(static_cast<long>(value));
}
} // namespace magic_enum
