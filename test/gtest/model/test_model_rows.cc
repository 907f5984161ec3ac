/* SPDX-License-Identifier: BSD-3-Clause */

#include <model/test_model.h>

#include <common/seed.h>
#include <model/row.h>

#include <algorithm>
#include <random>

/* Rows of CSV: all of what is in them comes out again with a column more, and
 * what is wrong is named with its line. */

class test_model_rows : public ::testing::Test {
protected:
    /* @return What is printed, or "error: " and the message */
    std::string predict(const std::string &text)
    {
        char message[SEP_MODEL_MESSAGE_MAX] = "";
        FILE *in = fmemopen((void*)text.data(), text.size(), "r");
        char *out_text;
        size_t out_size;
        FILE *out = open_memstream(&out_text, &out_size);
        sep_model_rows_t rows = {};

        rows.adapter  = &m_adapter;
        rows.find     = sep_model_policy_find;
        rows.policies = sep_model_policy_list;
        int ret       = sep_model_predict_rows(&rows, in, "rows", out, message);
        fclose(in);
        fclose(out);
        std::string result(out_text, out_size);
        free(out_text);
        if (ret != 0) {
            EXPECT_EQ("", result) << "something was printed";
            return std::string("error: ") + message;
        }
        return result;
    }

    std::string rate(const char *policy, unsigned threads, unsigned depth)
    {
        char text[32];

        snprintf(text, sizeof(text), "%.4f", test_model_rate(
                m_adapter, test_model_load(SEP_MODEL_READ, policy, threads,
                                           depth)).mops);
        return text;
    }

    sep_model_adapter_t m_adapter = test_model_adapter("cx6");
};


TEST_F(test_model_rows, a_column_is_added)
{
    EXPECT_EQ("op,policy,threads,depth,bytes,mops,predicted_mops\n"
              "read,per-qp,24,8,8,39.037," + rate("per-qp", 24, 8) + "\n",
              predict("# comment\n\nop,policy,threads,depth,bytes,mops\n"
                      "read,per-qp,24,8,8,39.037\n"));
    EXPECT_EQ("op,policy,threads,depth,bytes,predicted_mops\n"
              "read,per-qp,24,8,8," + rate("per-qp", 24, 8) + "\n",
              predict("op,policy,threads,depth,bytes\nread,per-qp,24,8,8\n"));
}

TEST_F(test_model_rows, there_need_be_no_header)
{
    std::string row = "read,mul-2,24,8,8";

    EXPECT_EQ("op,policy,threads,depth,bytes,predicted_mops\n" + row + "," +
              rate("mul-2", 24, 8) + "\n", predict(row));
    EXPECT_EQ("op,policy,threads,depth,bytes,mops,predicted_mops\n" + row +
              ",1," + rate("mul-2", 24, 8) + "\n", predict(row + ",1"));
    EXPECT_EQ("op,policy,threads,depth,bytes,column_6,column_7,predicted_mops\n"
              + row + ",1,x," + rate("mul-2", 24, 8) + "\n",
              predict(row + ",1,x\r\n# the end"));
}

TEST_F(test_model_rows, a_header_has_columns_in_any_order)
{
    EXPECT_EQ("who,bytes,depth,threads,policy,op,predicted_mops\n"
              "me,8,16,96,per-doorbell,read," + rate("per-doorbell", 96, 16) +
              "\n", predict(" who, bytes,depth ,threads,policy,op\n"
                            "me,8, 16,96 , per-doorbell,read\n"));
}

TEST_F(test_model_rows, a_header_may_have_more_of_the_load)
{
    sep_model_load_t load = test_model_load(SEP_MODEL_WRITE, "per-doorbell", 32,
                                            16);
    char text[32];

    load.qps       = 4096;
    load.signal    = 32;
    load.is_steady = 1;
    snprintf(text, sizeof(text), "%.4f",
             test_model_rate(m_adapter, load).mops);
    EXPECT_EQ("steady,op,policy,threads,depth,bytes,signal,qps,predicted_mops\n"
              "1,write,per-doorbell,32,16,8,32,4096," + std::string(text) +
              "\n",
              predict("steady,op,policy,threads,depth,bytes,signal,qps\n"
                      "1,write,per-doorbell,32,16,8,32,4096\n"));
    EXPECT_EQ("error: rows:1: there is no column \"op\"",
              predict("qps,signal\n1,1\n"));

    const std::string header = "op,policy,threads,depth,bytes,qps,signal,"
                               "steady\nread,per-qp,1,1,8,";
    EXPECT_EQ("error: rows:2: qps: \"0\" is not a number between 1 and "
              "16777216",
              predict(header + "0,1,0\n"));
    EXPECT_EQ("error: rows:2: signal: \"x\" is not a number between 1 and "
              "32768",
              predict(header + "1,x,0\n"));
    EXPECT_EQ("error: rows:2: steady: \"2\" is not a number between 0 and 1",
              predict(header + "1,1,2\n"));
}

TEST_F(test_model_rows, wrong_rows_are_named)
{
    const std::string header = "op,policy,threads,depth,bytes\n"
                               "read,per-qp,1,1,8\n";
    const struct {
        const char *row;
        const char *message;
    } cases[] = {
        {"fetch,per-qp,1,1,8", "op: there is no \"fetch\", only read, write, "
         "send and atomic"},
        {"read,per-page,1,1,8", "policy: there is no \"per-page\", only "
         "shared-qp, mul-<threads>, per-qp, per-doorbell"},
        {"read,,1,1,8", "policy: there is no \"\", only shared-qp, "
         "mul-<threads>, per-qp, per-doorbell"},
        {"read,per-qp,0,1,8", "threads: \"0\" is not a number between 1 and "
         "4096"},
        {"read,per-qp,-1,1,8", "threads: \"-1\" is not a number between 1 and "
         "4096"},
        {"read,per-qp,5000,1,8", "threads: \"5000\" is not a number between 1 "
         "and 4096"},
        {"read,per-qp,1,1e3,8", "depth: \"1e3\" is not a number between 1 and "
         "32768"},
        {"read,per-qp,1,,8", "depth: \"\" is not a number between 1 and 32768"},
        {"read,per-qp,1,1,99999999999999999999", "bytes: "
         "\"99999999999999999999\" is not a number between 0 and 1073741824"},
        {"atomic,per-qp,1,1,16", "bytes: an atomic has 4 or 8, and not 16"},
        {"read,per-qp,1,1", "4 fields, and not 5 as in the first row"},
        {"read,per-qp,1,1,8,1", "6 fields, and not 5 as in the first row"},
    };

    for (const auto &one : cases) {
        EXPECT_EQ(std::string("error: rows:3: ") + one.message,
                  predict(header + one.row + "\n"));
    }
}

/* Whatever is changed in good rows, there is a message or a rate in each row */
TEST_F(test_model_rows, random_changes_are_refused_or_understood)
{
    const std::string good  = "# comment\nop,policy,threads,depth,bytes,mops\n"
                              "read,mul-4,24,8,8,3.6\nwrite,per-qp,1,1,64,1\n";
    const std::string bytes = ",,\n\n# -0123456789eread,per-qp\r\t\"\x80";
    std::mt19937 random(seed::get());
    unsigned cases = seed::cases(3000), understood = 0;

    for (unsigned i = 0; i < cases; ++i) {
        std::string text = good;
        for (unsigned j = 0; j <= random() % 3; ++j) {
            size_t place = random() % text.size();
            switch (random() % 3) {
            case 0:
                text[place] = bytes[random() % bytes.size()];
                break;
            case 1:
                text.insert(place, 1, bytes[random() % bytes.size()]);
                break;
            default:
                text.erase(place, 1 + (random() % 5));
                break;
            }
        }

        std::string result = predict(text);
        if (result.find("error: ") == 0) {
            EXPECT_EQ(0u, result.find("error: rows:")) << text;
            continue;
        }
        ++understood;
        EXPECT_NE(std::string::npos, result.find(",predicted_mops\n")) << text;
        EXPECT_EQ(std::string::npos, result.find("nan")) << text;
        EXPECT_GE(std::count(result.begin(), result.end(), '\n'), 2) << text;
    }
    EXPECT_GT(understood, cases / 50);
    EXPECT_LT(understood, cases);
}

TEST_F(test_model_rows, wrong_files_are_refused)
{
    EXPECT_EQ("error: rows:1: there are no rows", predict("# nothing\n"));
    EXPECT_EQ("error: rows:1: there are no rows",
              predict("op,policy,threads,depth,bytes\n"));
    EXPECT_EQ("error: rows:1: there is no column \"depth\"",
              predict("op,policy,threads,bytes\nread,per-qp,1,8\n"));
    EXPECT_EQ("error: rows:1: there is no column \"op\"",
              predict("policy,threads,depth,bytes\nper-qp,1,1,8\n"));
    EXPECT_EQ("error: rows:1: 1 fields, and not at least 5: "
              "op,policy,threads,depth,bytes", predict("hello\n"));
    EXPECT_EQ("error: rows:2: a byte 0: this is no text",
              predict(std::string("read,per-qp,1,1,8\n\0x\n", 21)));
    EXPECT_EQ("error: rows:1: more than 64 fields",
              predict(std::string(70, ',')));
}
