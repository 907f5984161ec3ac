/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Connections to many peers on a bounded number of queue pairs, in virtual
 * time: the table of contrib/bench-scale.sh.
 */

#include <scale/scale_world.h>

#include <getopt.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

[[noreturn]] void stop(const std::string &why)
{
    fprintf(stderr, "conn_scale: %s\n", why.c_str());
    exit(2);
}

uint64_t number(const std::string &name, const std::string &text)
{
    char *end;
    uint64_t value = strtoull(text.c_str(), &end, 10);

    if (text.empty() || (*end != '\0') || (text[0] == '-')) {
        stop("--" + name + ": " + text + " is no number");
    }
    return value;
}

std::vector<std::string> list(const std::string &text)
{
    std::istringstream stream(text);
    std::vector<std::string> words;
    std::string word;

    while (std::getline(stream, word, ',')) {
        words.push_back(word);
    }
    return words;
}

scale::traffic traffic(const std::string &name)
{
    for (auto &each : scale::traffic_names) {
        if (name == each.name) {
            return each.kind;
        }
    }
    stop("--traffic: there is no " + name);
}

void print(bool is_tsv, const std::vector<std::string> &cells)
{
    for (size_t i = 0; i < cells.size(); ++i) {
        if (is_tsv) {
            printf("%s%s", (i > 0) ? "\t" : "", cells[i].c_str());
        } else {
            printf((i > 0) ? "%10s" : "%-9s", cells[i].c_str());
        }
    }
    printf("\n");
    fflush(stdout);
}

std::string decimal(double value, int digits)
{
    char text[64];

    snprintf(text, sizeof(text), "%.*f", digits, value);
    return text;
}

/* Whether nothing was lost, and the order kept */
bool measure(const scale::params &how, const std::string &name, bool is_tsv,
             bool has_lives)
{
    scale::results got = scale::run(how);
    bool is_right      = got.is_done && !got.is_wrong();

    print(is_tsv, {name, std::to_string(how.budget),
                   std::to_string(got.messages),
                   decimal(got.per_message(got.connects), 4),
                   decimal(got.per_message(got.packets), 3),
                   decimal(got.per_message(got.time) / 1000, 1),
                   decimal(got.time / 1e9, 2), std::to_string(got.max_qps),
                   std::to_string(got.exceeded), decimal(got.unused, 0),
                   decimal(got.evicted, 0), is_right ? "yes" : "NO"});
    if (has_lives) {
        for (auto &life : got.lives) {
            print(is_tsv, {name, std::to_string(how.budget), "life",
                           std::to_string(life.first),
                           std::to_string(life.second)});
        }
    }
    if (!is_right) {
        fprintf(stderr, "conn_scale: %s, budget %u: done %d, lost %ju, out of "
                "order %ju, endpoints failed %ju\n", name.c_str(), how.budget,
                got.is_done, static_cast<uintmax_t>(got.lost),
                static_cast<uintmax_t>(got.disordered),
                static_cast<uintmax_t>(got.failures));
    }
    return is_right;
}

} // namespace

int main(int argc, char **argv)
{
    static const option options[] = {
        {"traffic", required_argument, NULL, 0},
        {"budget", required_argument, NULL, 0},
        {"peers", required_argument, NULL, 0},
        {"senders", required_argument, NULL, 0},
        {"node", required_argument, NULL, 0},
        {"messages", required_argument, NULL, 0},
        {"window", required_argument, NULL, 0},
        {"loss", required_argument, NULL, 0},
        {"seed", required_argument, NULL, 0},
        {"lives", no_argument, NULL, 0},
        {"tsv", no_argument, NULL, 0},
        {}
    };
    std::string names;
    std::vector<std::string> budgets = {"512"};
    bool is_tsv = false, has_lives = false, is_right = true;
    scale::params how;
    int index;

    for (auto &each : scale::traffic_names) {
        names += (names.empty() ? "" : ",") + std::string(each.name);
    }
    how.peers    = 100000;
    how.messages = 0;
    while (getopt_long(argc, argv, "", options, &index) == 0) {
        std::string name = options[index].name;
        std::string text = optarg ? optarg : "";

        if (name == "traffic") {
            names = text;
        } else if (name == "budget") {
            budgets = list(text);
        } else if (name == "loss") {
            how.loss = number(name, text) / 100.0;
        } else if (name == "tsv") {
            is_tsv = true;
        } else if (name == "lives") {
            has_lives = true;
        } else {
            uint64_t value = number(name, text);

            (name == "peers")    ? (void)(how.peers = value) :
            (name == "senders")  ? (void)(how.senders = value) :
            (name == "node")     ? (void)(how.node = value) :
            (name == "messages") ? (void)(how.messages = value) :
            (name == "window")   ? (void)(how.window = value) :
                                   (void)(how.seed = value);
        }
    }
    if ((optind < argc) || (how.senders < 1) || (how.peers < 1) ||
        (how.peers >= (1 << 24) - 2) || (how.window < 1)) {
        stop("wrong arguments");
    }
    if ((how.node > 0) && (how.node < 2 * how.senders)) {
        stop("--node: each worker needs 2 queue pairs at least");
    }
    how.messages = how.messages ? how.messages : how.peers;

    print(is_tsv, {"traffic", "budget", "messages", "connects", "packets",
                   "us", "seconds", "qps", "beyond", "unused", "evicted",
                   "right"});
    for (auto &name : list(names)) {
        how.kind = traffic(name);
        for (auto &budget : budgets) {
            how.budget = number("budget", budget);
            if (how.budget == 1) {
                stop("--budget: a worker needs 2 queue pairs at least");
            }
            is_right &= measure(how, name, is_tsv, has_lives);
        }
    }
    return is_right ? 0 : 1;
}
