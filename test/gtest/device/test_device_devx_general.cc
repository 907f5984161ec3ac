/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * General objects of the firmware: blocks of reserved numbers of queue pairs,
 * by hand and as libmlx5 asks for them.
 */

#include <device/device_devx.h>

#include <array>
#include <set>

using namespace device;

namespace {

enum status_t {
    bad_op     = 0x02,
    bad_param  = 0x03,
    no_res     = 0x0f,
    bad_in_len = 0x50
};

enum {
    fw_create_general = 0xa00,
    fw_modify_general = 0xa01,
    fw_query_general  = 0xa02,
    type_reserved_qpn = 0x2c
};

const unsigned log_block = 8;         /* numbers of a block */
const uint32_t block     = 1u << log_block;
const uint32_t multicast = 0xffffff;  /* number that no block may have */

class test_device_devx_general : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_DEVX", "y");
        set_env("MLX5SIM_LOG", "error");
    }
};

command general_command(unsigned opcode, unsigned type, size_t size,
                        uint32_t number = 0)
{
    return command(opcode, size).set(48, 16, type).set(64, 32, number);
}

command reserve_command(unsigned log = log_block)
{
    return general_command(fw_create_general, type_reserved_qpn, 32)
            .set(99, 5, log);
}

/* Status of a creation that is refused */
unsigned refused(ibv_context *ctx, const command &c)
{
    bytes out(16);

    errno = 0;
    REQUIRE(mlx5dv_devx_obj_create(ctx, c.in.data(), c.in.size(), out.data(),
                                   out.size()) == nullptr);
    REQUIRE_EQ(EREMOTEIO, errno);
    REQUIRE(get(out, 32, 32) != 0); /* syndrome */
    return out[0];
}

bytes caps(ibv_context *ctx, unsigned group)
{
    command q(0x100);
    bytes out(16 + 4096);

    q.set(48, 16, (group << 1) | 1);
    REQUIRE_EQ(0, mlx5dv_devx_general_cmd(ctx, q.in.data(), q.in.size(),
                                          out.data(), out.size()));
    return out;
}

} // namespace


TEST_F(test_device_devx_general, capabilities_tell_of_types)
{
    run(1, [](rank&) {
        context c;
        bytes out = caps(c.ctx, 0);

        REQUIRE_EQ(1, get(out, 128 + 32, 1)); /* more groups */
        REQUIRE(get(out, 128 + 1024, 64) & (1ull << type_reserved_qpn));
        out = caps(c.ctx, 0x20);
        REQUIRE_EQ(log_block, get(out, 128 + 147, 5));

        command q(0x100);
        q.set(48, 16, (0x20 << 1) | 1);
        out.assign(16 + 19, 0);
        REQUIRE_EQ(EREMOTEIO,
                   mlx5dv_devx_general_cmd(c.ctx, q.in.data(), q.in.size(),
                                           out.data(), out.size()));
        REQUIRE_EQ(0x51, out[0]);
    });
}

/* Processes side by side: nobody has what another one has, and no queue pair
 * has it */
TEST_F(test_device_devx_general, reserved_numbers_are_nobody_elses)
{
    run(2, [](rank &r) {
        loop l;
        std::set<uint32_t> mine;
        uint32_t qpn;

        for (unsigned i = 0; i < 1000; ++i) {
            REQUIRE_EQ(0, mlx5dv_reserved_qpn_alloc(l.c.ctx, &qpn));
            REQUIRE(mine.insert(qpn).second);
            REQUIRE(qpn < multicast);
        }

        /* the first of each block */
        std::array<uint32_t, 4> firsts;
        unsigned num = 0;
        for (uint32_t n : mine) {
            if (n % block == 0) {
                REQUIRE(num < 4);
                firsts[num++] = n;
            }
        }
        REQUIRE_EQ(4, num);
        r.publish(firsts);
        for (uint32_t n : r.lookup<std::array<uint32_t, 4>>(1 - r.index)) {
            REQUIRE_EQ(0, mine.count(n));
        }

        for (unsigned i = 0; i < 300; ++i) {
            qp q(l.c, l.scq, l.rcq);
            REQUIRE_EQ(0, mine.count(q.v->qp_num));
            REQUIRE(q.v->qp_num < 0x800000);
        }

        for (uint32_t n : mine) {
            REQUIRE_EQ(0, mlx5dv_reserved_qpn_dealloc(l.c.ctx, n));
            REQUIRE_EQ(EINVAL, mlx5dv_reserved_qpn_dealloc(l.c.ctx, n));
        }
        r.barrier();
    });
}

TEST_F(test_device_devx_general, without_devx_nothing_is_reserved)
{
    set_env("MLX5SIM_DEVX", "n");
    run(1, [](rank&) {
        context c;
        uint32_t qpn;

        REQUIRE_EQ(EOPNOTSUPP, mlx5dv_reserved_qpn_alloc(c.ctx, &qpn));
    });
}

/* There is an end to them. They come back with the object, and with its
 * context. */
TEST_F(test_device_devx_general, reserved_numbers_come_back)
{
    run(1, [](rank&) {
        std::set<uint32_t> seen;
        bytes out(16);

        for (unsigned round = 0; round < 3; ++round) {
            context c;
            const command reserve = reserve_command();
            std::vector<mlx5dv_devx_obj*> all;
            mlx5dv_devx_obj *o;

            seen.clear();
            while ((o = mlx5dv_devx_obj_create(c.ctx, reserve.in.data(),
                                               reserve.in.size(), out.data(),
                                               out.size())) != nullptr) {
                uint32_t first = get(out, 64, 32);

                REQUIRE_EQ(0, first % block);
                REQUIRE(first >= 0x800000);
                REQUIRE(first + block <= multicast);
                REQUIRE(seen.insert(first).second);
                all.push_back(o);
            }
            REQUIRE_EQ(EREMOTEIO, errno);
            REQUIRE_EQ(no_res, out[0]);
            REQUIRE(all.size() > 30000);

            /* the one that comes back is the one that is had next */
            o = all.back();
            all.pop_back();
            REQUIRE_EQ(0, mlx5dv_devx_obj_destroy(o));
            object again(c.ctx, reserve);
            if (round == 0) {
                for (mlx5dv_devx_obj *each : all) {
                    REQUIRE_EQ(0, mlx5dv_devx_obj_destroy(each));
                }
            } else {
                again.v = nullptr; /* as the others, with the context */
            }
        }
    });
}

TEST_F(test_device_devx_general, wrong_fields_are_refused)
{
    run(1, [](rank&) {
        context c;
        command reserve = reserve_command();
        object o(c.ctx, reserve);
        unsigned status;
        bytes out(64);

        for (unsigned log : {0u, log_block - 1, log_block + 1, 31u}) {
            REQUIRE_EQ(bad_param, refused(c.ctx, reserve_command(log)));
        }
        reserve.in.resize(31);
        REQUIRE_EQ(bad_in_len, refused(c.ctx, reserve));
        reserve = reserve_command();
        for (unsigned type : {0, 0xc, 0x3a, 0x2d, 0xffff}) {
            reserve.set(48, 16, type);
            REQUIRE_EQ(bad_op, refused(c.ctx, reserve));
        }

        /* it can neither be changed nor asked; the kernel looks whether it is
         * the one that is named */
        command q = general_command(fw_query_general, type_reserved_qpn, 16,
                                    o.number);
        command m = general_command(fw_modify_general, type_reserved_qpn, 32,
                                    o.number);
        REQUIRE_EQ(EREMOTEIO, o.modify(m, &status));
        REQUIRE_EQ(bad_op, status);
        REQUIRE_EQ(EREMOTEIO, mlx5dv_devx_obj_query(o.v, q.in.data(),
                                                    q.in.size(), out.data(),
                                                    out.size()));
        REQUIRE_EQ(bad_op, out[0]);
        m.set(64, 32, o.number + 1);
        REQUIRE_EQ(EINVAL, o.modify(m, &status));
        m.set(64, 32, o.number | (1u << 24));
        REQUIRE_EQ(EINVAL, o.modify(m, &status));
        m.set(64, 32, o.number).set(48, 16, 0x26);
        REQUIRE_EQ(EINVAL, o.modify(m, &status));
        REQUIRE_EQ(EINVAL, o.modify(command(fw_query_qp, 16, o.number),
                                    &status));
    });
}
