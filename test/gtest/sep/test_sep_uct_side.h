/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef TEST_SEP_UCT_SIDE_H_
#define TEST_SEP_UCT_SIDE_H_

#include <sep/test_sep_uct.h>
#include <sep/test_sep_uct_tls.h>

#include <cstring>

namespace sep_uct_test {

/* An interface of any transport, on a worker of its own */
class side {
public:
    side(const std::string &tl, const settings &changes,
         ucs_thread_mode_t mode)
    {
        uct_iface_config_t *config;
        uct_iface_params_t params;
        std::string dev;

        find(tl, &dev);
        ucs_async_context_create(UCS_ASYNC_MODE_THREAD_SPINLOCK, &m_async);
        EXPECT_EQ(UCS_OK, uct_worker_create(m_async, mode, &m_worker));
        EXPECT_EQ(UCS_OK, uct_md_iface_config_read(m_md, tl.c_str(), NULL, NULL,
                                                   &config));
        for (auto &entry : changes) {
            EXPECT_EQ(UCS_OK, modify(config, entry.first, entry.second))
                    << entry.first;
        }

        params.field_mask           = UCT_IFACE_PARAM_FIELD_OPEN_MODE |
                                      UCT_IFACE_PARAM_FIELD_DEVICE;
        params.open_mode            = UCT_IFACE_OPEN_MODE_DEVICE;
        params.mode.device.tl_name  = tl.c_str();
        params.mode.device.dev_name = dev.c_str();
        EXPECT_EQ(UCS_OK, uct_iface_open(m_md, m_worker, &params, config,
                                         &m_iface));
        uct_config_release(config);
        EXPECT_EQ(UCS_OK, uct_iface_query(m_iface, &m_attr));
        EXPECT_EQ(UCS_OK, uct_iface_set_am_handler(m_iface, 1, count_message,
                                                   this, 0));
        uct_iface_progress_enable(m_iface,
                                  UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
        m_mem.reset(new memory(m_md, 4096));
    }

    ~side()
    {
        if (m_has_rkey) {
            uct_rkey_release(m_component, &m_rkey);
        }
        if (ep != nullptr) {
            uct_ep_destroy(ep);
        }
        uct_iface_close(m_iface);
        m_mem.reset();
        uct_worker_destroy(m_worker);
        ucs_async_context_destroy(m_async);
        uct_md_close(m_md);
    }

    /* Make the endpoint, or what the other side needs to connect it */
    void create_ep(side &other)
    {
        bytes dev = other.device_addr(), iface(other.m_attr.iface_addr_len);
        uct_ep_params_t params;

        EXPECT_EQ(UCS_OK, uct_iface_get_address(
                                  other.m_iface,
                                  (uct_iface_addr_t*)iface.data()));
        params.field_mask = UCT_EP_PARAM_FIELD_IFACE;
        params.iface      = m_iface;
        if (is_to_iface()) {
            params.field_mask |= UCT_EP_PARAM_FIELD_DEV_ADDR |
                                 UCT_EP_PARAM_FIELD_IFACE_ADDR;
            params.dev_addr    = (const uct_device_addr_t*)dev.data();
            params.iface_addr  = (const uct_iface_addr_t*)iface.data();
        }
        EXPECT_EQ(UCS_OK, uct_ep_create(&params, &ep));
    }

    void connect(side &other)
    {
        bytes rkey = other.m_mem->packed_rkey();

        if (!is_to_iface()) {
            bytes dev = other.device_addr(), addr(other.m_attr.ep_addr_len);

            EXPECT_EQ(UCS_OK, uct_ep_get_address(other.ep,
                                                 (uct_ep_addr_t*)addr.data()));
            EXPECT_EQ(UCS_OK, uct_ep_connect_to_ep(
                                      ep, (const uct_device_addr_t*)dev.data(),
                                      (const uct_ep_addr_t*)addr.data()));
        }
        EXPECT_EQ(UCS_OK, uct_rkey_unpack(m_component, rkey.data(), &m_rkey));
        m_has_rkey = true;
        m_remote   = other.m_mem->va();
    }

    /* One of several ways to ring */
    ucs_status_t post(unsigned op, uint64_t value)
    {
        switch (op) {
        case 0:
            return uct_ep_put_short(ep, &value, sizeof(value), m_remote,
                                    m_rkey.rkey);
        case 1:
            return uct_ep_am_short(ep, 1, value, NULL, 0);
        case 2:
            return uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, value, m_remote,
                                        m_rkey.rkey);
        default:
            /* A work request without data */
            return uct_iface_flush(m_iface, 0, NULL);
        }
    }

    /* A message that is too long to be in a completion: where @a value is */
    ssize_t send(uint64_t value)
    {
        return uct_ep_am_bcopy(ep, 1, [](void *dest, void *arg) -> size_t {
            memset(dest, 0, message_length);
            memcpy(dest, arg, sizeof(value));
            return message_length;
        }, &value, 0);
    }

    uct_iface_h iface() const
    {
        return m_iface;
    }

    uct_md_h md() const
    {
        return m_md;
    }

    uct_component_h component() const
    {
        return m_component;
    }

    void progress()
    {
        uct_worker_progress(m_worker);
    }

    bool flushed()
    {
        return uct_iface_flush(m_iface, 0, NULL) == UCS_OK;
    }

    static constexpr size_t message_length = 200;

    uct_ep_h ep           = nullptr;
    unsigned num_messages = 0;
    uint64_t last_message = 0; /* First number in it */

private:
    static ucs_status_t
    count_message(void *arg, void *data, size_t length, unsigned flags)
    {
        side *self = (side*)arg;

        ++self->num_messages;
        memcpy(&self->last_message, data, sizeof(self->last_message));
        return UCS_OK;
    }

    bool is_to_iface() const
    {
        return m_attr.cap.flags & UCT_IFACE_FLAG_CONNECT_TO_IFACE;
    }

    bytes device_addr()
    {
        bytes addr(m_attr.device_addr_len);

        EXPECT_EQ(UCS_OK, uct_iface_get_device_address(
                                  m_iface, (uct_device_addr_t*)addr.data()));
        return addr;
    }

    /* Open the memory domain that has the transport */
    void find(const std::string &tl, std::string *dev_p)
    {
        ASSERT_TRUE(any_device(tl, [&](uct_component_h component, uct_md_h md,
                                       const char *dev) {
            m_component = component;
            m_md        = md;
            *dev_p      = dev;
            return true;
        })) << "no " << tl;
    }

    uct_component_h         m_component = nullptr;
    uct_md_h                m_md        = nullptr;
    ucs_async_context_t     *m_async    = nullptr;
    uct_worker_h            m_worker    = nullptr;
    uct_iface_h             m_iface     = nullptr;
    uct_iface_attr_t        m_attr      = {};
    uct_rkey_bundle_t       m_rkey      = {};
    bool                    m_has_rkey  = false;
    uint64_t                m_remote    = 0;
    std::unique_ptr<memory> m_mem;
};

} // namespace sep_uct_test

#endif
