/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * The MLX5SIM_* variables: parsing, validation, the config file of an instance,
 * help texts.
 */

#include <sim/sysfs_helpers.h>

extern "C" {
#include <sim/config/fault.h>
#include <sim/config/identity.h>
#include <sim/config/quirk.h>
}

#include <cerrno>
#include <cstdio>
#include <cstring>

using namespace sysfs_helpers;

TEST(test_sysfs_config, every_row_is_complete_and_its_default_valid)
{
    mlx5sim_config_t config = default_config();
    char error[MLX5SIM_CONFIG_ERROR_MAX];
    std::set<std::string> names;
    size_t count;
    const mlx5sim_config_row_t *rows = mlx5sim_config_rows(&count);

    for (size_t i = 0; i < count; ++i) {
        EXPECT_TRUE(names.insert(rows[i].name).second) << rows[i].name;
        EXPECT_EQ(0, strncmp(rows[i].name, "MLX5SIM_", 8)) << rows[i].name;
        EXPECT_GT(strlen(rows[i].description), 10u) << rows[i].name;
        EXPECT_EQ(nullptr, strchr(rows[i].description, '|')) << rows[i].name;
        if (rows[i].def[0] != '\0') {
            EXPECT_EQ(0, mlx5sim_config_set(&config, rows[i].name, rows[i].def,
                                            error, sizeof(error))) << error;
        }
        if (rows[i].scope != MLX5SIM_CONFIG_LOCATION) {
            char value[MLX5SIM_CONFIG_STRING_MAX];
            mlx5sim_config_get(&config, &rows[i], value, sizeof(value));
            EXPECT_STREQ(rows[i].def, value) << rows[i].name;
        }
    }
}

TEST(test_sysfs_config, a_bad_value_is_refused_and_what_is_right_is_said)
{
    static const struct {
        const char *name;
        const char *value;
        const char *allowed;
    } cases[] = {
        {"MLX5SIM_DEVICES", "0", "from 1 to 16"},
        {"MLX5SIM_DEVICES", "17", "from 1 to 16"},
        {"MLX5SIM_DEVICES", "-1", "from 1 to 16"},
        {"MLX5SIM_DEVICES", " 2", "from 1 to 16"},
        {"MLX5SIM_DEVICES", "2x", "from 1 to 16"},
        {"MLX5SIM_DEVICES", "0x", "from 1 to 16"},
        {"MLX5SIM_DEVICES", "4294967297", "from 1 to 16"},
        {"MLX5SIM_DEVICES", "99999999999999999999999", "from 1 to 16"},
        {"MLX5SIM_DEVICES", "", "from 1 to 16"},
        {"MLX5SIM_PORTS", "3", "from 1 to 2"},
        {"MLX5SIM_LINK", "ethernet", "one of ib, roce"},
        {"MLX5SIM_MODEL", "cx3", "one of cx4, cx5"},
        {"MLX5SIM_STRICT", "maybe", "y or n"},
        {"MLX5SIM_DISABLE", "2", "y or n"},
        {"MLX5SIM_FW_VERSION", "16.35", "three numbers"},
        {"MLX5SIM_FW_VERSION", "16.35.4506.1", "three numbers"},
        {"MLX5SIM_FW_VERSION", "16.35.70000", "three numbers"},
        {"MLX5SIM_NETDEV", "../../etc", "network interface"},
        {"MLX5SIM_NETDEV", "a-name-that-is-too-long", "network interface"},
        {"MLX5SIM_NETDEV", "..", "network interface"},
        {"MLX5SIM_WIRE", "eth0,", "network interfaces"},
        {"MLX5SIM_DIR", "relative", "absolute path"},
        {"MLX5SIM_LOG", "loud", "one of none, error"},
        {"MLX5SIM_UAR_MODE", "static", "one of dynamic, legacy"},
        {"MLX5SIM_UARS", "0", "from 1 to 65536"},
        {"MLX5SIM_WC", "on", "a number from 0 to 4294967295"},
        {"MLX5SIM_SEED", "-1", "a number of up to 64 bits, or random"},
        {"MLX5SIM_SEED", "1x", "or random"},
        {"MLX5SIM_SEED", "18446744073709551616", "or random"},
        {"MLX5SIM_SEED", "randomly", "or random"},
        {"MLX5SIM_PCI_ATOMICS", "16", "one of none, fadd8"},
        {"MLX5SIM_BAD_GIDS", "32", "GID indices"},
        {"MLX5SIM_BAD_GIDS", "1,", "GID indices"},
        {"MLX5SIM_BAD_GIDS", "-1", "GID indices"},
        {"MLX5SIM_GIDLESS", "mlx5_0", "a list of ports"},
        {"MLX5SIM_GIDLESS", "mlx5_0:0", "a list of ports"},
        {"MLX5SIM_GIDLESS", "mlx5_0:3", "a list of ports"},
        {"MLX5SIM_GIDLESS", "mlx5_16:1", "a list of ports"},
        {"MLX5SIM_GIDLESS", "mlx4_0:1", "a list of ports"},
        {"MLX5SIM_GIDLESS", "mlx5_0:1,", "a list of ports"},
        {"MLX5SIM_EMPTY_GIDS", "mlx5_0", "a list of ports"},
        {"MLX5SIM_RECV_ERROR", "1", "NTH[+]:SYNDROME:VENDOR"},
        {"MLX5SIM_RECV_ERROR", "0:0x22:0x93", "NTH[+]:SYNDROME:VENDOR"},
        {"MLX5SIM_RECV_ERROR", "1:0:0x93", "NTH[+]:SYNDROME:VENDOR"},
        {"MLX5SIM_RECV_ERROR", "1:0x22:256", "NTH[+]:SYNDROME:VENDOR"},
        {"MLX5SIM_RECV_ERROR", "1-:0x22:0x93", "NTH[+]:SYNDROME:VENDOR"},
        {"MLX5SIM_FAIL", "queue", "OBJECT"},
        {"MLX5SIM_FAIL", "qp:", "OBJECT"},
        {"MLX5SIM_FAIL", "qp:0", "OBJECT"},
        {"MLX5SIM_FAIL", "qp:-1", "OBJECT"},
        {"MLX5SIM_FAIL", "qp:1x", "OBJECT"},
        {"MLX5SIM_FAIL", "qp:1:ENONSENSE", "OBJECT"},
        {"MLX5SIM_FAIL", "qp:1:EIO:2", "OBJECT"},
        {"MLX5SIM_FAIL", "qp,", "OBJECT"},
        {"MLX5SIM_FAIL", ",qp", "OBJECT"},
        {"MLX5SIM_FAIL", "qp,qp,qp,qp,qp,qp,qp,qp,qp,qp,qp,qp,qp,qp,qp,qp,qp",
         "up to 16"},
    };

    for (const auto &c : cases) {
        mlx5sim_config_t config = default_config();
        mlx5sim_config_t before = config;
        char error[MLX5SIM_CONFIG_ERROR_MAX];

        errno = 0;
        EXPECT_EQ(-1, mlx5sim_config_set(&config, c.name, c.value, error,
                                         sizeof(error)))
                << c.name << "=" << c.value;
        EXPECT_EQ(EINVAL, errno);
        EXPECT_NE(nullptr, strstr(error, c.name)) << error;
        EXPECT_NE(nullptr, strstr(error, c.value)) << error;
        EXPECT_NE(nullptr, strstr(error, c.allowed)) << error;
        EXPECT_EQ(0, memcmp(&before, &config, sizeof(config)));
    }
}

TEST(test_sysfs_config, what_is_odd_about_a_system_is_understood)
{
    mlx5sim_quirk_recv_t recv;
    uint32_t gids, ports;

    ASSERT_EQ(0, mlx5sim_quirk_parse_ports("mlx5_0:2,mlx5_15:1", &ports));
    EXPECT_EQ(mlx5sim_quirk_port(0, 2) | mlx5sim_quirk_port(15, 1), ports);
    EXPECT_EQ(2u | (1u << 30), ports);
    ASSERT_EQ(0, mlx5sim_quirk_parse_ports("", &ports));
    EXPECT_EQ(0u, ports);
    ASSERT_EQ(0, mlx5sim_quirk_parse_gids("3,0,31", &gids));
    EXPECT_EQ((1u << 3) | 1 | (1u << 31), gids);
    ASSERT_EQ(0, mlx5sim_quirk_parse_gids("", &gids));
    EXPECT_EQ(0u, gids);

    ASSERT_EQ(0, mlx5sim_quirk_parse_recv("7+:0x22:147", &recv));
    EXPECT_EQ(7u, recv.nth);
    EXPECT_TRUE(recv.onwards);
    EXPECT_EQ(0x22, recv.syndrome);
    EXPECT_EQ(0x93, recv.vendor);
    EXPECT_TRUE(recv.is_abort);
    ASSERT_EQ(0, mlx5sim_quirk_parse_recv("1:4:0", &recv));
    EXPECT_FALSE(recv.onwards || recv.is_abort);
    ASSERT_EQ(0, mlx5sim_quirk_parse_recv("", &recv));
    EXPECT_EQ(0u, recv.nth);
}

TEST(test_sysfs_config, a_list_of_faults_is_understood)
{
    mlx5sim_fault_list_t list;

    ASSERT_EQ(0, mlx5sim_fault_parse("", &list));
    EXPECT_EQ(0u, list.num);
    EXPECT_EQ(0, mlx5sim_fault_match(&list, MLX5SIM_FAULT_QP, 1));

    ASSERT_EQ(0, mlx5sim_fault_parse("qp,mr:3,modify_qp_rts:2+:EINVAL,mr:5:EIO",
                                     &list));
    EXPECT_EQ(4u, list.num);
    EXPECT_EQ(ENOMEM, mlx5sim_fault_match(&list, MLX5SIM_FAULT_QP, 1));
    EXPECT_EQ(0, mlx5sim_fault_match(&list, MLX5SIM_FAULT_QP, 2));
    EXPECT_EQ(0, mlx5sim_fault_match(&list, MLX5SIM_FAULT_MR, 1));
    EXPECT_EQ(ENOMEM, mlx5sim_fault_match(&list, MLX5SIM_FAULT_MR, 3));
    EXPECT_EQ(EIO, mlx5sim_fault_match(&list, MLX5SIM_FAULT_MR, 5));
    EXPECT_EQ(0, mlx5sim_fault_match(&list, MLX5SIM_FAULT_MODIFY_QP, 2));
    EXPECT_EQ(0, mlx5sim_fault_match(&list, MLX5SIM_FAULT_MODIFY_QP_RTS, 1));
    EXPECT_EQ(EINVAL, mlx5sim_fault_match(&list, MLX5SIM_FAULT_MODIFY_QP_RTS,
                                          2));
    EXPECT_EQ(EINVAL, mlx5sim_fault_match(&list, MLX5SIM_FAULT_MODIFY_QP_RTS,
                                          200));

    for (int i = MLX5SIM_FAULT_NONE + 1; i < MLX5SIM_FAULT_LAST; ++i) {
        const char *name = mlx5sim_fault_name((mlx5sim_fault_object_t)i);

        ASSERT_EQ(0, mlx5sim_fault_parse(name, &list));
        EXPECT_EQ(i, list.entries[0].object);
    }
}

TEST(test_sysfs_config, good_values_are_taken)
{
    mlx5sim_config_t config = default_config();
    char error[MLX5SIM_CONFIG_ERROR_MAX];
    uint16_t fw[3];

    auto set = [&](const char *name, const char *value) {
        EXPECT_EQ(0, mlx5sim_config_set(&config, name, value, error,
                                        sizeof(error))) << error;
    };

    set("MLX5SIM_DEVICES", "0x10");
    EXPECT_EQ(16u, config.devices);
    set("MLX5SIM_DEVICES", "08");
    EXPECT_EQ(8u, config.devices);
    set("MLX5SIM_LINK", "RoCE");
    EXPECT_EQ(unsigned(MLX5SIM_LINK_ROCE), config.link);
    set("MLX5SIM_MODEL", "cx7");
    EXPECT_STREQ("MT4129", mlx5sim_model_get(config.model)->hca_type);
    for (const char *no : {"n", "0", "NO", "off", "False"}) {
        config.strict = 1;
        set("MLX5SIM_STRICT", no);
        EXPECT_EQ(0u, config.strict) << no;
    }

    mlx5sim_fw_version(&config, fw);
    EXPECT_EQ(28, fw[0]);
    set("MLX5SIM_FW_VERSION", "1.22.333");
    mlx5sim_fw_version(&config, fw);
    EXPECT_EQ(1, fw[0]);
    EXPECT_EQ(22, fw[1]);
    EXPECT_EQ(333, fw[2]);
}

TEST(test_sysfs_config, a_saved_configuration_loads_as_the_same)
{
    temp_dir dir;
    mlx5sim_config_t config = default_config(), loaded = default_config();
    char error[MLX5SIM_CONFIG_ERROR_MAX];

    config.devices = 5;
    config.link    = MLX5SIM_LINK_ROCE;
    config.strict  = 0; /* not a property of the instance */
    strcpy(config.netdev, "eth7");
    ASSERT_EQ(0, mlx5sim_config_save(&config, dir.fd(), "config", error,
                                     sizeof(error))) << error;
    ASSERT_EQ(0, mlx5sim_config_load(&loaded, dir.fd(), dir.c_str(), "config",
                                     error, sizeof(error))) << error;
    EXPECT_EQ(1u, loaded.strict);
    loaded.strict = 0;
    EXPECT_EQ(0, memcmp(&config, &loaded, sizeof(config)));
    EXPECT_EQ(std::set<std::string>{"config"}, list_dir(dir.c_str()));
}

TEST(test_sysfs_config, a_damaged_file_is_an_error_and_not_a_default)
{
    temp_dir dir;
    std::string path = dir / "config";
    char error[MLX5SIM_CONFIG_ERROR_MAX];

    for (const char *content :
         {"", "\n", "MLX5SIM_DEVICES=2\n", "LAYOUT=0\nMLX5SIM_DEVICES=2\n",
          "LAYOUT=1\nMLX5SIM_DEVICES=2\nnonsense\n",
          "LAYOUT=1\nMLX5SIM_DEVICES=\n", "LAYOUT=1\nMLX5SIM_DEVICES=200\n",
          "LAYOUT=1\nMLX5SIM_WHAT=1\n", "LAYOUT=1\n\n"}) {
        mlx5sim_config_t config = default_config();
        write_file(path, content);
        EXPECT_EQ(-1, mlx5sim_config_load(&config, dir.fd(), dir.c_str(),
                                          "config", error, sizeof(error)))
                << content;
        EXPECT_EQ(EINVAL, errno);
        EXPECT_NE(nullptr, strstr(error, path.c_str())) << error;
    }

    mlx5sim_config_t config = default_config();
    EXPECT_EQ(-1, mlx5sim_config_load(&config, dir.fd(), dir.c_str(), "none",
                                      error, sizeof(error)));
    EXPECT_EQ(ENOENT, errno);
}

TEST(test_sysfs_config, a_mistyped_variable_is_found_with_what_was_meant)
{
    clean_env env;
    const char *closest = nullptr;

    EXPECT_EQ(nullptr, mlx5sim_config_find_unknown(&closest));

    setenv("MLX5SIM_DEVICE", "2", 1);
    EXPECT_STREQ("MLX5SIM_DEVICE", mlx5sim_config_find_unknown(&closest));
    EXPECT_STREQ("MLX5SIM_DEVICES", closest);
    unsetenv("MLX5SIM_DEVICE");

    setenv("MLX5SIM_SOMETHING_ELSE", "2", 1);
    EXPECT_STREQ("MLX5SIM_SOMETHING_ELSE",
                 mlx5sim_config_find_unknown(&closest));
    EXPECT_EQ(nullptr, closest);
    unsetenv("MLX5SIM_SOMETHING_ELSE");
}

TEST(test_sysfs_config, help_and_docs_have_every_variable)
{
    size_t count;
    const mlx5sim_config_row_t *rows = mlx5sim_config_rows(&count);

    for (auto format : {MLX5SIM_CONFIG_TEXT, MLX5SIM_CONFIG_MARKDOWN}) {
        char *text  = nullptr;
        size_t size = 0;
        FILE *file  = open_memstream(&text, &size);

        mlx5sim_config_print(file, format);
        fclose(file);
        for (size_t i = 0; i < count; ++i) {
            EXPECT_NE(nullptr, strstr(text, rows[i].name));
            EXPECT_NE(nullptr, strstr(text, rows[i].description));
        }
        free(text);
    }
}
