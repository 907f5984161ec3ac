/* SPDX-License-Identifier: BSD-3-Clause */

#include <sep/test_sep_uct_side.h>

#include <ucs/config/parser.h>

#include <infiniband/mlx5dv.h>

#include <dlfcn.h>

using namespace sep_uct_test;

/*
 * rc_mlx5 with compressed completions: it reads whatever blocks it finds, but
 * asks for them only on devices with DEVX, so a function of libmlx5 in front of
 * the real one asks instead. That UCX gets along with what the software device
 * writes shows that it is as on adapters.
 */

static bool ask_for_compression;
static unsigned num_asked;

extern "C" __attribute__((visibility("default"))) struct ibv_cq_ex *
mlx5dv_create_cq(struct ibv_context *context,
                 struct ibv_cq_init_attr_ex *cq_attr,
                 struct mlx5dv_cq_init_attr *attr)
{
    static auto real = (decltype(&mlx5dv_create_cq))dlsym(RTLD_NEXT,
                                                          "mlx5dv_create_cq");
    struct mlx5dv_cq_init_attr changed;

    if (ask_for_compression && (attr != NULL)) {
        changed                     = *attr;
        changed.comp_mask          |= MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE;
        changed.cqe_comp_res_format = MLX5DV_CQE_RES_FORMAT_CSUM;
        attr                        = &changed;
        ++num_asked;
    }
    return real(context, cq_attr, attr);
}

namespace {

class test_sep_uct_zip : public ::testing::TestWithParam<const char*> {
protected:
    void SetUp() override
    {
        if (!entity::has_device()) {
            GTEST_SKIP() << "no mlx5 device (run with mlx5sim-run)";
        }
        if (has_field("RX_CQE_ZIP_ENABLE")) {
            GTEST_SKIP() << "this rc_mlx5 reads blocks only where it has asked "
                            "for them itself, on devices with DEVX";
        }
    }

    /* Whether a table of UCX has it, or one that is part of it */
    static bool has_field(const ucs_config_field_t *field, const char *name)
    {
        for (; field->name != NULL; ++field) {
            if (!strcmp(field->name, name) ||
                ((field->parser.read == ucs_config_sscanf_table) &&
                 has_field((const ucs_config_field_t*)field->parser.arg,
                           name))) {
                return true;
            }
        }
        return false;
    }

    static bool has_field(const char *name)
    {
        ucs_config_global_list_entry_t *entry;

        ucs_list_for_each(entry, &ucs_config_global_list, list) {
            if ((entry->table != NULL) && has_field(entry->table, name)) {
                return true;
            }
        }
        return false;
    }

    static long compressed()
    {
        const char *build = getenv("SEP_BUILD_DIR");
        std::string command, text;
        char line[4096];

        command = std::string(build ? build : ".") + "/bin/mlx5sim-stat --json";
        FILE *pipe = popen(command.c_str(), "r");
        while (fgets(line, sizeof(line), pipe) != NULL) {
            text += line;
        }
        EXPECT_EQ(0, pclose(pipe));

        size_t at = text.rfind("\"cqes_compressed\":");
        return (at == std::string::npos) ? -1 :
                                           strtol(&text[at + 18], NULL, 10);
    }

    void run(unsigned num_bursts);
};

void test_sep_uct_zip::run(unsigned num_bursts)
{
    /* Short queues go round often */
    const settings config = {{"RC_RX_QUEUE_LEN", "128"}};
    uint64_t sent         = 0;
    uint64_t usual        = 0; /* Sent in the first bursts */

    ask_for_compression = true;
    side sender("rc_mlx5", config, UCS_THREAD_MODE_SINGLE);
    side receiver("rc_mlx5", config, UCS_THREAD_MODE_SINGLE);
    ask_for_compression = false;
    ASSERT_EQ(4u, num_asked);

    sender.create_ep(receiver);
    receiver.create_ep(sender);
    ASSERT_FALSE(HasFailure());
    sender.connect(receiver);
    receiver.connect(sender);

    /* How many messages the device puts together is a matter of time, so there
     * are more bursts until it has done so with a tenth of the usual number */
    for (unsigned burst = 0;
         (burst < num_bursts) || (compressed() <= long(usual / 10)); ++burst) {
        for (unsigned i = 0; i < 1 + burst % 40; ++i) {
            ssize_t status;

            while ((status = sender.send(sent)) == UCS_ERR_NO_RESOURCE) {
                sender.progress();
                receiver.progress();
            }
            ASSERT_EQ(ssize_t(side::message_length), status);
            ++sent;
        }
        usual = (burst < num_bursts) ? sent : usual;
        while (receiver.num_messages < sent) {
            unsigned before = receiver.num_messages;

            receiver.progress();
            sender.progress();
            if (receiver.num_messages > before) {
                ASSERT_EQ(receiver.num_messages - 1, receiver.last_message);
            }
        }
    }
    while (!sender.flushed() || !receiver.flushed()) {
        sender.progress();
        receiver.progress();
    }
    EXPECT_GT(compressed(), long(usual / 10));
}

TEST_P(test_sep_uct_zip, rc_mlx5_reads_blocks)
{
    if (on_device({{"MLX5SIM_EXEC", "deferred"},
                   {"MLX5SIM_SEED", GetParam()}})) {
        run(120);
    }
}

INSTANTIATE_TEST_SUITE_P(seed, test_sep_uct_zip,
                         ::testing::Values("1", "2", "3"),
                         [](const auto &info) {
                             return std::string(info.param);
                         });

} // namespace
