/* SPDX-License-Identifier: BSD-3-Clause */

#include <device/device.h>

#include <cctype>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace device {

namespace {

/* of this process, for messages; nullptr in the test program itself */
board *current_board;
int current_rank = -1;

std::string exe_dir()
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (length < 0) {
        return ".";
    }

    path[length] = '\0';
    *strrchr(path, '/') = '\0';
    return path;
}

std::string status_text(int status)
{
    std::ostringstream out;

    if (WIFSIGNALED(status)) {
        out << "ended by signal " << WTERMSIG(status) << " ("
            << strsignal(WTERMSIG(status)) << ")";
    } else {
        out << "exit status " << WEXITSTATUS(status);
    }
    return out.str();
}

bool is_preloaded()
{
    /* a sanitizer may come before it in the search for symbols */
    return dl_iterate_phdr([](dl_phdr_info *info, size_t, void*) {
        return (int)(strstr(info->dlpi_name, "libmlx5sim") != nullptr);
    }, nullptr) != 0;
}

/* What follows "key": in JSON from an offset on; "" if it is not there */
std::string json_value(const std::string &text, const std::string &key,
                       size_t from)
{
    size_t at = text.find("\"" + key + "\": ", from);

    if (at == std::string::npos) {
        return "";
    }

    at += key.length() + 4;
    return text.substr(at, text.find_first_of(",}]\n", at) - at);
}

void pause_us(unsigned us)
{
    timespec ts = {0, (long)us * 1000};

    nanosleep(&ts, nullptr);
}

} // namespace


std::vector<std::string> stat_qps(const std::string &json,
                                  const std::string &key)
{
    std::vector<std::string> values;
    size_t at = 0;

    while ((at = json.find("\"qpn\": ", at)) != std::string::npos) {
        values.push_back(json_value(json, key, at));
        ++at;
    }
    return values;
}

std::string build_file(const std::string &name)
{
    const char *dir = getenv("SEP_BUILD_DIR");

    return ((dir != nullptr) ? std::string(dir) : exe_dir() + "/../..") + "/" +
           name;
}

void fail(const char *file, int line, const char *format, ...)
{
    char text[1024];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    dprintf(STDERR_FILENO, "%s:%d: rank %d (pid %d): %s\n", file, line,
            current_rank, (int)getpid(), text);
    if (current_board != nullptr) {
        current_board->abort = 1;
    }
    _exit(99);
}

void check_abort()
{
    if ((current_board != nullptr) && current_board->abort) {
        _exit(98); /* who failed has said why */
    }
}

uint64_t now_ms()
{
    timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}


rank::rank(board *shared, int index, int count) :
    index(index), count(count), m_board(shared)
{
}

void rank::barrier()
{
    uint32_t phase = m_board->phase;
    uint64_t end   = now_ms() + patience_ms;

    if (++m_board->arrived == (uint32_t)count) {
        m_board->arrived = 0;
        ++m_board->phase;
        return;
    }

    while (m_board->phase == phase) {
        check_abort();
        if (now_ms() > end) {
            fail(__FILE__, __LINE__, "the others did not come to the barrier");
        }
        pause_us(100);
    }
}

void rank::publish(const void *value, size_t size)
{
    REQUIRE(size <= sizeof(m_board->mail[0]));
    memcpy(m_board->mail[index], value, size);
    ++m_board->posted[index];
}

void rank::lookup(int from, void *value, size_t size)
{
    uint64_t end = now_ms() + patience_ms;

    while (m_board->posted[from] == 0) {
        check_abort();
        if (now_ms() > end) {
            fail(__FILE__, __LINE__, "rank %d published nothing", from);
        }
        pause_us(100);
    }
    memcpy(value, m_board->mail[from], size);
}

void rank::wait_word(unsigned i, uint64_t value)
{
    uint64_t end = now_ms() + patience_ms;

    while (word(i) < value) {
        check_abort();
        if (now_ms() > end) {
            fail(__FILE__, __LINE__, "word %u is %lu, not %lu", i,
                 (unsigned long)word(i).load(), (unsigned long)value);
        }
        pause_us(100);
    }
}


side::side(rank &r, const qp_options &options, size_t mem_size, int cq_size) :
    mem(c, mem_size), scq(c, cq_size), rcq(c, cq_size), q(c, scq, rcq, options)
{
    r.publish(q.addr(&mem));
    peer = r.lookup<address>(1 - r.index);
    q.connect(peer);
    r.barrier();
}


void test::SetUp()
{
    char name[] = "/dev/shm/mlx5sim.test.XXXXXX";

    if (!is_preloaded()) {
        FAIL() << "no software device: run this under mlx5sim-run --private";
    }

    ASSERT_NE(nullptr, mkdtemp(name)) << strerror(errno);
    m_dir = name;
    ASSERT_EQ(0, chmod(name, 0700));
    m_board = (board*)mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, (void*)m_board);
}

void test::TearDown()
{
    if (m_board == nullptr) {
        return;
    }

    while (!m_pids.empty()) {
        int index = m_pids.begin()->first, status;

        kill(index);
        status = finish(index);
        if ((status != SIGKILL) && (status != W_EXITCODE(98, 0))) {
            ADD_FAILURE() << "rank " << index << ": " << status_text(status);
        }
    }

    check_violations();
    if (access((m_dir + "/store").c_str(), F_OK) == 0) {
        std::string output;

        EXPECT_EQ(0, stat("--check-leaks", &output)) << output;
    }

    if (HasFailure() && !m_errors.empty()) {
        std::cerr << errors();
    }

    munmap(m_board, sizeof(board));
    EXPECT_EQ(0, system(("rm -rf '" + m_dir + "' '" + m_dir + ".stderr'")
                                .c_str()));
}

void test::run(int count, const body_t &body)
{
    memset((void*)m_board, 0, sizeof(*m_board));
    for (int i = 0; i < count; ++i) {
        start(i, count, body);
    }
    finish_all();
}

void test::start(int index, int count, const body_t &body)
{
    fflush(nullptr);

    pid_t pid = fork();
    ASSERT_NE(-1, pid) << strerror(errno);
    if (pid != 0) {
        m_pids[index] = pid;
        return;
    }

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("MLX5SIM_DIR", m_dir.c_str(), 1);
    for (const auto &var : m_env) {
        setenv(var.first.c_str(), var.second.c_str(), 1);
    }
    if (!m_errors.empty()) {
        int fd = open(m_errors.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);

        REQUIRE(fd >= 0);
        dup2(fd, STDERR_FILENO);
        close(fd);
    }

    current_board = m_board;
    current_rank  = index;
    {
        rank self(m_board, index, count);

        body(self);
    }
    exit(0);
}

int test::finish(int index)
{
    pid_t pid    = m_pids.at(index);
    uint64_t end = now_ms() + patience_ms + 15000;
    bool killed  = false;
    int status;

    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (!killed && (now_ms() > end)) {
            ADD_FAILURE() << "rank " << index << " (pid " << pid << ") hangs";
            m_board->abort = 1;
            ::kill(pid, SIGKILL);
            killed = true;
        }
        pause_us(200);
    }

    m_pids.erase(index);
    return status;
}

void test::finish_all()
{
    while (!m_pids.empty()) {
        int index = m_pids.begin()->first, status = finish(index);

        if ((status != 0) && ((status != W_EXITCODE(98, 0)) || !HasFailure())) {
            ADD_FAILURE() << "rank " << index << ": " << status_text(status);
            m_board->abort = 1;
        }
    }
}

void test::kill(int index)
{
    ::kill(m_pids.at(index), SIGKILL);
}

void test::check_violations()
{
    std::ifstream file(m_dir + "/violations");
    std::string line;

    while (std::getline(file, line)) {
        ADD_FAILURE() << "violation: " << line;
    }
}

std::vector<std::string> test::take_violations()
{
    std::vector<std::string> lines;
    std::ifstream file(m_dir + "/violations");
    std::string line;

    while (std::getline(file, line)) {
        lines.push_back(line);
    }
    unlink((m_dir + "/violations").c_str());
    return lines;
}

void test::catch_errors()
{
    /* not in it: an instance begins as an empty directory */
    m_errors = m_dir + ".stderr";
}

std::string test::errors() const
{
    std::ifstream file(m_errors);
    std::stringstream text;

    text << file.rdbuf();
    return text.str();
}

void test::set_env(const char *name, const std::string &value)
{
    m_env[name] = value;
}

int test::stat(const std::string &options, std::string *output_p,
               const std::string &prefix)
{
    std::string command = "MLX5SIM_DIR='" + m_dir + "' LD_PRELOAD= " +
                          prefix + " '" + build_file("bin/mlx5sim-stat") +
                          "' " + options + " 2>&1";
    char buf[4096];
    size_t length;
    int status;
    FILE *pipe;

    pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) {
        return -1;
    }

    output_p->clear();
    while ((length = fread(buf, 1, sizeof(buf), pipe)) > 0) {
        output_p->append(buf, length);
    }
    status = pclose(pipe);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string test::stat_json()
{
    std::string output, line = " ";

    if (stat("--json --detail", &output) != 0) {
        fail(__FILE__, __LINE__, "mlx5sim-stat: %s", output.c_str());
    }

    for (char c : output) {
        if (!isspace((unsigned char)c)) {
            line += c;
        } else if (line.back() != ' ') {
            line += ' ';
        }
    }
    return line;
}

long test::stat_total(const std::string &key)
{
    std::string output = stat_json(), value;
    size_t totals      = output.find("\"totals\"");

    value = json_value(output, key, totals);
    if (value.empty()) {
        fail(__FILE__, __LINE__, "no total '%s' in %s", key.c_str(),
             output.c_str());
    }
    return atol(value.c_str());
}

} // namespace device


int main(int argc, char **argv)
{
    ::testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
