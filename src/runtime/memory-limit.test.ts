import assert from "node:assert/strict";
import { test } from "node:test";
import { readMemoryLimit } from "./memory-limit.ts";

const MIB = 1024 * 1024;

const cases: [title: string, files: Record<string, string>, limit: number | undefined][] = [
  ["no control groups", {}, undefined],
  [
    "version 2, as a container sees it",
    { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": `${170 * MIB}\n` },
    170 * MIB,
  ],
  [
    "version 2 without a limit",
    { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/memory.max": "max\n" },
    undefined,
  ],
  [
    "version 2, the limit of a group above",
    {
      "/proc/self/cgroup": "0::/system.slice/dns.service\n",
      "/sys/fs/cgroup/system.slice/memory.max": `${64 * MIB}\n`,
      "/sys/fs/cgroup/system.slice/dns.service/memory.max": `${256 * MIB}\n`,
    },
    64 * MIB,
  ],
  [
    "version 1, with a path that the container does not see",
    {
      "/proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/kubepods/pod1\n0::/\n",
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": `${128 * MIB}\n`,
    },
    128 * MIB,
  ],
  [
    "version 1 without a limit",
    {
      "/proc/self/cgroup": "4:memory:/\n",
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    },
    undefined,
  ],
];
for (const [title, files, limit] of cases)
  test(title, () =>
    assert.equal(
      readMemoryLimit((path) => files[path]),
      limit,
    ),
  );
