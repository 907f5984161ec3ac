/* SPDX-License-Identifier: BSD-3-Clause */

#ifndef SYSFS_HELPERS_H_
#define SYSFS_HELPERS_H_

/*
 * What the tests of discovery share.
 */

#include <gtest/gtest.h>

extern "C" {
#include <sim/config/config.h>
}

#include <cstdlib>
#include <fstream>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sysfs_helpers {

class temp_dir {
public:
    temp_dir()
    {
        /* where instances are by default, and faster than a disk */
        char memory[] = "/dev/shm/mlx5sim-test.XXXXXX";
        char disk[]   = "/tmp/mlx5sim-test.XXXXXX";
        char *name    = mkdtemp(memory);

        if (name == nullptr) {
            name = mkdtemp(disk);
        }
        EXPECT_NE(nullptr, name);
        m_path = name;
        m_fd   = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        EXPECT_LE(0, m_fd);
    }

    ~temp_dir()
    {
        close(m_fd);
        nftw(m_path.c_str(), remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    }

    std::string operator/(const std::string &name) const
    {
        return m_path + "/" + name;
    }

    const char *c_str() const
    {
        return m_path.c_str();
    }

    int fd() const
    {
        return m_fd;
    }

private:
    static int
    remove_entry(const char *path, const struct stat *, int, struct FTW *)
    {
        return remove(path);
    }

    std::string m_path;
    int         m_fd;
};

inline std::string read_file(const std::string &path)
{
    std::ifstream file(path);
    std::stringstream content;

    EXPECT_TRUE(file.good()) << path;
    content << file.rdbuf();
    return content.str();
}

inline void write_file(const std::string &path, const std::string &content)
{
    std::ofstream file(path);

    file << content;
    EXPECT_TRUE(file.good()) << path;
}

inline std::set<std::string> list_dir(const std::string &path)
{
    std::set<std::string> names;
    struct dirent *entry;
    DIR *dir = opendir(path.c_str());

    EXPECT_NE(nullptr, dir) << path;
    while ((dir != nullptr) && ((entry = readdir(dir)) != nullptr)) {
        if (entry->d_name[0] != '.') {
            names.insert(entry->d_name);
        }
    }
    if (dir != nullptr) {
        closedir(dir);
    }
    return names;
}

/* Run in count processes that start together; returns what each exited with. */
inline std::vector<int>
run_at_once(unsigned count, const std::function<int(unsigned)> &function)
{
    std::vector<pid_t> children;
    std::vector<int> results;
    int gate[2];

    EXPECT_EQ(0, pipe(gate));
    for (unsigned i = 0; i < count; ++i) {
        pid_t pid = fork();
        if (pid == 0) {
            char byte;
            close(gate[1]);
            if (read(gate[0], &byte, 1) != 0) {
                _exit(99);
            }
            _exit(function(i));
        }
        children.push_back(pid);
    }

    close(gate[0]);
    close(gate[1]); /* end of file lets them all go */
    for (pid_t pid : children) {
        int status = -1;
        EXPECT_EQ(pid, waitpid(pid, &status, 0));
        results.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    }
    return results;
}

inline mlx5sim_config_t default_config()
{
    mlx5sim_config_t config;

    mlx5sim_config_init(&config);
    return config;
}

/* Environment without variables of ours, put back at the end. */
class clean_env {
public:
    clean_env()
    {
        size_t count;
        const mlx5sim_config_row_t *rows = mlx5sim_config_rows(&count);

        for (size_t i = 0; i < count; ++i) {
            const char *value = getenv(rows[i].name);
            if (value != nullptr) {
                m_saved.emplace_back(rows[i].name, value);
            }
            unsetenv(rows[i].name);
        }
    }

    ~clean_env()
    {
        size_t count;
        const mlx5sim_config_row_t *rows = mlx5sim_config_rows(&count);

        for (size_t i = 0; i < count; ++i) {
            unsetenv(rows[i].name);
        }
        for (const auto &variable : m_saved) {
            setenv(variable.first.c_str(), variable.second.c_str(), 1);
        }
    }

private:
    std::vector<std::pair<std::string, std::string>> m_saved;
};

} // namespace sysfs_helpers

#endif
