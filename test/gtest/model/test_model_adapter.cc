/* SPDX-License-Identifier: BSD-3-Clause */

#include <model/test_model.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <unistd.h>

/* The file of adapters: what is ours is complete, and what is wrong in a user's
 * is named with its line. */

class test_model_adapter : public ::testing::Test {
protected:
    void SetUp() override
    {
        std::ifstream file(test_model_path("src/model/adapters.conf"));
        std::stringstream text;

        text << file.rdbuf();
        m_text = text.str();
        ASSERT_FALSE(m_text.empty());
        snprintf(m_path, sizeof(m_path), "/tmp/test_model.XXXXXX");
        int fd = mkstemp(m_path);
        ASSERT_GE(fd, 0);
        close(fd);
    }

    void TearDown() override
    {
        unlink(m_path);
    }

    /* Our file with one thing changed: the first of it, in section cx6 */
    std::string changed(const std::string &from, const std::string &to)
    {
        std::string text = m_text;
        size_t place     = text.find(from, text.find("[cx6]"));

        EXPECT_NE(std::string::npos, place) << from;
        return text.replace(place, from.size(), to);
    }

    /* @return Message without the path, "": it was read. */
    std::string read(const std::string &text, const char *name = "cx6")
    {
        char message[SEP_MODEL_MESSAGE_MAX] = "";
        std::ofstream file(m_path);

        file << text;
        file.close();
        if (sep_model_adapter_read(m_path, name, &m_adapter, message) == 0) {
            return "";
        }
        EXPECT_EQ(0u, std::string(message).find(m_path)) << message;
        return std::string(message).substr(strlen(m_path));
    }

    /* Line of a text, as in messages */
    std::string line(const std::string &text, const std::string &of)
    {
        size_t section = text.find("[cx6]");
        size_t begin   = (section == std::string::npos) ? 0 : section;
        size_t place   = text.find(of, begin);
        EXPECT_NE(std::string::npos, place) << of;
        return ":" + std::to_string(1 + std::count(text.begin(),
                                                   text.begin() + place,
                                                   '\n')) + ": ";
    }

    void expect_message(const std::string &text, const std::string &of,
                        const std::string &message)
    {
        EXPECT_EQ(line(text, of) + message, read(text));
    }

    std::string         m_text;
    char                m_path[64];
    sep_model_adapter_t m_adapter;
};


TEST_F(test_model_adapter, those_of_the_project_are_complete)
{
    for (const char *name : {"cx4", "cx6"}) {
        EXPECT_EQ("", read(m_text, name));
        EXPECT_STREQ(name, m_adapter.name);
        EXPECT_NE('\0', m_adapter.about[0]);
        for (int param = 0; param < SEP_MODEL_PARAM_LAST; ++param) {
            EXPECT_GE(m_adapter.value[param], sep_model_params[param].min);
            EXPECT_LE(m_adapter.value[param], sep_model_params[param].max);
        }
    }
}

TEST_F(test_model_adapter, each_missing_value_is_named)
{
    for (int param = 0; param < SEP_MODEL_PARAM_LAST; ++param) {
        std::string name  = sep_model_params[param].name;
        size_t begin      = m_text.find("\n" + name + " =",
                                        m_text.find("[cx6]"));
        ASSERT_NE(std::string::npos, begin) << name;
        std::string text  = m_text;
        text.erase(begin, text.find('\n', begin + 1) - begin);
        std::string found = read(text);
        EXPECT_NE(std::string::npos,
                  found.find("adapter cx6 has no " + name + " (")) << found;
        EXPECT_EQ(0u, found.find(line(text, "[cx6]"))) << found;
        /* Whichever adapter is asked for */
        EXPECT_EQ(found, read(text, "cx4"));
    }
}

TEST_F(test_model_adapter, nonsense_is_named_with_its_line)
{
    const std::string good = "hw_threads = 96 threads";

    expect_message(changed(good, "hw_threads = many threads"), "hw_threads",
                   "hw_threads: \"many threads\" does not begin with a number");
    expect_message(changed(good, "hw_threads = nan threads"), "hw_threads",
                   "hw_threads: \"nan threads\" does not begin with a number");
    expect_message(changed(good, "hw_threads = 1e999 threads"), "hw_threads",
                   "hw_threads: \"1e999 threads\" does not begin with a "
                   "number");
    expect_message(changed(good, "hw_threads = -1 threads"), "hw_threads",
                   "hw_threads: -1 is not between 1 and 65536 threads");
    expect_message(changed(good, "hw_threads = 96"), "hw_threads",
                   "hw_threads is in threads, and not in \"\"");
    expect_message(changed(good, "hw_threads = 96 us"), "hw_threads",
                   "hw_threads is in threads, and not in \"us\"");
    expect_message(changed(good, "hw_thread = 96 threads"), "hw_thread",
                   "there is no parameter \"hw_thread\"");
    expect_message(changed(good, "hw_threads"), "hw_threads  #",
                   "\"hw_threads  # published: head of "
                   "test/data/cx6-message-rate.csv\" is not \"name = value "
                   "unit # kind: source\"");
    expect_message(changed("cores = 48", "hw_threads = 9 threads # assumed: x\n"
                           "cores = 48"), "hw_threads = 9 threads #",
                   "hw_threads has a value already, in line " +
                   line(m_text, good).substr(
                           1, line(m_text, good).size() - 3));
}

TEST_F(test_model_adapter, a_value_says_where_it_is_from)
{
    const std::string rest =
            "hw_threads does not say where its value is from: write "
            "\"# fitted: ...\", or published, counted, assumed";
    const std::string good = "  # published: head of "
                             "test/data/cx6-message-rate.csv";

    for (const char *source : {"", "  # head", "  # dreamt: head",
                               "  # published:  ", "  # : head"}) {
        expect_message(changed(good, source), "hw_threads", rest);
    }
}

TEST_F(test_model_adapter, sections_have_names)
{
    expect_message(changed("[cx6]", "[cx6"), "[cx6", "\"[cx6\" is not [name of "
                   "an adapter]");
    expect_message(changed("[cx6]", "[cx 6]"), "[cx 6]", "\"[cx 6]\" is not "
                   "[name of an adapter]");
    EXPECT_EQ(": there is no adapter \"cx9\", only cx6, cx4",
              read(m_text, "cx9"));
    EXPECT_EQ(": there is no adapter \"cx6\", only an empty file", read(""));
    EXPECT_EQ(":1: \"lock = 1 us # assumed: x\" is not behind the [name] of an "
              "adapter", read("lock = 1 us # assumed: x\n"));
    EXPECT_NE(std::string::npos,
              read(m_text + m_text).find(": a second adapter cx6"));
}

TEST_F(test_model_adapter, there_must_be_a_file)
{
    char message[SEP_MODEL_MESSAGE_MAX] = "";

    EXPECT_EQ(-1, sep_model_adapter_read("/nowhere/at.all", "cx6", &m_adapter,
                                         message));
    EXPECT_STREQ("/nowhere/at.all: No such file or directory", message);
    EXPECT_EQ(-1, sep_model_adapter_read("/tmp", "cx6", &m_adapter, message));
    EXPECT_NE(nullptr, strstr(message, "Is a directory")) << message;
}
