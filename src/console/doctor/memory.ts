/** Compares the server's memory limit with the size that its caches may reach. */
import type { Capture } from "./capture.ts";
import { shellWord } from "./command-words.ts";
import { mebibytes, percent, type Rule } from "./finding.ts";
import { kubectl, serverWorkload } from "./server-workload.ts";
import type { WorkloadName } from "./workload-names.ts";

const NEARLY_ALL = 0.9;
/** The headroom of a new limit, for listing the cluster again and for bursts. */
const ROOM = 1.3;
const STEP = 32 * 2 ** 20;

export const memory: Rule = (capture) => {
  const { last, pod } = capture;
  const facts = last?.machine.memory;
  const limit = pod?.memoryLimit ?? facts?.limit ?? undefined;
  if (facts === undefined || last === undefined)
    return [{ code: "memory", reason: "the capture has no facts about the server" }];
  if (limit === undefined)
    return [
      { code: "memory", reason: "the server has no memory limit: the manifest may set one (-manifest)" },
    ];
  const resident = facts.resident ?? last.now.memory.resident;
  const growth = last.caches.reduce((sum, { octets, maxOctets }) => sum + Math.max(0, maxOctets - octets), 0);
  const need = Math.max(resident + growth, facts.peak ?? 0);
  if (need < NEARLY_ALL * limit) return [];
  const wanted = Math.ceil((need * ROOM) / STEP) * STEP;
  const workload = serverWorkload(capture);
  return [
    {
      code: "memory",
      title: `the server may need ${mebibytes(need)} of memory, ${percent(need / limit)} of its limit of ${mebibytes(limit)}`,
      explanation: "At the limit the kernel kills it while it serves; before that it sheds queries.",
      share: undefined,
      figures: { need, resident, peak: facts.peak ?? resident, cacheGrowth: growth, limit },
      causes: [
        {
          who: "the process",
          figure: `${mebibytes(resident)} now, ${mebibytes(facts.peak ?? resident)} at its highest`,
        },
        { who: "the caches", figure: `${mebibytes(growth)} more, once they are full` },
      ],
      remedies: [
        {
          text: `raise the limit to ${mebibytes(wanted)}, or reduce the capacity of 'cache'`,
          ...(workload !== undefined && { patch: limitPatch(workload, pod, `${wanted / 2 ** 20}Mi`) }),
        },
      ],
    },
  ];
};

function limitPatch(workload: WorkloadName, pod: Capture["pod"], memory: string): string {
  // Without the manifest the name of the container is not known.
  if (pod === undefined) return `${kubectl("set resources", workload)} --limits=memory=${memory}`;
  const resources = { containers: [{ name: pod.container, resources: { limits: { memory } } }] };
  return `${kubectl("patch", workload)} -p ${shellWord(JSON.stringify({ spec: { template: { spec: resources } } }))}`;
}
