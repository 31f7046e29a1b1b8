#!/usr/bin/env python3
"""A small DistributedDataParallel training on one GPU, with the same bits in each run. Prints the loss of each step at rank 0.

tools/gpu-check starts it once for each rank, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT. usage: ddp.py STEPS
"""
import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def main():
    torch.cuda.set_device(0)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(1)
    dist.init_process_group("nccl")
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 2048), torch.nn.GELU(),
                                torch.nn.Linear(2048, 64)).cuda()
    model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    random = torch.Generator(device="cuda").manual_seed(100 + RANK)
    for step in range(int(sys.argv[1])):
        data = torch.randn(64, 512, device="cuda", generator=random)
        loss = (model(data) - data[:, :64].tanh()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        whole = loss.detach().clone()
        dist.all_reduce(whole)
        if RANK == 0:
            print(f"loss {step} {(whole / WORLD).item().hex()}", flush=True)
    dist.destroy_process_group()


main()
