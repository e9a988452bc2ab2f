/** All lint rules: configuration that is valid but probably a mistake. */
import type { DiagnosticSink } from "../corefile/diagnostic.ts";
import { aclAllowsNothing } from "./acl-allows-nothing.ts";
import { backEnds, type KnownPlugins } from "./back-ends.ts";
import { certificateMissing } from "./certificate-missing.ts";
import { clusterMissing } from "./cluster-missing.ts";
import { constantExpression } from "./constant-expression.ts";
import { fallthroughMissing } from "./fallthrough-missing.ts";
import { forwardLoop } from "./forward-loop.ts";
import { limitByPod } from "./limit-by-pod.ts";
import { limitTooLow } from "./limit-too-low.ts";
import { limitTwice } from "./limit-twice.ts";
import type { LintBlock } from "./lint-block.ts";
import { Listeners } from "./listeners.ts";
import { logShadowed } from "./log-shadowed.ts";
import { metadataMissing } from "./metadata-missing.ts";
import { metadataOff } from "./metadata-off.ts";
import { optionWithoutEffect } from "./option-without-effect.ts";
import { rewriteLoop } from "./rewrite-loop.ts";
import type { LintInput, LintRule } from "./rule.ts";
import { runOrder } from "./run-order.ts";
import { sameAddress } from "./same-address.ts";
import { samePrefix } from "./same-prefix.ts";
import { shadowedZone } from "./shadowed-zone.ts";
import { templateUnmatched } from "./template-unmatched.ts";
import { unreachable } from "./unreachable.ts";
import { unusedPlugin } from "./unused-plugin.ts";
import { upstreamTwice } from "./upstream-twice.ts";
import { viewShadowed } from "./view-shadowed.ts";
import { zoneNotMeant } from "./zone-not-meant.ts";
import { zoneOutsideBlock } from "./zone-outside-block.ts";

export const lintRules: readonly LintRule[] = [
  sameAddress,
  unreachable,
  fallthroughMissing,
  runOrder,
  shadowedZone,
  zoneOutsideBlock,
  optionWithoutEffect,
  forwardLoop,
  clusterMissing,
  unusedPlugin,
  aclAllowsNothing,
  rewriteLoop,
  viewShadowed,
  constantExpression,
  metadataMissing,
  templateUnmatched,
  zoneNotMeant,
  upstreamTwice,
  certificateMissing,
  logShadowed,
  metadataOff,
  samePrefix,
  limitTooLow,
  limitTwice,
  limitByPod,
];

export interface LintSubject {
  readonly globalOptions: LintInput["globalOptions"];
  readonly blocks: readonly LintBlock[];
  readonly plugins: KnownPlugins;
  readonly machine: LintInput["machine"];
}

/** Rules only report warnings: the Corefile runs in any case. */
export function lintChecks(subject: LintSubject, report: DiagnosticSink): (() => void)[] {
  const { globalOptions, blocks, machine } = subject;
  const chains = new Map(blocks.map((block) => [block, backEnds(block, subject.plugins)]));
  const input: LintInput = {
    globalOptions,
    blocks,
    backEnds: (block) => chains.get(block) ?? [],
    listeners: new Listeners(blocks),
    machine,
  };
  return lintRules.map((rule) => () => rule.check(input, report));
}
