"""The models of no other domain in the catalogue."""

from torchdiag.models.entry import Entry

_VISION_LIBRARY = ("torch", "torchvision")
_GRAPH_LIBRARY = ("torch", "torch_geometric")

ENTRIES = (
    Entry("demucs", "other", "source separation", "other.demucs:build", {"train": 64, "eval": 8}, a100_eval_batch=32),
    Entry(
        "functorch_dp_cifar10",
        "other",
        "differential privacy",
        "other.privacy:with_vmap",
        {"train": 64, "eval": 64},
        requires=_VISION_LIBRARY,
        a100_eval_batch=512,
    ),
    Entry(
        "functorch_maml_omniglot",
        "other",
        "meta-learning",
        "other.meta_learning:batched",
        {"train": 1, "eval": 1},
        tiny_batch=1,
        fixed_batch=True,
    ),
    Entry(
        "lennard_jones",
        "other",
        "physics",
        "other.lennard_jones:build",
        {"train": 1000, "eval": 1000},
        tiny_batch=32,
        a100_eval_batch=1000,
    ),
    Entry("maml", "other", "meta-learning", "other.meta_learning:adaptation", {"eval": 1}, 1, fixed_batch=True),
    Entry(
        "maml_omniglot",
        "other",
        "meta-learning",
        "other.meta_learning:sequential",
        {"train": 32, "eval": 32},
        fixed_batch=True,
    ),
    Entry(
        "moco",
        "other",
        "self-supervised learning",
        "other.moco:build",
        {"train": 32, "eval": 32},
        requires=_VISION_LIBRARY,
        a100_eval_batch=64,
    ),
    Entry(
        "opacus_cifar10",
        "other",
        "differential privacy",
        "other.privacy:with_opacus",
        {"train": 64, "eval": 64},
        requires=(*_VISION_LIBRARY, "opacus"),
        a100_eval_batch=512,
    ),
    *(
        Entry(f"pyhpc_{name}", "other", "ocean physics", f"other.{module}:build", {"eval": 2**20}, tiny_batch=4096)
        for name, module in (
            ("equation_of_state", "ocean_density"),
            ("isoneutral_mixing", "ocean_mixing"),
            ("turbulent_kinetic_energy", "ocean_turbulence"),
        )
    ),
    Entry("pytorch_struct", "other", "grammar induction", "other.grammar:build", {"train": 200}, 4),
    Entry(
        "basic_gnn_gcn",
        "other",
        "graphs",
        "other.graphs:gcn",
        {"train": 1, "eval": 1},
        requires=_GRAPH_LIBRARY,
        later=True,
    ),
    Entry(
        "basic_gnn_sage",
        "other",
        "graphs",
        "other.graphs:sage",
        {"train": 1, "eval": 1},
        requires=_GRAPH_LIBRARY,
        later=True,
    ),
    Entry(
        "microbench_unbacked_tolist_sum",
        "other",
        "microbenchmark",
        "other.microbench:tolist_sum",
        {"eval": 1},
        later=True,
    ),
)
