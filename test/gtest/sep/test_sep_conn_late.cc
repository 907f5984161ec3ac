/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_conn_model.h>


#include <cstddef>
#include <cstring>

using namespace sep_conn_model;

namespace {

/*
 * Packets that were overtaken: they are of attempts that both sides have given
 * up since, or say more than their type has.
 */
class test_sep_conn_late : public test_conn, protected conn_pair {
protected:
    /* b has answered a's request of this epoch, and waits for the RTU */
    void answer(uint32_t epoch)
    {
        b.receive(to_bytes(message(a, b, UCT_SEP_CONN_MSG_REQ, epoch, 0)));
        ASSERT_EQ(UCT_SEP_CONN_STATE_REP_SENT, ba().super.state);
        w.wire.clear();
    }

    void expect_waits()
    {
        EXPECT_EQ(UCT_SEP_CONN_STATE_REP_SENT, ba().super.state);
        EXPECT_EQ(0u, ba().established);
    }

    static bool is_accepted(const std::vector<uint8_t> &bytes,
                            uct_sep_conn_msg_t *out)
    {
        return uct_sep_conn_msg_parse(bytes.data(), bytes.size(), out) ==
               UCT_SEP_CONN_PARSE_OK;
    }

    /* Valid, of a type */
    std::vector<uint8_t> good(unsigned type)
    {
        auto msg = message(a, b, (uct_sep_conn_msg_type_t)type,
                           (type == UCT_SEP_CONN_MSG_REJ) ? 0 : 5,
                           (type == UCT_SEP_CONN_MSG_REQ) ? 0 : 6);

        msg.reason = (type == UCT_SEP_CONN_MSG_REJ) ? UCT_SEP_CONN_REJ_BUSY :
                                                      UCT_SEP_CONN_REJ_NONE;
        return to_bytes(msg);
    }
};

} // namespace


/* The RTU of an attempt was overtaken by the request of the next one: our queue
 * pair is connected to that of the next one, which is not ready */
TEST_F(test_sep_conn_late, a_confirmation_of_another_attempt_is_ignored)
{
    w.is_peer_real = false;
    for (uint32_t other : {4u, 6u, 50u}) {
        answer(5);
        auto rtu = message(a, b, UCT_SEP_CONN_MSG_RTU, other,
                           ba().super.local_epoch);
        b.receive(to_bytes(rtu));
        expect_waits();

        /* Whichever of the two it is that does not fit */
        rtu.src_nonce = a.nonce(5);
        b.receive(to_bytes(rtu));
        expect_waits();
        rtu.src_epoch = 5;
        rtu.src_nonce = a.nonce(other);
        b.receive(to_bytes(rtu));
        expect_waits();
    }

    auto rtu = message(a, b, UCT_SEP_CONN_MSG_RTU, 5,
                       ba().super.local_epoch + 1);
    b.receive(to_bytes(rtu));
    expect_waits();
    rtu.dst_epoch = ba().super.local_epoch;
    b.receive(to_bytes(rtu));
    expect_waits();
    rtu.dst_nonce = b.nonce(ba().super.local_epoch);
    b.receive(to_bytes(rtu));
    EXPECT_EQ(1u, ba().established);
}

/* A rejection of an earlier attempt does not end this one */
TEST_F(test_sep_conn_late, a_rejection_of_another_attempt_is_ignored)
{
    a.start(ab);
    w.wire.clear();
    for (auto reason : {UCT_SEP_CONN_REJ_NO_RESOURCES,
                        UCT_SEP_CONN_REJ_STALE_EPOCH,
                        UCT_SEP_CONN_REJ_STALE_IFACE}) {
        auto rej   = message(b, a, UCT_SEP_CONN_MSG_REJ, 0,
                             ab.super.local_epoch + 1);
        rej.reason = reason;
        a.receive(to_bytes(rej));
        rej.dst_nonce = a.nonce(ab.super.local_epoch);
        a.receive(to_bytes(rej));
        rej.dst_epoch = ab.super.local_epoch;
        rej.dst_nonce = a.nonce(ab.super.local_epoch + 1);
        a.receive(to_bytes(rej));
        EXPECT_EQ(UCT_SEP_CONN_STATE_REQ_SENT, ab.super.state);
        EXPECT_EQ(0u, ab.failed);
        EXPECT_TRUE(w.wire.empty());
    }
}

/* The peer went on, and is asked again: its first answer comes once more */
TEST_F(test_sep_conn_late, a_refusal_of_an_earlier_question_is_ignored)
{
    w.sleeps = true;
    connect();
    b.start(ba());
    a.quit(ab);
    b.receive(take());
    ASSERT_TRUE(ba().asked);
    b.answer_asked(ba(), false);
    auto refusal = take();
    a.receive(refusal);
    ASSERT_EQ(UCT_SEP_CONN_STATE_CONNECTED, ab.super.state);

    a.quit(ab);
    a.receive(refusal);
    EXPECT_EQ(UCT_SEP_CONN_STATE_DISCONNECTING, ab.super.state);
    b.receive(take());
    ASSERT_TRUE(ba().asked);
    b.answer_asked(ba(), true);
    settle();
    EXPECT_EQ(UCT_SEP_CONN_STATE_IDLE, ab.super.state);
    EXPECT_EQ(UCT_SEP_CONN_STATE_IDLE, ba().super.state);
}

/* An answer of a queue pair that is not the one ours is connected to */
TEST_F(test_sep_conn_late, an_answer_of_an_older_attempt_does_not_connect)
{
    w.is_peer_real = false;
    answer(5);
    b.receive(to_bytes(message(a, b, UCT_SEP_CONN_MSG_REP, 4,
                               ba().super.local_epoch)));
    expect_waits();
    EXPECT_TRUE(w.wire.empty());
}

/* As the format says: by types that have a field, and where it is */
TEST_F(test_sep_conn_late, fields_that_a_type_does_not_have_are_zero)
{
    enum {
        REQ  = 1 << UCT_SEP_CONN_MSG_REQ,
        REP  = 1 << UCT_SEP_CONN_MSG_REP,
        REJ  = 1 << UCT_SEP_CONN_MSG_REJ,
        DREQ = 1 << UCT_SEP_CONN_MSG_DREQ,
        ALL  = (1 << UCT_SEP_CONN_MSG_LAST) - 1
    };
    const struct {
        unsigned types;
        size_t   offset, size;
    } fields[] = {
        {REJ, 8, 1},          /* reason */
        {DREQ, 9, 1},         /* token; also of a REJ, "in use" */
        {0, 10, 6},           /* reserved */
        {0, 63, 1},           /* reserved */
        {ALL & ~REJ, 64, 4},  /* src_epoch */
        {ALL & ~REQ, 68, 4},  /* dst_epoch */
        {ALL & ~REJ, 72, 8},  /* src_nonce */
        {REQ | REP, 88, 16}   /* qp */
    };

    for (unsigned type = UCT_SEP_CONN_MSG_REQ; type < UCT_SEP_CONN_MSG_LAST;
         ++type) {
        for (const auto &field : fields) {
            if (field.types & (1 << type)) {
                continue;
            }
            for (size_t i = 0; i < field.size; ++i) {
                uct_sep_conn_msg_t out;
                auto bytes = good(type);

                bytes[field.offset + i] = 1;
                EXPECT_FALSE(is_accepted(bytes, &out))
                        << "type " << type << " byte " << field.offset + i;
            }
        }
    }

    for (unsigned reason = UCT_SEP_CONN_REJ_NONE + 1;
         reason < UCT_SEP_CONN_REJ_LAST; ++reason) {
        uct_sep_conn_msg_t out;
        auto bytes = good(UCT_SEP_CONN_MSG_REJ);

        bytes[8] = reason;
        bytes[9] = 9;
        EXPECT_EQ(reason == UCT_SEP_CONN_REJ_IN_USE,
                  is_accepted(bytes, &out)) << reason;
    }
}
