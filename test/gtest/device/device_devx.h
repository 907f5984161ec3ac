/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef MLX5SIM_TEST_DEVICE_DEVX_H_
#define MLX5SIM_TEST_DEVICE_DEVX_H_

/*
 * Firmware commands by hand, and queues made by them. Bits are counted as in
 * mlx5_ifc.h of the kernel and of rdma-core, from the start of the command.
 */

#include <device/device.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <vector>

#include <endian.h>
#include <sys/mman.h>
#include <unistd.h>

namespace device {

typedef std::vector<uint8_t> bytes;

/** Status of a command that fails: MLX5_CMD_STAT_* of the kernel. */
enum status_t {
    bad_op       = 0x02,
    bad_param    = 0x03,
    bad_res      = 0x05,
    no_res       = 0x0f,
    bad_qp_state = 0x10,
    bad_in_len   = 0x50,
    bad_out_len  = 0x51
};

/** A command; fields are OR-ed in. */
class command {
public:
    explicit command(unsigned opcode, size_t size = 16, uint32_t number = 0) :
        in(size)
    {
        set(0, 16, opcode).set(72, 24, number);
    }

    command &set(unsigned bit, unsigned width, uint64_t value)
    {
        for (unsigned i = 0; i < width; ++i) {
            unsigned at = bit + width - 1 - i;

            in[at / 8] &= ~(0x80 >> (at % 8));
            in[at / 8] |= ((value >> i) & 1) ? (0x80 >> (at % 8)) : 0;
        }
        return *this;
    }

    bytes in;
};

inline uint64_t get(const bytes &out, unsigned bit, unsigned width)
{
    uint64_t value = 0;

    for (unsigned i = bit; i < bit + width; ++i) {
        value = (value << 1) | ((out[i / 8] >> (7 - i % 8)) & 1);
    }
    return value;
}

/** Memory that firmware commands name. */
class umem {
public:
    /** @param is_dmabuf name the memory by a descriptor, which is closed then
     */
    umem(ibv_context *ctx, size_t size,
         uint32_t access = IBV_ACCESS_LOCAL_WRITE, bool is_dmabuf = false)
    {
        mlx5dv_devx_umem_in in = {};

        if (!is_dmabuf) {
            data = (uint8_t*)aligned_alloc(4096, size);
            REQUIRE(data != nullptr);
            memset(data, 0, size);
            v = mlx5dv_devx_umem_reg(ctx, data, size, access);
            REQUIRE(v != nullptr);
            return;
        }

        int fd = memfd_create("umem", MFD_CLOEXEC);
        REQUIRE(fd >= 0);
        REQUIRE_EQ(0, ftruncate(fd, size));
        data = (uint8_t*)mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED,
                              fd, 0);
        REQUIRE(data != MAP_FAILED);
        m_mapped       = size;
        in.size        = size;
        in.access      = access;
        in.pgsz_bitmap = 4096;
        in.comp_mask   = MLX5DV_UMEM_MASK_DMABUF;
        in.dmabuf_fd   = fd;
        v              = mlx5dv_devx_umem_reg_ex(ctx, &in);
        REQUIRE(v != nullptr);
        close(fd);
    }

    ~umem()
    {
        REQUIRE_EQ(0, mlx5dv_devx_umem_dereg(v));
        if (m_mapped > 0) {
            munmap(data, m_mapped);
        } else {
            free(data);
        }
    }

    umem(const umem&) = delete;

    uint8_t          *data;
    mlx5dv_devx_umem *v;

private:
    size_t m_mapped = 0;
};

/** An object that a command has made. */
class object {
public:
    object(ibv_context *ctx, const command &c) : out(16)
    {
        v = mlx5dv_devx_obj_create(ctx, c.in.data(), c.in.size(), out.data(),
                                   out.size());
        REQUIRE(v != nullptr);
        REQUIRE_EQ(0, out[0]);
        number = get(out, 72, 24);
    }

    ~object()
    {
        destroy();
    }

    object(const object&) = delete;

    void destroy()
    {
        if (v != nullptr) {
            REQUIRE_EQ(0, mlx5dv_devx_obj_destroy(v));
            v = nullptr;
        }
    }

    /** @return errno; the status goes to *status_p */
    int modify(const command &c, unsigned *status_p)
    {
        bytes reply(16);
        int ret = mlx5dv_devx_obj_modify(v, c.in.data(), c.in.size(),
                                         reply.data(), reply.size());

        *status_p = reply[0];
        return ret;
    }

    bytes query(unsigned opcode, size_t size)
    {
        command c(opcode, 16, number);
        bytes reply(size);

        REQUIRE_EQ(0, mlx5dv_devx_obj_query(v, c.in.data(), c.in.size(),
                                            reply.data(), reply.size()));
        REQUIRE_EQ(0, reply[0]);
        return reply;
    }

    bytes           out;
    uint32_t        number;
    mlx5dv_devx_obj *v;
};

/** A page of doorbells. */
class uar {
public:
    explicit uar(ibv_context *ctx)
    {
        v = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
        REQUIRE(v != nullptr);
    }

    ~uar()
    {
        mlx5dv_devx_free_uar(v);
    }

    uar(const uar&) = delete;

    mlx5dv_devx_uar *v;
};

/** Opcodes that objects are made and moved with. */
enum {
    fw_create_mkey = 0x200,
    fw_query_mkey = 0x201,
    fw_create_cq = 0x400,
    fw_query_cq = 0x402,
    fw_create_qp = 0x500,
    fw_rst2init = 0x502,
    fw_init2rtr = 0x503,
    fw_rtr2rts = 0x504,
    fw_rts2rts = 0x505,
    fw_2err = 0x507,
    fw_2rst = 0x50a,
    fw_query_qp = 0x50b,
    fw_query_srq = 0x702,
    fw_query_xrc_srq = 0x707,
    fw_arm_xrc_srq = 0x708,
    fw_create_dct = 0x710,
    fw_drain_dct = 0x712,
    fw_query_dct = 0x713,
    fw_alloc_pd = 0x800,
    fw_create_rmp = 0x90c,
    fw_modify_rmp = 0x90d,
    fw_query_rmp = 0x90f
};

const size_t   fw_queue_size = 272; /* commands that make or move queues */
const size_t   fw_extended_size = 464; /* that have an extended QPC */
const size_t   fw_dct_size   = 128; /* that make DC targets, or ask for them */
const unsigned qpc_bit       = 192;
const unsigned dctc_bit      = 128;
const unsigned ring_log      = 4;   /* of all queues */

uint32_t pd_number(ibv_pd *pd);

/** CREATE_CQ: 2^@a log CQEs of 64 bytes at the start of @a mem, the record at
 *  @a record. One place, or a collapsed queue, has what is called cc and oi. */
command cq_command(const umem &mem, size_t record, const uar &u, uint32_t eqn,
                   unsigned log = ring_log, bool is_collapsed = false);

/** CREATE_RMP, cyclic, 32 bytes a WQE, at @a offset. */
command rmp_command(const umem &mem, size_t offset, size_t record, uint32_t pd);

/** CREATE_QP: RC with a send queue at @a offset, and receives from @a rmp, 0:
 *  none. */
command qp_command(const umem &mem, size_t offset, size_t record, const uar &u,
                   uint32_t pd, uint32_t cqn, uint32_t rmp);

/** CREATE_DCT: on port 1, for all operations. */
command dct_command(const context &c, uint32_t pd, uint32_t cqn, uint32_t rmp,
                    uint64_t key);

/** Change up to three fields behind the opcode, and seldom the length. */
void spoil(command &c, std::mt19937_64 &random);

/** RC from RESET to RTS, with @a remote on port 1 of the same device. */
command rst2init_command(uint32_t qpn);
command init2rtr_command(const context &c, uint32_t qpn, uint32_t remote);
command rtr2rts_command(uint32_t qpn);

/** A CQ, an RMP and two QPs that are connected to each other, all by commands:
 *  nothing of verbs but a PD. */
struct devx_loop {
    explicit devx_loop(uint32_t eqn_of = 0, unsigned cq_log = ring_log,
                       bool is_dmabuf = false, bool is_collapsed = false);

    /** Post a WQE of one block to the first QP and ring. */
    void post(const void *wqe);

    /** RDMA write or send of @a sge. */
    void write(const ibv_sge &from, const ibv_sge &to);
    void send(const ibv_sge &from);

    /** Add a receive. */
    void recv(const ibv_sge &sge);

    /** Opcode of the next completion. */
    unsigned next();

    /** Both to RTS. */
    void connect();

    context  c;
    memory   mem;
    umem     queues;
    uar      page;
    uint32_t pd, eqn;
    object   cq, rmp, a, b;
    uint16_t pi    = 0;
    uint16_t posted = 0;
    uint32_t ci    = 0;

    static const size_t sq_offset  = 4096;
    static const size_t rmp_offset = 8192;
    static const size_t records    = 12288; /* CQ, RMP, QPs: 64 bytes each */
};

/** @return status of a creation that is refused, with this errno */
unsigned refused(ibv_context *ctx, const command &c, size_t out_size = 16,
                 int error = EREMOTEIO);

} // namespace device

#endif
