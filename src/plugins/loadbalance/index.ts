/** `loadbalance`: changes the order of addresses in answers. */
import {
  choice,
  definePlugin,
  directive,
  duration,
  optional,
  optionList,
  rest,
  single,
  text,
} from "../../plugin/index.ts";
import { LoadBalancer } from "./load-balancer.ts";
import { networkValue } from "./preference.ts";

const POLICIES = ["round_robin", "weighted"] as const;

export default definePlugin({
  name: "loadbalance",
  summary: "Reorders addresses in answers: randomly, by weight, or by network.",
  config: directive({
    args: {
      policy: optional(choice(POLICIES, { problem: (word) => `unknown policy: ${word}` }), "round_robin"),
      weightfile: optional(text("a path")),
    },
    options: {
      reload: single(duration({ min: 0 })),
      prefer: optionList({ cidr: rest(networkValue(), 1) }),
    },
    occurrences: "last",
    check({ policy, weightfile, reload }, report, at) {
      if (policy === "weighted" && weightfile === undefined)
        report.error("LOADBALANCE_WEIGHT_FILE", at(), "missing weight file argument", {
          expected: "loadbalance weighted WEIGHTFILE",
        });
      if (policy === "round_robin" && weightfile !== undefined)
        report.error("LOADBALANCE_WEIGHT_FILE", at(), "unexpected argument(s)", {
          expected: "a file only after weighted",
        });
      if (policy === "round_robin" && reload !== undefined)
        report.error("LOADBALANCE_RELOAD", at("reload"), "unknown property for round_robin", {
          expected: "reload only with weighted",
        });
    },
  }),
  create: ({ policy, weightfile, reload, prefer }, site) =>
    new LoadBalancer(
      {
        weightFile: policy === "weighted" ? weightfile : undefined,
        reload: reload ?? 30_000,
        preferred: prefer.flatMap(({ cidr }) => cidr),
      },
      site,
    ),
});
