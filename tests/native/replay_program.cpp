// Feeds the two loops of native/replay.h graphs of every kind, sound and broken, for a build with sanitizers.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "../../native/replay.h"

namespace {

using Numbers = std::vector<int64_t>;

void demand(bool holds, const char* law) {
    if (holds) return;
    std::fprintf(stderr, "broken: %s\n", law);
    std::exit(1);
}

struct Graph {
    Numbers first, source;
    int64_t nodes() const { return static_cast<int64_t>(first.size()) - 1; }
    int64_t edges() const { return static_cast<int64_t>(source.size()); }
};

Graph any_graph(std::mt19937_64& chance, int64_t nodes) {
    Graph graph;
    graph.first.push_back(0);
    for (int64_t node = 0; node < nodes; ++node) {
        for (uint64_t edge = chance() % 4; edge > 0; --edge)
            graph.source.push_back(static_cast<int64_t>(chance() % static_cast<uint64_t>(nodes)));
        graph.first.push_back(graph.edges());
    }
    return graph;
}

Numbers any_order(std::mt19937_64& chance, int64_t nodes) {
    Numbers order(static_cast<std::size_t>(nodes));
    for (int64_t i = 0; i < nodes; ++i) order[static_cast<std::size_t>(i)] = i;
    std::shuffle(order.begin(), order.end(), chance);
    return order;
}

// Every node comes after the sources of the edges that are kept, and without circles all edges are.
void check_order(std::mt19937_64& chance, int64_t nodes) {
    const Graph graph = any_graph(chance, nodes);
    const Numbers wish = any_order(chance, nodes);
    Numbers order(wish.size()), place(wish.size());
    std::vector<uint8_t> kept(graph.source.size());
    demand(td_replay_order(nodes, graph.first.data(), graph.edges(), graph.source.data(), wish.data(), order.data(),
                           kept.data()) == TD_OK,
           "any graph can be put in order");
    for (std::size_t i = 0; i < order.size(); ++i) place[static_cast<std::size_t>(order[i])] = static_cast<int64_t>(i);
    bool forward = true;
    for (int64_t node = 0; node < nodes; ++node)
        for (int64_t edge = graph.first[node]; edge < graph.first[node + 1]; ++edge) {
            forward &= graph.source[edge] < node;
            if (kept[edge]) demand(place[graph.source[edge]] < place[node], "sources come first");
        }
    if (forward) demand(std::count(kept.begin(), kept.end(), 0) == 0, "an edge is left out of circles only");
}

// Times are what the definition says.
void check_times(std::mt19937_64& chance, int64_t nodes) {
    Graph graph = any_graph(chance, nodes);
    for (int64_t node = 0; node < nodes; ++node)
        for (int64_t edge = graph.first[node]; edge < graph.first[node + 1]; ++edge)
            graph.source[edge] = node ? graph.source[edge] % node : 0;
    if (graph.first[1] > 0) return;  // the first node has no source
    Numbers lag(graph.source.size()), floor(static_cast<std::size_t>(nodes)), time(floor.size());
    for (int64_t& value : lag) value = chance() % 9 ? static_cast<int64_t>(chance() >> (chance() % 60)) : TD_NO_EDGE;
    for (int64_t& value : floor) value = static_cast<int64_t>(chance());
    demand(td_replay_times(nodes, graph.first.data(), graph.edges(), graph.source.data(), lag.data(), floor.data(),
                           time.data()) == TD_OK,
           "a graph in order can be timed");
    for (int64_t node = 0; node < nodes; ++node) {
        __int128 latest = floor[node];
        for (int64_t edge = graph.first[node]; edge < graph.first[node + 1]; ++edge)
            if (lag[edge] != TD_NO_EDGE)
                latest = std::max(latest, static_cast<__int128>(time[graph.source[edge]]) + lag[edge]);
        demand(time[node] == std::min(latest, static_cast<__int128>(INT64_MAX)), "the latest arrival counts");
    }
}

// Broken arguments are refused, and nothing is read or written beyond what was given.
void check_refusals(std::mt19937_64& chance, int64_t nodes) {
    Graph graph = any_graph(chance, nodes);
    Numbers wish = any_order(chance, nodes), order(wish.size()), lag(graph.source.size(), 1), time(wish.size());
    const Numbers floor(wish.size(), 0);
    std::vector<uint8_t> kept(graph.source.size());
    const int64_t odd = static_cast<int64_t>(chance() >> (chance() % 64));
    Numbers* const hit[] = {&graph.first, &graph.source, &wish};
    Numbers& chosen = *hit[chance() % 3];
    if (chosen.empty()) return;
    chosen[chance() % chosen.size()] = chance() % 2 ? odd : -odd;
    const int64_t edges = graph.edges();
    td_replay_order(nodes, graph.first.data(), edges, graph.source.data(), wish.data(), order.data(), kept.data());
    td_replay_times(nodes, graph.first.data(), edges, graph.source.data(), lag.data(), floor.data(), time.data());
}

}  // namespace

int main() {
    std::mt19937_64 chance(1);
    for (int round = 0; round < 20'000; ++round) {
        const int64_t nodes = 1 + static_cast<int64_t>(chance() % 12);
        check_order(chance, nodes);
        check_times(chance, nodes);
        check_refusals(chance, nodes);
    }
    const int64_t none[] = {0};
    demand(td_replay_order(0, none, 0, nullptr, nullptr, nullptr, nullptr) == TD_OK, "no nodes are in order");
    demand(td_replay_times(0, none, 0, nullptr, nullptr, nullptr, nullptr) == TD_OK, "no nodes can be timed");
    demand(td_replay_times(-1, none, 0, nullptr, nullptr, nullptr, nullptr) == TD_BAD_ARGUMENT, "less than no nodes");
    return 0;
}
