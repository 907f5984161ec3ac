/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * All firmware commands: each opcode by each method with each length that is
 * too short, and each bit of commands that are right. What comes back is
 * success, or an error of few, and a status where firmware has seen the
 * command.
 */

#include <device/device_devx.h>

#include <cstdio>

using namespace device;

namespace {

const unsigned header = 16; /* of each command and reply */
const unsigned bad_op = 2;

enum method { general, create, modify, query };

/* A line of the table of opcodes */
struct row {
    method      by;
    unsigned    first, last;
    std::string answer;
};

class test_device_devx_all : public device::test {
protected:
    void SetUp() override
    {
        device::test::SetUp();
        set_env("MLX5SIM_DEVX", "y");
        set_env("MLX5SIM_DC", "y");
        set_env("MLX5SIM_LOG", "error");
        catch_errors();
    }

    /* Resetting queue pairs that receive is against the rules */
    void TearDown() override
    {
        for (const auto &line : take_violations()) {
            EXPECT_EQ("srq_leak", line.substr(0, line.find(' '))) << line;
        }
        device::test::TearDown();
    }

    /* What the device says of itself */
    static std::vector<row> table()
    {
        const std::string program = build_file("bin/mlx5sim-stat");
        FILE *pipe = popen((program + " --opcodes-markdown").c_str(), "r");
        std::vector<row> rows;
        char line[512];

        EXPECT_NE(nullptr, pipe);
        while (fgets(line, sizeof(line), pipe) != nullptr) {
            char by[16], answer[16];
            row r;

            if (sscanf(line, "| 0x%x to 0x%x | %*[^|]| %15s | %15[^|]",
                       &r.first, &r.last, by, answer) != 4) {
                if (sscanf(line, "| 0x%x | %*[^|]| %15s | %15[^|]", &r.first,
                           by, answer) != 3) {
                    continue;
                }
                r.last = r.first;
            }
            r.by = (by[0] == 'g') ? general : (by[0] == 'c') ? create :
                   (by[0] == 'm') ? modify  : query;
            r.answer = answer;
            r.answer.erase(r.answer.find_last_not_of(' ') + 1);
            rows.push_back(r);
        }
        EXPECT_EQ(0, pclose(pipe));
        EXPECT_GT(rows.size(), 90u);
        return rows;
    }

    /* @return NULL if no command of that number passes */
    static const row *find(const std::vector<row> &rows, method by,
                           unsigned opcode)
    {
        for (const row &r : rows) {
            if ((r.by == by) && (opcode >= r.first) && (opcode <= r.last)) {
                return &r;
            }
        }
        return nullptr;
    }
};

/* Give a command. The reply may be longer than it is said to be, and nothing is
 * written there. @return 0 or errno */
int give(ibv_context *ctx, mlx5dv_devx_obj *obj, method by, const command &c,
         bytes &out, size_t out_size)
{
    mlx5dv_devx_obj *made;
    int ret;

    out.assign(out_size + 8, 0xa5);
    switch (by) {
    case general:
        ret = mlx5dv_devx_general_cmd(ctx, c.in.data(), c.in.size(),
                                      out.data(), out_size);
        break;
    case create:
        errno = 0;
        made  = mlx5dv_devx_obj_create(ctx, c.in.data(), c.in.size(),
                                       out.data(), out_size);
        ret   = (made != nullptr) ? 0 : errno;
        REQUIRE((made != nullptr) || (ret != 0));
        if (made != nullptr) {
            REQUIRE_EQ(0, mlx5dv_devx_obj_destroy(made));
        }
        break;
    case modify:
        ret = mlx5dv_devx_obj_modify(obj, c.in.data(), c.in.size(), out.data(),
                                     out_size);
        break;
    default:
        ret = mlx5dv_devx_obj_query(obj, c.in.data(), c.in.size(), out.data(),
                                    out_size);
        break;
    }

    for (size_t i = out_size; i < out.size(); ++i) {
        REQUIRE_EQ(0xa5, out[i]);
    }
    out.resize(out_size);
    return ret;
}

/* What may come back, whatever the command was */
void check(int ret, const bytes &out, unsigned opcode)
{
    switch (ret) {
    case 0:
        REQUIRE_EQ(0, out[0]);
        REQUIRE_EQ(0, get(out, 32, 32));
        break;
    case EREMOTEIO:
        REQUIRE(out[0] != 0);
        REQUIRE_EQ((opcode << 8) | out[0], get(out, 32, 32));
        for (size_t i = 8; i < out.size(); ++i) {
            REQUIRE_EQ(0, out[i]);
        }
        break;
    default:
        REQUIRE_EQ(EINVAL, ret);
        break;
    }
}

/* Whether the kernel lets a command pass, and what firmware says then */
void check_row(const row *r, method by, const command &c, int ret,
               const bytes &out)
{
    if ((r == nullptr) || (c.in.size() < header) || (out.size() < header) ||
        (r->answer == "no object")) {
        REQUIRE_EQ(EINVAL, ret);
    } else if (r->answer != "done") {
        /* of an object, it is first looked whether that is the right one */
        REQUIRE((ret == EREMOTEIO) ||
                ((ret == EINVAL) && ((by == modify) || (by == query))));
        if (ret == EREMOTEIO) {
            REQUIRE_EQ(bad_op, out[0]);
        }
    }
}

void exchange(devx_loop &l)
{
    l.connect();
    for (unsigned i = 0; i < 40; ++i) {
        memset(l.mem.data, i + 1, 64);
        l.write(l.mem.sge(0, 64), l.mem.sge(4096, 64));
        REQUIRE_EQ(MLX5_CQE_REQ, l.next());
        REQUIRE_EQ(i + 1, l.mem.data[4096 + 63]);
    }
}

} // namespace


TEST_F(test_device_devx_all, opcodes_with_lengths_that_are_too_short)
{
    const std::vector<row> rows = table();

    run(1, [&](rank&) {
        devx_loop l;
        object pd(l.c.ctx, command(fw_alloc_pd));
        bytes out;

        /* there are no more numbers of objects than of those */
        const std::vector<object*> objects = {&l.a, &l.cq, &l.rmp, &pd};

        for (unsigned opcode = 0; opcode <= 0xfff; ++opcode) {
            for (method by : {general, create, modify, query}) {
                const row *r = find(rows, by, opcode);
                bool is_done = (r != nullptr) && (r->answer == "done");
                /* none is longer; without a row it does not matter */
                size_t longest = is_done ? 600 : header;

                for (const object *o : objects) {
                    if ((o != objects[0]) &&
                        ((r == nullptr) || (by == general) ||
                         (by == create))) {
                        break;
                    }
                    for (size_t size = 0; size <= longest; ++size) {
                        command c(opcode, header, o->number);

                        c.in.resize(size);
                        int ret = give(l.c.ctx, o->v, by, c, out, longest);
                        check(ret, out, opcode);
                        check_row(r, by, c, ret, out);

                        c = command(opcode, longest, o->number);
                        ret = give(l.c.ctx, o->v, by, c, out, size);
                        if (size >= header) {
                            check(ret, out, opcode);
                        }
                        check_row(r, by, c, ret, out);
                    }
                }
            }
        }

        unsigned status;
        for (object *q : {&l.a, &l.b}) {
            REQUIRE_EQ(0, q->modify(command(fw_2rst, 16, q->number), &status));
        }
        exchange(l);
    });
}

/* Commands that are right are not any more, or mean something else, with one
 * bit */
TEST_F(test_device_devx_all, each_bit_of_commands_that_are_right)
{
    struct given {
        method               by;
        command              c;
        object               *on;
        size_t               out_size;
        std::vector<command> before; /* brings a queue pair to its state */
    };

    run(1, [](rank&) {
        const unsigned mkc = 128;
        devx_loop l;
        const size_t record = devx_loop::records + 256;
        command ksm(fw_create_mkey, fw_queue_size + 16);
        command klm(fw_create_mkey, fw_queue_size);
        command arm(fw_modify_rmp, fw_queue_size, l.rmp.number);
        bytes out;

        ksm.set(mkc + 17, 4, 0xf).set(mkc + 22, 2, 3).set(mkc + 104, 24, l.pd);
        ksm.set(mkc + 475, 5, 12).set(mkc + 192, 64, 4096).set(768, 32, 1);
        ksm.set(2208, 32, l.mem.mr->lkey).set(2240, 64, l.mem.addr());
        klm.set(mkc + 1, 1, 1).set(mkc + 16, 1, 1).set(mkc + 22, 2, 2);
        klm.set(mkc + 104, 24, l.pd).set(mkc + 416, 32, 4);
        arm.set(64, 4, 1).set(191, 1, 1).set(256 + 8, 4, 1);
        object key(l.c.ctx, ksm);
        object dct(l.c.ctx, dct_command(l.c, l.pd, l.cq.number, l.rmp.number,
                                        1));
        /* elements of the scheduler: a root, and a node below it */
        command element(0xa00, 144), change(0xa01, 144);
        element.set(48, 16, 0x26).set(192, 8, 3);
        object root(l.c.ctx, element);
        element.set(448, 32, root.number);
        object node(l.c.ctx, element);
        change.set(48, 16, 0x26).set(64, 32, node.number).set(192, 8, 3);
        change.set(128, 64, 3).set(544, 32, 64);
        const command rst(fw_2rst, 16, l.b.number);
        const command init = rst2init_command(l.b.number);
        const command rtr  = init2rtr_command(l.c, l.b.number, l.a.number);
        const command rts  = rtr2rts_command(l.b.number);

        const given all[] = {
            {general, command(0x100).set(63, 1, 1), nullptr, 4112, {}},
            {general, command(0x760), nullptr, 48, {}},
            {general, command(0x762), nullptr, 524, {}},
            {general, command(0x842), nullptr, 16, {}},
            {general, command(0x80d), nullptr, 16, {}},
            {create, command(fw_alloc_pd), nullptr, 16, {}},
            {create, ksm, nullptr, 16, {}},
            {create, klm, nullptr, 16, {}},
            {create, cq_command(l.queues, record, l.page, l.eqn), nullptr, 16,
             {}},
            {create, rmp_command(l.queues, devx_loop::rmp_offset, record, l.pd),
             nullptr, 16, {}},
            {create, qp_command(l.queues, devx_loop::sq_offset, record, l.page,
                                l.pd, l.cq.number, l.rmp.number), nullptr, 16,
             {}},
            {create, dct_command(l.c, l.pd, l.cq.number, l.rmp.number, 1),
             nullptr, 16, {}},
            {create, command(0xa00, 32).set(48, 16, 0x2c).set(99, 5, 8),
             nullptr, 16, {}},
            {create, element, nullptr, 16, {}},
            {modify, change, &node, 16, {}},
            {query, command(0xa02).set(48, 16, 0x26).set(64, 32, node.number),
             &node, 144, {}},
            {modify, arm, &l.rmp, 16, {}},
            {modify, init, &l.b, 16, {rst}},
            {modify, rtr, &l.b, 16, {rst, init}},
            {modify, rts, &l.b, 16, {rst, init, rtr}},
            {modify, command(fw_rts2rts, 464, l.b.number), &l.b, 16,
             {rst, init, rtr, rts}},
            {modify, command(fw_rts2rts, 464, l.b.number).set(64, 1, 1)
                             .set(2112, 64, 2), &l.b, 16,
             {rst, init, rtr, rts}},
            {modify, command(fw_2err, 16, l.b.number), &l.b, 16, {rst, init}},
            {modify, rst, &l.b, 16, {rst, init}},
            {modify, command(fw_drain_dct, 16, dct.number), &dct, 16, {}},
            {query, command(fw_query_mkey, 16, key.number), &key, 304, {}},
            {query, command(fw_query_cq, 16, l.cq.number), &l.cq, 80, {}},
            {query, command(fw_query_qp, 16, l.b.number), &l.b, 272, {}},
            {query, command(fw_query_rmp, 16, l.rmp.number), &l.rmp, 272, {}},
            {query, command(fw_query_dct, 16, dct.number), &dct, 128, {}}
        };

        l.connect();
        for (const given &g : all) {
            mlx5dv_devx_obj *obj = (g.on != nullptr) ? g.on->v : nullptr;
            unsigned right = 0, bits = g.c.in.size() * 8, status;

            /* the first time as it is */
            for (unsigned bit = 0; bit <= bits; ++bit) {
                command c = g.c;

                for (const command &b : g.before) {
                    REQUIRE_EQ(0, g.on->modify(b, &status));
                }
                if (bit > 0) {
                    c.set(bit - 1, 1, !get(c.in, bit - 1, 1));
                }

                int ret = give(l.c.ctx, obj, g.by, c, out, g.out_size);
                check(ret, out, get(c.in, 0, 16));
                REQUIRE((bit > 0) || (ret == 0) ||
                        (get(c.in, 0, 16) == 0x760)); /* RoCE's */
                right += ret == 0;
            }
            /* most bits have a meaning for nobody here, or any will do */
            REQUIRE(right < bits);
        }

        for (object *q : {&l.a, &l.b}) {
            unsigned status;

            REQUIRE_EQ(0, q->modify(command(fw_2rst, 16, q->number), &status));
        }
        exchange(l);
    });
}
