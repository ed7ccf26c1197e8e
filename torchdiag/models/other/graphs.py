"""Graph networks of torch_geometric on a random graph: GCN (arXiv 1609.02907) and GraphSAGE (arXiv 1706.02216)."""

# pyright: reportUnknownMemberType=false, reportPrivateImportUsage=false
# torch leaves parts of its own signatures untyped.

from importlib import import_module
from typing import Any, cast

import torch
from torch import nn
from torch.nn import functional

from torchdiag.models.stepping import inference_step, training_step
from torchdiag.models.workload import Setting, Workload


def _graph_network(name: str, setting: Setting) -> Workload:
    nodes, edges, width = (200, 1000, 16) if setting.tiny else (10_000, 200_000, 64)
    library = cast(Any, import_module("torch_geometric.nn"))
    model: nn.Module = getattr(library, name)(width, width, num_layers=3, out_channels=width)
    model = model.to(setting.device, setting.dtype).train(setting.training)
    # A batch of N is one graph of N parts that no edge joins, as the library itself lays batches out.
    nodes, edges = nodes * setting.batch_size, edges * setting.batch_size
    features = torch.randn(nodes, width, device=setting.device, dtype=setting.dtype)
    part = torch.arange(edges, device=setting.device) // (edges // setting.batch_size)
    each = nodes // setting.batch_size
    joined = torch.randint(each, (2, edges), device=setting.device) + part * each
    if not setting.training:
        return Workload(inference_step(setting, lambda: model(features, joined)), setting.batch_size, (model,))
    labels = torch.randint(width, (nodes,), device=setting.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    step = training_step(setting, optimizer, lambda: functional.cross_entropy(model(features, joined), labels))
    return Workload(step, setting.batch_size, (model,))


def gcn(setting: Setting) -> Workload:
    """Three layers of graph convolution, 64 wide, on 10000 nodes and 200000 edges; tiny: 16, 200 and 1000."""
    return _graph_network("GCN", setting)


def sage(setting: Setting) -> Workload:
    """Three layers of GraphSAGE, 64 wide, on 10000 nodes and 200000 edges; tiny: 16, 200 and 1000."""
    return _graph_network("GraphSAGE", setting)
