import type { DiagnosticSink } from "../corefile/diagnostic.ts";
import { normaliseZone } from "../corefile/server-key.ts";
import { Name } from "../dns/name.ts";
import { optionLines } from "../plugin/contract/zone-claims.ts";
import { areRelated, type BackEnd } from "./back-ends.ts";
import type { LintRule } from "./rule.ts";

/** Finds options that have no effect in their place. */
export const optionWithoutEffect: LintRule = {
  code: "LINT_OPTION_WITHOUT_EFFECT",
  about: "an option changes nothing",

  check(input, report) {
    for (const block of input.blocks) {
      const chain = input.backEnds(block);
      for (const [index, backEnd] of chain.entries()) {
        if (backEnd.hasFallthrough) checkZones(backEnd, "fallthrough", report);
        if (backEnd.name === "forward") checkForward(backEnd, chain.slice(index + 1), report);
      }
    }
  },
};

function checkForward(backEnd: BackEnd, behind: readonly BackEnd[], report: DiagnosticSink): void {
  checkZones(backEnd, "except", report);
  checkEncryption(backEnd, report);
  const unchecked = optionLines(backEnd.directive, "max_fails").at(-1)?.args[0]?.text === "0";
  for (const { name } of unchecked ? optionLines(backEnd.directive, "health_check") : []) {
    const message = "'health_check' has no effect: with 'max_fails 0' no upstream is ever checked";
    report.warning(optionWithoutEffect.code, name.span, message);
  }
  if (behind.some(({ name }) => name === "forward")) return;
  for (const option of ["next", "next_on_nodata"]) {
    for (const { name } of optionLines(backEnd.directive, option)) {
      const message = `'${option}' has no effect: no other 'forward' follows`;
      report.warning(optionWithoutEffect.code, name.span, message);
    }
  }
}

/** Finds TLS options of upstreams that get plain DNS: the author believes that queries are encrypted. */
function checkEncryption({ directive }: BackEnd, report: DiagnosticSink): void {
  const upstreams = directive.args.slice(1).map(({ text }) => text);
  if (upstreams.length === 0 || upstreams.some((text) => /^(?!dns:)\w+:\/\//i.test(text))) return;
  const addresses = upstreams.map((text) => text.replace(/^dns:\/\//i, ""));
  const example = addresses.find((text) => !text.startsWith("/")) ?? "192.0.2.53";
  const expected = `tls:// before the address: tls://${example}`;
  for (const option of ["tls", "tls_servername"]) {
    for (const { name } of optionLines(directive, option)) {
      const message = `'${option}' has no effect: queries go to these upstreams in plain text`;
      report.warning(optionWithoutEffect.code, name.span, message, { expected });
    }
  }
}

/** Finds an option that names zones, none of which overlaps with the zones of the plugin. */
function checkZones({ name, directive, claims }: BackEnd, option: string, report: DiagnosticSink): void {
  for (const line of optionLines(directive, option)) {
    const zones = line.args.flatMap(({ text }) => normaliseZone(text)).map((zone) => Name.parse(zone));
    const isOfUse = zones.some((zone) => claims.some((claim) => areRelated(claim.zone, zone)));
    if (zones.length === 0 || isOfUse) continue;
    report.warning(
      optionWithoutEffect.code,
      line.name.span,
      `'${option} ${zones.join(" ")}' has no effect: this '${name}' is for ${claims.map(({ zone }) => zone).join(" ")}`,
    );
  }
}
