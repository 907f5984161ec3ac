/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TEST_DEVICE_STAT_H_
#define MLX5SIM_TEST_DEVICE_STAT_H_

/*
 * Numbers out of "mlx5sim-stat --json".
 */

#include <cstdlib>
#include <string>
#include <vector>

namespace device {

/** What follows "@a key": in @a text from @a from on; "" if it is not there. */
inline std::string json_value(const std::string &text, const std::string &key,
                              size_t from = 0)
{
    size_t at = text.find("\"" + key + "\": ", from);

    if (at == std::string::npos) {
        return "";
    }

    at += key.length() + 4;
    return text.substr(at, text.find_first_of(",}]\n", at) - at);
}

/** A number of the totals; -1 if there is none of that name. */
inline long json_total(const std::string &text, const std::string &key)
{
    size_t totals     = text.find("\"totals\"");
    std::string value = (totals == std::string::npos) ?
                        "" : json_value(text, key, totals);

    return value.empty() ? -1 : atol(value.c_str());
}

/** Values of @a key in all QPs of "mlx5sim-stat --json --detail". */
inline std::vector<std::string> json_qps(const std::string &text,
                                         const std::string &key)
{
    std::vector<std::string> values;
    size_t at = 0;

    while ((at = text.find("{\"qpn\": ", at)) != std::string::npos) {
        values.push_back(json_value(text, key, at));
        ++at;
    }
    return values;
}

} // namespace device

#endif
