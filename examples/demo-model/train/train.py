"""Trains the demo model. Resumable; the schedule counts tokens (or, with --minutes, time), so pauses do not matter.

    python train.py                                        # the first round, or on where it stopped
    python train.py --round 2 --tokens N --muon-lr X ...   # another one from there (see make.sh)

A round has two phases: the trunk (with the draft head on every fourth step), whose rate
falls to nothing in the second half (see --flat), then the draft head alone on the rounded trunk.

Batches hold conversations of similar length, each in a row of its own that starts
at position 0. Text is generated while training from the shard number alone, so a
resumed run sees what an unbroken one would have seen. Each process uses one core and
its own batches; gradients are averaged. (Two processes of one thread are much faster
on a busy machine than one process of two threads, which wait for each other in every
small operation.)
"""

import argparse
import datetime
import json
import math
import os
import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from tokenizers import Tokenizer

import corpus
import render
from model import CHUNK, CONFIG, Model

FOLDER = Path(__file__).resolve().parent.parent
WORK = Path(os.environ.get("DEMO_WORK", FOLDER / "train" / "work"))
LONGEST = 320  # tokens in a row
SHARD = 3000  # conversations generated at a time
BATCH = 1536  # tokens in a batch of one process, padding included
GIVEN_SHARE, GIVEN_WEIGHT = 0.1, 0.2  # a few positions of the given text are learned too, lightly


def tokenizer():
    from make_tokenizer import ADDED, BASE

    tok = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    from tokenizers import AddedToken

    tok.add_tokens([AddedToken(c, normalized=False, special=s) for c, s in ADDED])
    assert tok.token_to_id(ADDED[-1][0]) == BASE + len(ADDED) - 1
    return tok


def shard(index, tok, wall, seed):
    """Batches [(ids [B, T], weight of predicting each next token [B, T])] made from the shard number."""
    r = random.Random(f"{seed}/{index}")
    texts, marks = [], []
    for _ in range(SHARD):
        t = corpus.draw(r, wall)
        for p, k in render.pieces(t.messages, t.tools):
            texts.append(p)
            marks.append(k)
        marks[-1] = 2 + marks[-1]  # the end of a conversation
    rows, ids, kinds = [], [], []
    for e, k in zip(tok.encode_batch_fast(texts, add_special_tokens=False), marks):
        ids += e.ids
        kinds += [k % 2] * len(e.ids)
        if k >= 2:
            if len(ids) <= LONGEST:
                rows.append((ids, kinds))
            ids, kinds = [], []
    rng = np.random.default_rng([seed, index])
    rows.sort(key=lambda x: len(x[0]) + rng.random() * 4)
    batches, start = [], 0
    while start < len(rows):
        stop, width = start, 0
        while stop < len(rows):
            w = max(width, -(-(len(rows[stop][0]) - 1) // CHUNK) * CHUNK)
            if w * (stop - start + 1) > BATCH:
                break
            stop, width = stop + 1, w
        x = np.zeros((stop - start, width + 2), np.int64)
        w = np.zeros((stop - start, width + 2), np.float32)
        for i, (ids, kinds) in enumerate(rows[start:stop]):
            x[i, : len(ids)] = ids
            k = np.array(kinds, np.float32)
            light = (k == 0) & (rng.random(len(k)) < GIVEN_SHARE)
            w[i, : len(ids)] = k + light * GIVEN_WEIGHT
        w[:, 0] = 0
        batches.append((torch.from_numpy(x), torch.from_numpy(w)))
        start = stop
    rng.shuffle(batches)
    return batches


# ---- optimiser --------------------------------------------------------------------

def orthogonal(g, steps=5):
    """The nearest (semi-)orthogonal matrices, roughly, by a quintic iteration; g [n, rows, cols]."""
    x = g.bfloat16()
    flip = x.shape[-2] > x.shape[-1]
    if flip:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * (a @ a)) @ x
    return (x.mT if flip else x).float()


class Optimiser:
    """Muon for the projections, Adam for everything else."""

    def __init__(self, named, muon_lr, adam_lr, rank=0, procs=1, decay=0.02):
        self.muon, self.adam = {}, []
        for name, p in named:
            small = p.ndim != 2 or "embed_tokens" in name or "in_proj_a" in name or "in_proj_b" in name
            if small:
                self.adam.append((name, p))
            else:
                self.muon.setdefault(tuple(p.shape), []).append((name, p))
        self.muon_lr, self.adam_lr, self.decay, self.rank, self.procs = muon_lr, adam_lr, decay, rank, procs
        self.m = {n: torch.zeros_like(p) for n, p in self.all()}
        self.v = {n: torch.zeros_like(p) for n, p in self.adam}
        self.t = 0

    def all(self):
        return [x for g in self.muon.values() for x in g] + self.adam

    @torch.no_grad()
    def step(self, scale):
        self.t += 1
        updates = {}
        for shape, group in self.muon.items():
            grads = torch.stack([p.grad for _, p in group])
            moment = torch.stack([self.m[n] for n, _ in group]).mul_(0.95).add_(grads, alpha=0.05)
            for (n, _), m in zip(group, moment):
                self.m[n].copy_(m)
            # Each process works out every so-manyth update; they are put together below.
            mine = slice(self.rank, None, self.procs)
            update = grads.mul_(0.05).add_(moment, alpha=0.95)
            done = torch.zeros_like(update)
            if len(update[mine]):
                done[mine] = orthogonal(update[mine])
            updates[shape] = done
        if self.procs > 1:
            flat = torch.cat([u.flatten() for u in updates.values()])
            dist.all_reduce(flat)
            parts = flat.split([u.numel() for u in updates.values()])
            updates = {k: f.view_as(u) for (k, u), f in zip(updates.items(), parts)}
        for shape, group in self.muon.items():
            lr = self.muon_lr * scale
            size = lr * max(1, shape[0] / shape[1]) ** 0.5
            for (_, p), u in zip(group, updates[shape]):
                p.mul_(1 - lr * self.decay).add_(u, alpha=-size)
                p.grad = None
        b1, b2 = 0.9, 0.98
        for n, p in self.adam:
            self.m[n].lerp_(p.grad, 1 - b1)
            self.v[n].lerp_(p.grad.square(), 1 - b2)
            m, v = self.m[n] / (1 - b1**self.t), self.v[n] / (1 - b2**self.t)
            p.add_(m / (v.sqrt() + 1e-9), alpha=-self.adam_lr * scale)
            p.grad = None

    def state(self):
        return {"m": self.m, "v": self.v, "t": self.t}

    def load(self, s):
        for mine, theirs in ((self.m, s["m"]), (self.v, s["v"])):
            for n in mine:
                mine[n].copy_(theirs[n])
        self.t = s["t"]


# ---- losses --------------------------------------------------------------------------

def weighted(model, hidden, target, weight):
    keep = weight.flatten().nonzero()[:, 0]
    logits = model.logits(hidden.flatten(0, 1)[keep]).float()
    w = weight.flatten()[keep]
    return (F.cross_entropy(logits, target.flatten()[keep], reduction="none") * w).sum() / w.sum(), logits, keep


def trunk_loss(model, x, w):
    t = x.shape[1] - 2
    hidden = model.language_model(x[:, :t])
    loss, _, _ = weighted(model, hidden, x[:, 1 : t + 1], w[:, 1 : t + 1])
    return loss, hidden


def mtp_loss(model, x, w, hidden):
    """The head sees H_p and the embedding of token p+1 and predicts token p+2. The trunk is left alone."""
    t = x.shape[1] - 2
    with torch.no_grad():
        e = F.embedding(x[:, 1 : t + 1], model.language_model.embed_tokens.weight)
    out = model.mtp(e, hidden.detach())
    keep = (w[:, 2:] == 1).flatten().nonzero()[:, 0]
    logits = F.linear(out.flatten(0, 1)[keep], model.language_model.embed_tokens.weight.detach()).float()
    target = x[:, 2:].flatten()[keep]
    return F.cross_entropy(logits, target), (logits.argmax(-1) == target).float().mean()


def schedule(f, flat):
    """The share of the learning rate at `f` of the way, if it falls from `flat` on."""
    warm = 0.01
    return min(1.0, f / warm) if f < flat else max(0.0, (1 - f) / (1 - flat))


def rounded(model):
    """Every weight as the checkpoint will hold it for Transformers: BF16."""
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(p.bfloat16())


def average(named, count, procs):
    """Averages the gradients over the processes; returns the sum of `count`."""
    if procs == 1:
        return count
    params = [p for _, p in named]
    flat = torch.cat([p.grad.flatten() for p in params] + [torch.tensor([float(count) * procs])])
    dist.all_reduce(flat)
    flat /= procs
    at = 0
    for p in params:
        p.grad.copy_(flat[at : at + p.numel()].view_as(p))
        at += p.numel()
    return round(float(flat[-1]))


def save(path, **state):
    tmp = path.with_suffix(".tmp")
    torch.save(state, tmp)
    os.replace(tmp, path)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--tokens", type=int, default=12_000_000, help="tokens of the main phase, padding included")
    ap.add_argument("--mtp-tokens", type=int, default=1_000_000, help="tokens of the last phase: the draft head alone, on the finished rounded model")
    ap.add_argument("--round", type=int, default=1, help="2 or more: from the round before, finished, on new text; give --tokens and smaller rates")
    ap.add_argument("--mean", nargs=2, metavar=("ROUND", "SHARE"), help="begin a round from the mean of the weights with those at the end of an earlier one, of which so large a share is taken")
    ap.add_argument("--minutes", type=float, default=float("inf"), help="end the main phase after so long at most, pauses included, with fewer tokens")
    ap.add_argument("--flat", type=float, default=0.5, help="the share of a phase before its learning rate falls")
    ap.add_argument("--procs", type=int, default=2)
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--muon-lr", type=float, default=0.02)
    ap.add_argument("--adam-lr", type=float, default=0.003)
    a = ap.parse_args()
    WORK.mkdir(exist_ok=True, parents=True)
    if a.procs == 1:
        run(0, a, None)
    else:
        meeting = WORK / f"meeting.{os.getpid()}"
        try:
            mp.start_processes(run, (a, str(meeting)), a.procs, start_method="fork")
        finally:
            meeting.unlink(missing_ok=True)


def run(rank, a, meeting):
    torch.set_num_threads(1)
    if a.procs > 1:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=a.procs, timeout=datetime.timedelta(hours=4))
    tok, wall, model = tokenizer(), corpus.Wall(), Model(CONFIG, a.seed)
    trunk_named, head_named = list(model.language_model.named_parameters()), list(model.mtp.named_parameters())
    trunk = Optimiser(trunk_named, a.muon_lr, a.adam_lr, rank, a.procs)
    head = Optimiser(head_named, a.muon_lr, a.adam_lr, rank, a.procs)
    at = {"round": 1, "phase": "main", "shard": 0, "batch": 0, "done": 0, "step": 0, "cpu": 0.0}
    path = WORK / "state.pt"
    if path.exists():
        s = torch.load(path)
        model.load_state_dict(s["model"])
        trunk.load(s["trunk"])
        head.load(s["head"])
        at = s["at"]
        if at["phase"] == "end" and at["round"] == a.round - 1:
            at.update(round=a.round, phase="main", shard=at["shard"] + 1, batch=0, done=0, clock=0.0)
            if a.mean:
                share, other = float(a.mean[1]), torch.load(WORK / f"end{a.mean[0]}.pt")["model"]
                model.load_state_dict({n: (1 - share) * w + share * other[n] for n, w in s["model"].items()})
        if at["round"] < a.round:
            raise SystemExit(f"round {at['round']} is not finished")
        if rank == 0:
            print("going on:" if at["round"] == a.round and at["phase"] != "end" else f"round {a.round} is done:", at, flush=True)
        if at["round"] > a.round:
            return

    def far(total):
        """How far the phase is, by tokens or by the clock; the same for all processes."""
        return max(at["done"] / total if total else 1, at["clock"] / 60 / a.minutes if at["phase"] == "main" else 0)

    def store():
        if rank == 0:
            save(path, model=model.state_dict(), trunk=trunk.state(), head=head.state(), at=at)

    def tick():
        """The seconds that the phase has taken, as process 0 sees them."""
        t = torch.tensor([at["clock"] + time.time() - ticked[0]], dtype=torch.float64)
        if a.procs > 1:
            dist.broadcast(t, 0)
        at["clock"] = float(t)
        ticked[0] = time.time()

    ticked = [time.time()]
    at.setdefault("clock", 0.0)
    log = (WORK / "log.jsonl").open("a")
    cpu0, saved, shown = time.process_time() - at["cpu"], time.time(), (time.time(), at["done"])
    losses, heads, hits = [], [], []
    while at["phase"] != "end":
        total = a.tokens if at["phase"] == "main" else a.mtp_tokens
        batches = shard(at["shard"], tok, wall, a.seed)
        batches = [batches[i : i + a.procs] for i in range(0, len(batches) - a.procs + 1, a.procs)]
        while at["batch"] < len(batches) and far(total) < 1:
            x, w = batches[at["batch"]][rank]
            main_phase = at["phase"] == "main"
            scale = schedule(far(total), a.flat)
            count = x.shape[0] * (x.shape[1] - 2)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                with torch.set_grad_enabled(main_phase):
                    loss, hidden = trunk_loss(model, x, w)
                if not main_phase or at["step"] % 4 == 0:
                    h_loss, hit = mtp_loss(model, x, w, hidden)
                    h_loss.backward()
                    all_count = average(head_named, count, a.procs)
                    head.step(scale)
                    heads.append(h_loss.item())
                    hits.append(hit.item())
            if main_phase:
                loss.backward()
                all_count = average(trunk_named, count, a.procs)
                trunk.step(scale)
                tick()
            losses.append(loss.item())
            at["done"] += all_count
            at["batch"] += 1
            at["step"] += 1
            at["cpu"] = time.process_time() - cpu0
            if rank == 0 and at["step"] % 25 == 0:
                now = time.time()
                rate = (at["done"] - shown[1]) / (now - shown[0])
                shown = (now, at["done"])
                line = dict(phase=at["phase"], step=at["step"], tokens=at["done"], of=total, lr=round(scale, 3), loss=round(float(np.mean(losses)), 4),
                            mtp=round(float(np.mean(heads)), 4) if heads else None, hit=round(float(np.mean(hits)), 3) if hits else None, rate=round(rate), cpu=round(at["cpu"]), at=time.strftime("%H:%M:%S"))
                print(json.dumps(line), flush=True)
                log.write(json.dumps(line) + "\n")
                log.flush()
                losses, heads, hits = [], [], []
            if time.time() - saved > 120:
                store()
                saved = time.time()
        if far(total) >= 1:
            if at["phase"] == "main":
                rounded(model)  # the draft head is finished on the trunk as it will be used
                at.update(phase="mtp", done=0)
            else:
                at["phase"] = "end"
                if rank == 0:
                    save(WORK / f"end{a.round}.pt", model=model.state_dict(), at=at)
        else:
            at.update(shard=at["shard"] + 1, batch=0)
        store()
    if rank == 0:
        print("done", flush=True)


if __name__ == "__main__":
    main()
