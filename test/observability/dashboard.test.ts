/** Each query of the dashboard and of the alerts asks for metrics and labels that a running server with the usual Corefile has. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { parse, stringify } from "yaml";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { ScriptedServer } from "../../src/upstream/fixtures/scripted-server.ts";
import { CHART, chartObjects, objectCalled, partAt } from "../support/deployment.ts";
import { ask } from "../support/dns-client.ts";
import { ApiSimulator } from "../support/kubernetes-api/api-simulator.ts";
import { untilSynced } from "../support/kubernetes-rules.ts";
import { Portolan } from "../support/portolan.ts";
import { run } from "../support/program.ts";

interface Target {
  readonly expr: string;
  readonly legendFormat?: string;
}

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly targets?: readonly Target[];
}

interface Dashboard {
  readonly uid: string;
  readonly panels: readonly Panel[];
  readonly annotations: { readonly list: readonly Target[] };
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
}

const dashboardText = readFileSync(join(CHART, "dashboard.json"), "utf8");
const dashboard: Dashboard = JSON.parse(dashboardText);
const alerts: { readonly groups: readonly { readonly rules: readonly Rule[] }[] } = parse(
  readFileSync(join(CHART, "alerts.yaml"), "utf8"),
);
const rules = alerts.groups.flatMap((group) => group.rules);

/** A query as Prometheus gets it from Grafana. */
function asked(expr: string): string {
  return expr.replaceAll("$__rate_interval", "5m").replaceAll(/"\$\w+"/g, '".*"');
}

const queries: readonly (readonly [where: string, expr: string])[] = [
  ...dashboard.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => [`panel ${title}`, asked(expr)] as const),
  ),
  ...dashboard.annotations.list.map(({ expr }) => ["annotation", asked(expr)] as const),
  ...dashboard.templating.list.flatMap(({ name, definition }) => {
    const [, selector] = /^label_values\((.*), \w+\)$/.exec(definition ?? "") ?? [];
    return selector === undefined ? [] : [[`variable ${name}`, asked(selector)] as const];
  }),
  ...rules.map(({ alert, expr }) => [`alert ${alert}`, expr] as const),
];

/** Labels that the scrape adds. */
const OF_THE_SCRAPE = new Set(["namespace", "job", "pod", "instance"]);
/** Only there where the process has a limit. */
const ELSEWHERE = new Set(["portolan_memory_limit_bytes"]);

describe("dashboard and alerts", () => {
  let stack: AsyncDisposableStack;
  /** Labels of each metric by its name. */
  let metrics: Map<string, Set<string>>;
  let page = "";

  before(async () => {
    stack = new AsyncDisposableStack();
    const api = stack.use(await ApiSimulator.start());
    const upstream = await ScriptedServer.start((question) =>
      question.answer({ answer: [`${question.name} 300 IN A 192.0.2.5`] }),
    );
    stack.defer(() => upstream.stop());
    const server = stack.use(
      await Portolan.start(
        (portOf) => `.:${portOf("dns")} {
    errors
    health :${portOf("health")}
    ready :${portOf("ready")}
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        endpoint ${api.url}
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
    }
    prometheus :${portOf("metrics")}
    forward . ${upstream.address.text} 127.0.0.1:${portOf("nobody")} {
        policy round_robin
    }
    cache 30
    reload
    loadbalance
    multisocket 2
}
`,
      ),
    );
    await untilSynced(server);
    metrics = new Map();
    // One of the upstreams is a closed port: sooner or later each thread finds out.
    for (let round = 0; round < 100 && !metrics.has("coredns_proxy_healthcheck_failures_total"); round++) {
      for (const name of ["a", "b", "c", "d"]) await ask(server, `${name}${round}.example.`);
      const { body } = await server.page("metrics", "/metrics");
      metrics = readMetrics(body);
      page = body;
    }
  });
  after(() => stack.disposeAsync());

  for (const [where, expr] of queries) {
    test(`${where} asks for what there is: ${expr.slice(0, 60)}`, () => {
      const names = expr.match(/\b(?:coredns|portolan|process|nodejs)_\w+/g) ?? [];
      assert.ok(names.length > 0, "no metric");
      const labels = new Set<string>();
      for (const name of names) {
        const known = metrics.get(name);
        assert.ok(known !== undefined || ELSEWHERE.has(name), `${name} is not in /metrics`);
        for (const label of known ?? []) labels.add(label);
      }
      const matched = [...expr.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/g)].map(([, label = ""]) => label);
      const grouped = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(", "));
      for (const label of [...matched, ...grouped])
        assert.ok(labels.has(label) || OF_THE_SCRAPE.has(label), `no label ${label} in ${names}`);
    });
  }

  test("every panel shows something", { skip: skipWithout("promtool") }, async () => {
    // Each series of the page, as if it had been scraped from a pod each minute, and had grown.
    const scraped = [...page.matchAll(/^(\w+)(?:\{(.*)\})? \S+$/gm)].map(([, name, labels = ""]) => ({
      series: `${name}{${labels}${labels === "" ? "" : ","}namespace="n",job="j",pod="p"}`,
      values: "1+1x20",
    }));
    const panels = queries.filter(
      ([where, expr]) => where.startsWith("panel ") && ![...ELSEWHERE].some((name) => expr.includes(name)),
    );
    const file = join(
      stack.adopt(mkdtempSync(join(tmpdir(), "portolan-panels-")), removeFolder),
      "test.yaml",
    );
    const expected = panels.map(([, expr]) => ({
      expr: `count(${expr}) > bool 0`,
      eval_time: "10m",
      exp_samples: [{ labels: "{}", value: 1 }],
    }));
    const tests = [{ interval: "1m", input_series: scraped, promql_expr_test: expected }];
    writeFileSync(file, stringify({ evaluation_interval: "1m", tests }));
    const { code, output, errors } = await run("promtool", ["test", "rules", file]);
    assert.equal(code, 0, output + errors);
  });

  test("queries by transport are told apart by the version of IP: the label family is 1 for IPv4, 2 for IPv6", () => {
    const [{ expr, legendFormat } = { expr: "", legendFormat: "" }] =
      dashboard.panels.find(({ title }) => title === "Queries by transport")?.targets ?? [];
    assert.equal(legendFormat, "{{proto}} over {{ip}}");
    const made = [...expr.matchAll(/"ip", "(IPv\d)", "family", "(\d)"/g)].map(([, ip, family]) => [
      family,
      ip,
    ]);
    assert.deepEqual(made, [
      ["1", "IPv4"],
      ["2", "IPv6"],
    ]);
  });

  test("legends name labels that are left", () => {
    for (const { title, targets = [] } of dashboard.panels) {
      for (const { expr, legendFormat = "" } of targets) {
        const left = new Set(
          [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(", ")),
        );
        for (const [, made = ""] of expr.matchAll(/, "(\w+)", "[^"]*", "\w+", "[^"]*"\)/g)) left.add(made);
        for (const [, label = ""] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
          assert.ok(left.has(label), `${title}: ${label}`);
      }
    }
  });
});

test("no two panels lie on each other, and none has the number of another", () => {
  const taken = new Set<string>();
  for (const {
    gridPos: { x, y, w, h },
    title,
  } of dashboard.panels) {
    assert.ok(x + w <= 24, title);
    for (let column = x; column < x + w; column++)
      for (let line = y; line < y + h; line++) {
        assert.ok(!taken.has(`${column},${line}`), title);
        taken.add(`${column},${line}`);
      }
  }
  assert.equal(new Set(dashboard.panels.map(({ id }) => id)).size, dashboard.panels.length);
});

test("the chart puts the dashboard where Grafana's sidecar looks", () => {
  const objects = chartObjects({ dashboard: { enabled: true } });
  const map = objectCalled(objects, "ConfigMap portolan-dashboard");
  assert.equal(partAt(map, "metadata.labels").grafana_dashboard, "1");
  assert.deepEqual(JSON.parse(String(partAt(map, "data")["portolan.json"])), dashboard);
});

describe("promtool", { skip: skipWithout("promtool") }, () => {
  let folder: string;
  before(() => {
    folder = mkdtempSync(join(tmpdir(), "portolan-rules-"));
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  async function promtool(...words: readonly string[]): Promise<void> {
    const { code, output, errors } = await run("promtool", words);
    assert.equal(code, 0, output + errors);
  }

  test("understands every query", async () => {
    const file = join(folder, "queries.yaml");
    const recorded = queries.map(([, expr], at) => ({ record: `query${at}`, expr }));
    writeFileSync(file, stringify({ groups: [{ name: "queries", rules: recorded }] }));
    await promtool("check", "rules", file);
  });

  /** The input that makes each alert fire; series are per minute, `a+bxn` as promtool has it. */
  const FIRING: Readonly<Record<string, readonly (readonly [series: string, values: string])[]>> = {
    PortolanServerFailures: [
      ['coredns_dns_responses_total{namespace="n",pod="p",rcode="SERVFAIL"}', "0+10x60"],
      ['coredns_dns_responses_total{namespace="n",pod="p",rcode="NOERROR"}', "0+100x60"],
    ],
    PortolanUpstreamsDown: [['coredns_forward_healthcheck_broken_total{namespace="n",pod="p"}', "0+1x60"]],
    PortolanClusterDataOld: [
      ['portolan_kubernetes_data_age_seconds{namespace="n",pod="p",resource="services"}', "0+60x60"],
    ],
    PortolanReloadFailed: [['coredns_reload_failed_total{namespace="n",pod="p"}', "0x50 1x10"]],
    PortolanPanics: [['coredns_panics_total{namespace="n",pod="p"}', "0x50 1x10"]],
    PortolanMemoryShort: [['portolan_memory_pressure_total{namespace="n",pod="p"}', "0x50 1x10"]],
    PortolanQueriesShed: [['portolan_dns_shed_total{namespace="n",pod="p",reason="waiting"}', "0+1x60"]],
    PortolanSlow: [
      ['coredns_dns_request_duration_seconds_bucket{namespace="n",pod="p",le="0.001"}', "0+10x60"],
      ['coredns_dns_request_duration_seconds_bucket{namespace="n",pod="p",le="2.048"}', "0+90x60"],
      ['coredns_dns_request_duration_seconds_bucket{namespace="n",pod="p",le="4.096"}', "0+100x60"],
      ['coredns_dns_request_duration_seconds_bucket{namespace="n",pod="p",le="+Inf"}', "0+100x60"],
    ],
    PortolanThreadsReplaced: [['portolan_data_plane_restarts_total{namespace="n",pod="p"}', "0x50 1x10"]],
  };

  test("has every alert fire for its reason, and none for a healthy server", async () => {
    assert.deepEqual(
      Object.keys(FIRING),
      rules.map(({ alert }) => alert),
    );
    const healthy = Object.values(FIRING)
      .flat()
      .map(([series]) => {
        const isGood = /NOERROR|_bucket/.test(series);
        return { series, values: isGood ? "0+100x60" : series.includes("data_age") ? "10x60" : "0x60" };
      });
    const tests = Object.entries(FIRING).map(([alert, series]) => ({
      interval: "1m",
      input_series: series.map(([one, values]) => ({ series: one, values })),
      promql_expr_test: [
        {
          expr: `count by (alertname) (ALERTS{alertname="${alert}",alertstate="firing",pod="p"})`,
          eval_time: "55m",
          exp_samples: [{ labels: `{alertname="${alert}"}`, value: 1 }],
        },
      ],
    }));
    const quiet = {
      interval: "1m",
      input_series: healthy,
      promql_expr_test: [{ expr: "count(ALERTS)", eval_time: "55m", exp_samples: [] }],
    };
    const file = join(folder, "alerts-test.yaml");
    writeFileSync(
      file,
      stringify({
        rule_files: [join(CHART, "alerts.yaml")],
        evaluation_interval: "1m",
        tests: [...tests, quiet],
      }),
    );
    await promtool("test", "rules", file);
  });
});

function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

/** Names of all samples, with the labels that any of them has. */
function readMetrics(body: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const line of body.split("\n")) {
    const [, name = "", labels = ""] = /^(\w+)(?:\{(.*)\})? \S+$/.exec(line) ?? [];
    if (name === "") continue;
    const known = found.get(name) ?? new Set<string>();
    for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) known.add(label);
    found.set(name, known);
  }
  return found;
}
