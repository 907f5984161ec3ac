/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_UCT_TLS_H
#define TEST_SEP_UCT_TLS_H

#include <uct/api/uct.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace sep_uct_test {

/* Called for a device. True if it is the one that was looked for, and its
 * memory domain is the caller's from now on. */
typedef std::function<bool(uct_component_h component, uct_md_h md,
                           const char *dev)> device_func;


/* Devices of a component that a transport offers. Whether one was the one. */
inline bool any_device_of(uct_component_h component, const std::string &tl,
                          const device_func &func)
{
    uct_component_attr_t attr;
    uct_md_config_t *config;
    bool found = false;

    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    EXPECT_EQ(UCS_OK, uct_component_query(component, &attr));
    std::vector<uct_md_resource_desc_t> mds(attr.md_resource_count);
    if (mds.empty()) {
        return false;
    }
    attr.field_mask   = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCES;
    attr.md_resources = mds.data();
    EXPECT_EQ(UCS_OK, uct_component_query(component, &attr));

    EXPECT_EQ(UCS_OK, uct_md_config_read(component, NULL, NULL, &config));
    for (size_t i = 0; (i < mds.size()) && !found; ++i) {
        uct_tl_resource_desc_t *tls;
        unsigned count;
        uct_md_h md;

        if (uct_md_open(component, mds[i].md_name, config, &md) != UCS_OK) {
            continue;
        }
        EXPECT_EQ(UCS_OK, uct_md_query_tl_resources(md, &tls, &count));
        for (unsigned j = 0; (j < count) && !found; ++j) {
            found = (tl == tls[j].tl_name) &&
                    func(component, md, tls[j].dev_name);
        }
        uct_release_tl_resource_list(tls);
        if (!found) {
            uct_md_close(md);
        }
    }
    uct_config_release(config);
    return found;
}


/* The same of all components */
inline bool any_device(const std::string &tl, const device_func &func)
{
    uct_component_h *components;
    bool found = false;
    unsigned count;

    EXPECT_EQ(UCS_OK, uct_query_components(&components, &count));
    for (unsigned i = 0; (i < count) && !found; ++i) {
        found = any_device_of(components[i], tl, func);
    }
    uct_release_component_list(components);
    return found;
}

} // namespace sep_uct_test

#endif
