/** Every rule of the specification, put to the running program: once over a live API, once over manifests. */
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { titleOf } from "../fixtures/kubernetes/rule-case.ts";
import { RULE_GROUPS } from "../fixtures/kubernetes/rules.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { loadManifests } from "../support/kubernetes-api/control-plane.ts";
import { checkRule, OutsideWorld, ruleBlock, untilSynced } from "../support/kubernetes-rules.ts";
import { Portolan, projectRoot } from "../support/portolan.ts";

const fixture = join(projectRoot, "test", "fixtures", "kubernetes");

/** Each group is a server block on a port of its own, as many in a program as there are free ports. */
const GROUPS_PER_PROGRAM = 8;

const SOURCES: readonly (readonly [title: string, lines: (api: ApiSimulator) => string])[] = [
  ["the API", (api) => `endpoint ${api.url}`],
  ["manifests", () => `manifests ${fixture}`],
];

for (const [title, lines] of SOURCES) {
  for (let start = 0; start < RULE_GROUPS.length; start += GROUPS_PER_PROGRAM) {
    const groups = RULE_GROUPS.slice(start, start + GROUPS_PER_PROGRAM);
    describe(`over ${title}, part ${1 + start / GROUPS_PER_PROGRAM}`, () => {
      let api: ApiSimulator;
      let outside: OutsideWorld;
      let program: Portolan;
      const portName = (index: number) => (index === 0 ? "dns" : `group${index}`);

      before(async () => {
        api = await ApiSimulator.start();
        loadManifests(api, fixture);
        outside = await OutsideWorld.start();
        program = await Portolan.start((port) =>
          groups.map((group, index) => ruleBlock(group, lines(api), port(portName(index)), outside)).join(""),
        );
        for (const index of groups.keys())
          await untilSynced({ address: "127.0.0.1", port: program.portOf(portName(index)) });
      });
      after(async () => {
        await program[Symbol.asyncDispose]();
        await outside[Symbol.asyncDispose]();
        await api.close();
      });

      for (const [index, group] of groups.entries()) {
        for (const rule of group.cases) {
          it(`${group.title}: ${titleOf(rule)}`, () =>
            checkRule({ address: "127.0.0.1", port: program.portOf(portName(index)) }, rule));
        }
      }
    });
  }
}
