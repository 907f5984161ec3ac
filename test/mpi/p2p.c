/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Point-to-point messages of 0 B to 4 MB between all pairs of ranks, in every
 * way that takes another path through a transport: expected and unexpected,
 * eager and rendezvous, wildcards, probes, strided data, and errors.
 */

#include "mpi_job.h"

#define P2P_MAX_SIZE   (4ul << 20)
#define P2P_WINDOW     16
#define P2P_TAG_GO     9999


/** Sizes around every power of two: protocols change there. */
static const size_t p2p_sizes[] = {
    0,     1,     2,     4,     7,      8,      16,     31,      64,
    100,   128,   192,   256,   512,    1000,   1024,   2048,    4095,
    4096,  8191,  8192,  8193,  16384,  32768,  65536,  65537,   131072,
    262144, 524288, 1048575, 2097152, P2P_MAX_SIZE
};

/** One of each kind, for tests that send many messages per size. */
static const size_t p2p_few_sizes[] = {0, 1, 8, 200, 1024, 5000, 8192, 40000};

#define P2P_NUM_SIZES      (sizeof(p2p_sizes) / sizeof(p2p_sizes[0]))
#define P2P_NUM_FEW_SIZES  (sizeof(p2p_few_sizes) / sizeof(p2p_few_sizes[0]))


typedef struct p2p_buffers {
    job_buffer_t send;
    job_buffer_t recv;
} p2p_buffers_t;


/** Partner of @a rank in round @a round of a tournament in which every pair
 *  meets once and nobody waits for a third one; -1 if it pauses. */
static int p2p_partner(int rank, int round)
{
    int players = mpi_job.size + (mpi_job.size % 2);
    int last    = players - 1;
    int partner;

    if (rank == last) {
        /* round + x == x - round: the one that would play itself */
        for (partner = 0; partner < last; ++partner) {
            if ((2 * partner) % last == round) {
                break;
            }
        }
    } else {
        partner = ((round - rank) % last + last) % last;
        if (partner == rank) {
            partner = last;
        }
    }

    return (partner < mpi_job.size) ? partner : -1;
}

static int p2p_num_rounds(void)
{
    return mpi_job.size + (mpi_job.size % 2) - 1;
}

static void p2p_check_status(const MPI_Status *status, int source, int tag,
                             size_t length)
{
    int count;

    MPI_JOB_CALL(MPI_Get_count(status, MPI_BYTE, &count));
    MPI_JOB_CHECK(status->MPI_SOURCE == source,
                  "source in the status is %d, expected %d",
                  status->MPI_SOURCE, source);
    MPI_JOB_CHECK(status->MPI_TAG == tag,
                  "tag in the status is %d, expected %d", status->MPI_TAG, tag);
    MPI_JOB_CHECK((size_t)count == length,
                  "count in the status is %d, expected %zu", count, length);
}

static void p2p_send(const p2p_buffers_t *buffers, int peer, size_t size,
                     uint64_t sequence, int tag)
{
    mpi_job_fill_data(&buffers->send, size, mpi_job.rank, peer, sequence);
    MPI_JOB_CALL(MPI_Send(buffers->send.data, size, MPI_BYTE, peer, tag,
                          MPI_COMM_WORLD));
    mpi_job_sent(size);
}

static void p2p_recv(p2p_buffers_t *buffers, int peer, size_t size,
                     uint64_t sequence, int tag)
{
    MPI_Status status;

    /* Guards directly behind the last byte of this message's size */
    buffers->recv.length = size;
    job_buffer_clear(&buffers->recv);
    MPI_JOB_CALL(MPI_Recv(buffers->recv.data, size, MPI_BYTE, peer, tag,
                          MPI_COMM_WORLD, &status));
    p2p_check_status(&status, peer, tag, size);
    mpi_job_check_data(&buffers->recv, size, peer, mpi_job.rank, sequence);
    memset(buffers->recv.data, JOB_GUARD_BYTE, size);
}

/** Every size there and back, each message with contents of its own. */
static void p2p_blocking_ping_pong(p2p_buffers_t *buffers)
{
    int iterations    = (mpi_job.size > 2) ? 1 : (mpi_job.quick ? 3 : 10);
    uint64_t sequence;
    int round, peer, i;
    size_t s;

    mpi_job_part("blocking ping-pong");
    for (round = 0; round < p2p_num_rounds(); ++round) {
        peer = p2p_partner(mpi_job.rank, round);
        if (peer < 0) {
            continue;
        }

        sequence = (uint64_t)round << 24;
        for (s = 0; s < P2P_NUM_SIZES; ++s) {
            for (i = 0; i < iterations; ++i, ++sequence) {
                if (mpi_job.rank < peer) {
                    p2p_send(buffers, peer, p2p_sizes[s], sequence, s);
                    p2p_recv(buffers, peer, p2p_sizes[s], sequence, s);
                } else {
                    p2p_recv(buffers, peer, p2p_sizes[s], sequence, s);
                    p2p_send(buffers, peer, p2p_sizes[s], sequence, s);
                }
            }
        }
    }
}

/** Windows of non-blocking messages in both directions at once, completed by
 *  Waitall, with receives posted in another order than the sends. */
static void p2p_nonblocking(void)
{
    job_buffer_t send[P2P_WINDOW], recv[P2P_WINDOW];
    MPI_Request requests[2 * P2P_WINDOW];
    MPI_Status statuses[2 * P2P_WINDOW];
    uint64_t sequence;
    size_t size[P2P_WINDOW];
    int round, peer, i, slot;
    size_t s;

    mpi_job_part("non-blocking windows");
    for (i = 0; i < P2P_WINDOW; ++i) {
        /* The last one is large: rendezvous overtakes nothing */
        size[i] = (i == P2P_WINDOW - 1) ? 1000003 :
                                          p2p_few_sizes[i % P2P_NUM_FEW_SIZES];
        send[i] = job_buffer_alloc(size[i]);
        recv[i] = job_buffer_alloc(size[i]);
    }

    for (round = 0; round < p2p_num_rounds(); ++round) {
        peer = p2p_partner(mpi_job.rank, round);
        if (peer < 0) {
            continue;
        }

        sequence = (uint64_t)round << 24;
        for (s = 0; s < (mpi_job.quick ? 2 : 8); ++s, sequence += P2P_WINDOW) {
            for (i = 0; i < P2P_WINDOW; ++i) {
                slot = (i * 5 + s) % P2P_WINDOW;
                job_buffer_clear(&recv[slot]);
                MPI_JOB_CALL(MPI_Irecv(recv[slot].data, size[slot], MPI_BYTE,
                                       peer, 100 + slot, MPI_COMM_WORLD,
                                       &requests[slot]));
            }

            for (i = 0; i < P2P_WINDOW; ++i) {
                mpi_job_fill_data(&send[i], size[i], mpi_job.rank, peer,
                                  sequence + i);
                MPI_JOB_CALL(MPI_Isend(send[i].data, size[i], MPI_BYTE, peer,
                                       100 + i, MPI_COMM_WORLD,
                                       &requests[P2P_WINDOW + i]));
                mpi_job_sent(size[i]);
            }

            MPI_JOB_CALL(MPI_Waitall(2 * P2P_WINDOW, requests, statuses));
            for (i = 0; i < P2P_WINDOW; ++i) {
                p2p_check_status(&statuses[i], peer, 100 + i, size[i]);
                mpi_job_check_data(&recv[i], size[i], peer, mpi_job.rank,
                                   sequence + i);
            }
        }
    }

    for (i = 0; i < P2P_WINDOW; ++i) {
        job_buffer_free(&send[i]);
        job_buffer_free(&recv[i]);
    }
}

/** Everybody sends to everybody; receivers take what comes. The order of one
 *  sender's messages must hold whatever the others do. */
static void p2p_wildcards(void)
{
    int per_peer          = mpi_job.quick ? 24 : 64;
    int total             = per_peer * (mpi_job.size - 1);
    job_buffer_t *send    = calloc(total, sizeof(*send));
    MPI_Request *requests = calloc(total, sizeof(*requests));
    int *next             = calloc(mpi_job.size, sizeof(*next));
    job_buffer_t recv     = job_buffer_alloc(40000);
    int i, peer, count, posted = 0;
    MPI_Status status;
    size_t size;

    mpi_job_part("wildcard source and tag");
    for (i = 0; i < per_peer; ++i) {
        for (peer = 0; peer < mpi_job.size; ++peer) {
            if (peer == mpi_job.rank) {
                continue;
            }

            size         = p2p_few_sizes[(i + peer) % P2P_NUM_FEW_SIZES];
            send[posted] = job_buffer_alloc(size);
            mpi_job_fill_data(&send[posted], size, mpi_job.rank, peer, i);
            MPI_JOB_CALL(MPI_Isend(send[posted].data, size, MPI_BYTE, peer,
                                   1000 + i, MPI_COMM_WORLD,
                                   &requests[posted]));
            mpi_job_sent(size);
            ++posted;
        }
    }

    for (i = 0; i < total; ++i) {
        job_buffer_clear(&recv);
        MPI_JOB_CALL(MPI_Recv(recv.data, recv.length, MPI_BYTE, MPI_ANY_SOURCE,
                              MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        peer = status.MPI_SOURCE;
        MPI_JOB_CHECK((peer >= 0) && (peer < mpi_job.size) &&
                      (peer != mpi_job.rank),
                      "message %d came from rank %d, which sends none", i,
                      peer);
        MPI_JOB_CHECK(status.MPI_TAG == 1000 + next[peer],
                      "message from rank %d has tag %d, expected %d: order "
                      "lost", peer, status.MPI_TAG, 1000 + next[peer]);
        size = p2p_few_sizes[(next[peer] + mpi_job.rank) % P2P_NUM_FEW_SIZES];
        MPI_JOB_CALL(MPI_Get_count(&status, MPI_BYTE, &count));
        MPI_JOB_CHECK((size_t)count == size,
                      "message %d from rank %d has %d bytes, expected %zu",
                      next[peer], peer, count, size);
        mpi_job_check_data(&recv, size, peer, mpi_job.rank, next[peer]);
        MPI_JOB_CHECK((size == recv.length) ||
                      (recv.data[size] == JOB_GUARD_BYTE),
                      "message %d from rank %d of %zu bytes wrote beyond its "
                      "end", next[peer], peer, size);
        ++next[peer];
    }

    mpi_job_wait_all(posted, requests);
    for (i = 0; i < posted; ++i) {
        job_buffer_free(&send[i]);
    }
    job_buffer_free(&recv);
    free(next);
    free(requests);
    free(send);
}

/** Messages that lie in the receiver's unexpected queue before it asks, then
 *  taken out backwards. The order of arrival makes this certain: the message
 *  that the receiver waits for first was sent last. */
static void p2p_unexpected(void)
{
    static const size_t sizes[] = {0, 8, 500, 1024, 3000, 8000, 70000, 1500000};
    const int num_messages      = sizeof(sizes) / sizeof(sizes[0]);
    MPI_Request requests[sizeof(sizes) / sizeof(sizes[0])];
    job_buffer_t send[sizeof(sizes) / sizeof(sizes[0])];
    int next = (mpi_job.rank + 1) % mpi_job.size;
    int prev = (mpi_job.rank + mpi_job.size - 1) % mpi_job.size;
    MPI_Status status;
    job_buffer_t recv;
    int i, repeat;

    mpi_job_part("unexpected messages");
    for (repeat = 0; repeat < 3; ++repeat) {
        for (i = 0; i < num_messages; ++i) {
            send[i] = job_buffer_alloc(sizes[i]);
            mpi_job_fill_data(&send[i], sizes[i], mpi_job.rank, next,
                              repeat * 100 + i);
            MPI_JOB_CALL(MPI_Isend(send[i].data, sizes[i], MPI_BYTE, next, i,
                                   MPI_COMM_WORLD, &requests[i]));
            mpi_job_sent(sizes[i]);
        }

        MPI_JOB_CALL(MPI_Sendrecv(NULL, 0, MPI_BYTE, next, P2P_TAG_GO, NULL, 0,
                                  MPI_BYTE, prev, P2P_TAG_GO, MPI_COMM_WORLD,
                                  MPI_STATUS_IGNORE));
        mpi_job_sent(0);

        for (i = num_messages - 1; i >= 0; --i) {
            recv = job_buffer_alloc(sizes[i]);
            MPI_JOB_CALL(MPI_Recv(recv.data, sizes[i], MPI_BYTE, prev, i,
                                  MPI_COMM_WORLD, &status));
            p2p_check_status(&status, prev, i, sizes[i]);
            mpi_job_check_data(&recv, sizes[i], prev, mpi_job.rank,
                               repeat * 100 + i);
            job_buffer_free(&recv);
        }

        mpi_job_wait_all(num_messages, requests);
        for (i = 0; i < num_messages; ++i) {
            job_buffer_free(&send[i]);
        }
    }
}

/** Probe first, then receive exactly what was announced. */
static void p2p_probe(void)
{
    int next = (mpi_job.rank + 1) % mpi_job.size;
    int prev = (mpi_job.rank + mpi_job.size - 1) % mpi_job.size;
    job_buffer_t send, recv;
    MPI_Request request;
    MPI_Message message;
    MPI_Status status;
    size_t s, size;
    int count;

    mpi_job_part("probe and matched probe");
    for (s = 0; s < P2P_NUM_SIZES; s += 3) {
        size = p2p_sizes[s];
        send = job_buffer_alloc(size);
        mpi_job_fill_data(&send, size, mpi_job.rank, next, s);
        MPI_JOB_CALL(MPI_Isend(send.data, size, MPI_BYTE, next, s,
                               MPI_COMM_WORLD, &request));
        mpi_job_sent(size);

        if (s % 2) {
            MPI_JOB_CALL(MPI_Probe(prev, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        } else {
            MPI_JOB_CALL(MPI_Mprobe(prev, MPI_ANY_TAG, MPI_COMM_WORLD, &message,
                                    &status));
        }

        p2p_check_status(&status, prev, s, size);
        MPI_JOB_CALL(MPI_Get_count(&status, MPI_BYTE, &count));
        recv = job_buffer_alloc(count);
        if (s % 2) {
            MPI_JOB_CALL(MPI_Recv(recv.data, count, MPI_BYTE, prev, s,
                                  MPI_COMM_WORLD, &status));
        } else {
            MPI_JOB_CALL(MPI_Mrecv(recv.data, count, MPI_BYTE, &message,
                                   &status));
        }

        p2p_check_status(&status, prev, s, size);
        mpi_job_check_data(&recv, size, prev, mpi_job.rank, s);
        MPI_JOB_CALL(MPI_Wait(&request, MPI_STATUS_IGNORE));
        job_buffer_free(&recv);
        job_buffer_free(&send);
    }
}

/** Synchronous sends and persistent requests around a ring. */
static void p2p_ring(void)
{
    int next = (mpi_job.rank + 1) % mpi_job.size;
    int prev = (mpi_job.rank + mpi_job.size - 1) % mpi_job.size;
    job_buffer_t send, recv;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    size_t s, size;
    int i;

    mpi_job_part("persistent synchronous ring");
    for (s = 0; s < P2P_NUM_FEW_SIZES; ++s) {
        size = p2p_few_sizes[s];
        send = job_buffer_alloc(size);
        recv = job_buffer_alloc(size);
        MPI_JOB_CALL(MPI_Recv_init(recv.data, size, MPI_BYTE, prev, 7,
                                   MPI_COMM_WORLD, &requests[0]));
        MPI_JOB_CALL(MPI_Ssend_init(send.data, size, MPI_BYTE, next, 7,
                                    MPI_COMM_WORLD, &requests[1]));
        for (i = 0; i < 4; ++i) {
            job_buffer_clear(&recv);
            mpi_job_fill_data(&send, size, mpi_job.rank, next, i);
            MPI_JOB_CALL(MPI_Startall(2, requests));
            MPI_JOB_CALL(MPI_Waitall(2, requests, statuses));
            mpi_job_sent(size);
            p2p_check_status(&statuses[0], prev, 7, size);
            mpi_job_check_data(&recv, size, prev, mpi_job.rank, i);
        }

        MPI_JOB_CALL(MPI_Request_free(&requests[0]));
        MPI_JOB_CALL(MPI_Request_free(&requests[1]));
        job_buffer_free(&recv);
        job_buffer_free(&send);
    }
}

/** Every other block of 24 bytes of a matrix: packed by the MPI or sent as a
 *  gather list. The gaps at the receiver must stay as they were. */
static void p2p_strided(void)
{
    static const int counts[] = {1, 10, 300, 5000, 40000};
    const size_t block        = 24;
    int next = (mpi_job.rank + 1) % mpi_job.size;
    int prev = (mpi_job.rank + mpi_job.size - 1) % mpi_job.size;
    job_buffer_t send, recv;
    MPI_Datatype type;
    uint64_t seed;
    size_t c, i, where, span;

    mpi_job_part("strided datatype");
    for (c = 0; c < sizeof(counts) / sizeof(counts[0]); ++c) {
        span = 2 * block * counts[c];
        send = job_buffer_alloc(span);
        recv = job_buffer_alloc(span);
        mpi_job_fill_data(&send, span, mpi_job.rank, next, c);
        MPI_JOB_CALL(MPI_Type_vector(counts[c], block, 2 * block, MPI_BYTE,
                                     &type));
        MPI_JOB_CALL(MPI_Type_commit(&type));
        MPI_JOB_CALL(MPI_Sendrecv(send.data, 1, type, next, 8, recv.data, 1,
                                  type, prev, 8, MPI_COMM_WORLD,
                                  MPI_STATUS_IGNORE));
        mpi_job_sent(block * counts[c]);

        seed = job_pattern_seed(prev, mpi_job.rank, c);
        for (i = 0; i < span; ++i) {
            where = i % (2 * block);
            MPI_JOB_CHECK(recv.data[i] == ((where < block) ?
                                           job_pattern_byte(seed, i) :
                                           JOB_GUARD_BYTE),
                          "%d blocks: byte %zu of the matrix is 0x%02x, which "
                          "is %s", counts[c], i, recv.data[i],
                          (where < block) ? "not what was sent" :
                                            "in a gap");
        }

        MPI_JOB_CALL(MPI_Type_free(&type));
        job_buffer_free(&recv);
        job_buffer_free(&send);
    }
}

/** Numbers in a row are received as triples with a gap behind each. What a
 *  long message is cut into must not end inside a number: MPICH's unpack fails
 *  then. Sizes: one fragment, eager ones, rendezvous. */
static void p2p_triples(void)
{
    static const struct {
        MPI_Datatype basic;
        size_t       size;
        int          min_length;  /* Of a message, in numbers */
    } types[] = {
        {MPI_INT32_T, 4, 1},
        {MPI_DOUBLE, 8, 1},
        /* Eager messages: if these are in fragments, some end inside of 16
         * bytes, see uct_sep_config_max_am() */
        {MPI_C_DOUBLE_COMPLEX, 16, 2500}
    };
    static const int counts[] = {1, 300, 501, 684, 900, 5000, 50000};
    int next = (mpi_job.rank + 1) % mpi_job.size;
    int prev = (mpi_job.rank + mpi_job.size - 1) % mpi_job.size;
    size_t t, c, i, triple, length, where;
    job_buffer_t send, recv;
    MPI_Datatype type;
    uint64_t seed;

    mpi_job_part("triples of numbers");
    for (t = 0; t < sizeof(types) / sizeof(types[0]); ++t) {
        triple = 3 * types[t].size;
        for (c = 0; c < sizeof(counts) / sizeof(counts[0]); ++c) {
            if (3 * counts[c] < types[t].min_length) {
                continue;
            }

            length = triple * counts[c];
            send   = job_buffer_alloc(length);
            recv   = job_buffer_alloc(length / 3 * 4);
            mpi_job_fill_data(&send, length, mpi_job.rank, next, c);
            MPI_JOB_CALL(MPI_Type_vector(counts[c], 3, 4, types[t].basic,
                                         &type));
            MPI_JOB_CALL(MPI_Type_commit(&type));
            MPI_JOB_CALL(MPI_Sendrecv(send.data, 3 * counts[c], types[t].basic,
                                      next, 9, recv.data, 1, type, prev, 9,
                                      MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            mpi_job_sent(length);

            seed = job_pattern_seed(prev, mpi_job.rank, c);
            for (i = 0; i < length / 3 * 4; ++i) {
                where = i % (4 * types[t].size);
                MPI_JOB_CHECK(recv.data[i] ==
                              ((where < triple) ?
                               job_pattern_byte(seed, (i / (4 * types[t].size) *
                                                       triple) + where) :
                               JOB_GUARD_BYTE),
                              "%d triples of numbers of %zu bytes: byte %zu is "
                              "0x%02x, which is %s", counts[c], types[t].size,
                              i, recv.data[i],
                              (where < triple) ? "not what was sent" :
                                                 "in a gap");
            }

            MPI_JOB_CALL(MPI_Type_free(&type));
            job_buffer_free(&recv);
            job_buffer_free(&send);
        }
    }
}

/** A message longer than the receive buffer must be reported and must not be
 *  written beyond it; the connection works on afterwards. */
static void p2p_truncation(void)
{
    static const size_t sizes[] = {16, 4000, 300000};
    int peer = (mpi_job.rank < 2) ? !mpi_job.rank : -1;
    job_buffer_t buffer;
    int ret, class;
    size_t s, size;

    mpi_job_part("truncation");
    if (peer < 0) {
        return;
    }

    for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
        size = sizes[s];
        if (mpi_job.rank == 0) {
            buffer = job_buffer_alloc(size);
            mpi_job_fill_data(&buffer, size, 0, 1, s);
            MPI_JOB_CALL(MPI_Send(buffer.data, size, MPI_BYTE, peer, 20,
                                  MPI_COMM_WORLD));
            MPI_JOB_CALL(MPI_Send(buffer.data, size, MPI_BYTE, peer, 21,
                                  MPI_COMM_WORLD));
            /* Of the first one, as little as a request may have been moved */
            mpi_job_sent(0);
            mpi_job_sent(size);
        } else {
            buffer = job_buffer_alloc(size / 2);
            ret    = MPI_Recv(buffer.data, size / 2, MPI_BYTE, peer, 20,
                              MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Error_class(ret, &class);
            MPI_JOB_CHECK(class == MPI_ERR_TRUNCATE,
                          "%zu bytes received into %zu: error class %d, "
                          "expected MPI_ERR_TRUNCATE (%d)", size, size / 2,
                          class, MPI_ERR_TRUNCATE);
            MPI_JOB_CHECK(job_buffer_check(&buffer) == 0,
                          "%zu bytes received into %zu: written at offset %td",
                          size, size / 2, job_buffer_check(&buffer));
            job_buffer_free(&buffer);

            buffer = job_buffer_alloc(size);
            MPI_JOB_CALL(MPI_Recv(buffer.data, size, MPI_BYTE, peer, 21,
                                  MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            mpi_job_check_data(&buffer, size, 0, 1, s);
        }
        job_buffer_free(&buffer);
    }
}

/** Half of the round trip, and a stream of large messages, for the table. */
static void p2p_timing(p2p_buffers_t *buffers)
{
    static const size_t sizes[] = {8, 1024, 65536};
    const int window            = 4;
    const int warmup            = 20;
    MPI_Request requests[4];
    mpi_job_timer_t timer;
    int i, w, iterations;
    size_t s, size;

    mpi_job_part("timing");
    if (mpi_job.rank > 1) {
        return;
    }

    for (s = 0; s < sizeof(sizes) / sizeof(sizes[0]); ++s) {
        size       = sizes[s];
        iterations = (mpi_job.size > 2) ? 30 : (mpi_job.quick ? 200 : 600);
        mpi_job_fill_data(&buffers->send, size, mpi_job.rank, !mpi_job.rank, s);
        job_buffer_clear(&buffers->recv);
        timer = mpi_job_timer_start(iterations);
        for (i = -warmup; i < iterations; ++i) {
            if (i == 0) {
                timer = mpi_job_timer_start(iterations);
            }
            if (mpi_job.rank == 0) {
                MPI_JOB_CALL(MPI_Send(buffers->send.data, size, MPI_BYTE, 1, 0,
                                      MPI_COMM_WORLD));
                MPI_JOB_CALL(MPI_Recv(buffers->recv.data, size, MPI_BYTE, 1, 0,
                                      MPI_COMM_WORLD, MPI_STATUS_IGNORE));
            } else {
                MPI_JOB_CALL(MPI_Recv(buffers->recv.data, size, MPI_BYTE, 0, 0,
                                      MPI_COMM_WORLD, MPI_STATUS_IGNORE));
                MPI_JOB_CALL(MPI_Send(buffers->send.data, size, MPI_BYTE, 0, 0,
                                      MPI_COMM_WORLD));
            }
            mpi_job_sent(size);
            mpi_job_timer_tick(&timer);
        }

        mpi_job_check_data(&buffers->recv, size, !mpi_job.rank, mpi_job.rank,
                           s);
        if (mpi_job.rank == 0) {
            mpi_job_metric("latency", size, timer.best * 1e6 / 2, "us");
        }
    }

    size       = P2P_MAX_SIZE / window;
    iterations = (mpi_job.size > 2) ? 2 : (mpi_job.quick ? 10 : 20);
    mpi_job_fill_data(&buffers->send, P2P_MAX_SIZE, 0, 1, 77);
    job_buffer_clear(&buffers->recv);
    timer = mpi_job_timer_start(iterations);
    for (i = 0; i < iterations; ++i) {
        for (w = 0; w < window; ++w) {
            if (mpi_job.rank == 0) {
                MPI_JOB_CALL(MPI_Isend(buffers->send.data + (w * size), size,
                                       MPI_BYTE, 1, w, MPI_COMM_WORLD,
                                       &requests[w]));
                mpi_job_sent(size);
            } else {
                MPI_JOB_CALL(MPI_Irecv(buffers->recv.data + (w * size), size,
                                       MPI_BYTE, 0, w, MPI_COMM_WORLD,
                                       &requests[w]));
            }
        }
        mpi_job_wait_all(window, requests);
        mpi_job_timer_tick(&timer);
    }

    /* The receiver's time counts: a sender has only handed its data over */
    if (mpi_job.rank == 0) {
        MPI_JOB_CALL(MPI_Recv(&timer.best, 1, MPI_DOUBLE, 1, P2P_TAG_GO,
                              MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        mpi_job_metric("bandwidth", size,
                       P2P_MAX_SIZE / timer.best / (1 << 20), "MB/s");
    } else {
        mpi_job_check_data(&buffers->recv, P2P_MAX_SIZE, 0, 1, 77);
        MPI_JOB_CALL(MPI_Send(&timer.best, 1, MPI_DOUBLE, 0, P2P_TAG_GO,
                              MPI_COMM_WORLD));
        mpi_job_sent(sizeof(timer.best));
    }
}

int main(int argc, char **argv)
{
    p2p_buffers_t buffers;

    mpi_job_init(&argc, &argv, "p2p", MPI_THREAD_SINGLE, 2);
    buffers.send = job_buffer_alloc(P2P_MAX_SIZE);
    buffers.recv = job_buffer_alloc(P2P_MAX_SIZE);

    p2p_blocking_ping_pong(&buffers);
    buffers.recv.length = P2P_MAX_SIZE;
    p2p_nonblocking();
    p2p_wildcards();
    /* A fast rank's next part must not meet a slow rank's wildcards */
    MPI_JOB_CALL(MPI_Barrier(MPI_COMM_WORLD));
    p2p_unexpected();
    p2p_probe();
    p2p_ring();
    p2p_strided();
    p2p_triples();
    p2p_truncation();
    p2p_timing(&buffers);

    job_buffer_free(&buffers.recv);
    job_buffer_free(&buffers.send);
    return mpi_job_finish();
}
