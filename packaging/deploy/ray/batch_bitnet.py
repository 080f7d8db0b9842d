"""A file of requests, answered by `bitnet batch` on the workers of a Ray cluster, as a data set of Ray Data.

    python batch_bitnet.py REQUESTS FOLDER [--shards N] [--address ADDRESS] [-- OPTION...]

Each row of the data set is a shard, whose answers go to FOLDER/part-I.jsonl. A worker that dies loses nothing
that was answered: Ray gives its shard to another one, which goes on in the same file. So REQUESTS and FOLDER
lie where all workers reach them. Every request has one line in one file.
"""

import argparse
import ctypes
import os
import signal
import subprocess

import ray

PR_SET_PDEATHSIG = 1


def end_with_parent():
    """The program does not outlive its worker, whose successor writes to the same file."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def answer_shard(row, requests, folder, shards, options, program):
    """What `bitnet batch` said of the shard."""
    shard = int(row["id"])
    out = os.path.join(folder, f"part-{shard}.jsonl")
    done = subprocess.run([program, "batch", requests, out, "--shard", f"{shard}/{shards}", *options],
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          preexec_fn=end_with_parent, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"shard {shard}: bitnet batch ended with {done.returncode}: {done.stderr.strip()}")
    return {"id": shard, "file": out, "said": done.stderr.strip().splitlines()[-1]}


def answer(requests, folder, shards, options=(), program="bitnet"):
    """Answers all of `requests`; returns the answers as a data set."""
    requests, folder = os.path.abspath(requests), os.path.abspath(folder)
    os.makedirs(folder, exist_ok=True)
    rows = ray.data.range(shards, override_num_blocks=shards)
    arguments = {"requests": requests, "folder": folder, "shards": shards, "options": list(options), "program": program}
    done = rows.map(answer_shard, fn_kwargs=arguments, num_cpus=1).take_all()
    for row in done:
        print(f"shard {row['id']}: {row['said']}", flush=True)
    return ray.data.read_json([row["file"] for row in done if os.path.getsize(row["file"])], lines=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("requests")
    parser.add_argument("folder")
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--address", help="of the cluster; without it, one is started here")
    parser.add_argument("--bitnet", default="bitnet", help="the program")
    parser.add_argument("options", nargs="*", help="of bitnet batch, behind --")
    given = parser.parse_args()
    ray.init(address=given.address, log_to_driver=False)
    answers = answer(given.requests, given.folder, given.shards, given.options, given.bitnet)
    print(f"{answers.count()} answers in {given.folder}")


if __name__ == "__main__":
    main()
