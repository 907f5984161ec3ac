// SPDX-License-Identifier: BSD-3-Clause
namespace absl {
inline void InitializeLog()
{
}
} // namespace absl
