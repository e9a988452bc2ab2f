import assert from "node:assert/strict";
import { resolve } from "node:path";
import { describe, test } from "node:test";
import { OptionError, parseOptions } from "./options.ts";

function options(...argv: string[]) {
  const parsed = parseOptions(argv);
  assert.ok(parsed !== "help");
  return parsed;
}

describe("the command line", () => {
  test("has defaults for everything", () => {
    const { seconds, rounds, workloads, servers, others, build } = options();
    assert.deepEqual(
      { seconds, rounds, workloads, servers, others, build },
      {
        seconds: 10,
        rounds: 3,
        workloads: undefined,
        servers: undefined,
        others: [],
        build: true,
      },
    );
  });

  test("chooses workloads and servers", () => {
    const chosen = options("--workloads", "forward,cluster", "--servers=portolan,unbound", "--no-build");
    assert.deepEqual(chosen.workloads, ["forward", "cluster"]);
    assert.deepEqual(chosen.servers, ["portolan", "unbound"]);
    assert.equal(chosen.build, false);
  });

  test("adds servers with templates for all or for single workloads", () => {
    const { others, servers } = options(
      ...["--server", "coredns=/opt/coredns -conf {config}", "--servers", "coredns"],
      ...["--server-config", "coredns=a.conf", "--server-config", "coredns:forward=b.conf"],
    );
    assert.deepEqual(servers, ["coredns"]);
    assert.deepEqual(others, [
      {
        name: "coredns",
        command: "/opt/coredns -conf {config}",
        templates: new Map([
          ["", resolve("a.conf")],
          ["forward", resolve("b.conf")],
        ]),
      },
    ]);
  });

  test("measures the cluster alone, or not at all", () => {
    assert.equal(options().onlyCluster, false);
    const { onlyCluster, output } = options("--cluster", "--output", "/tmp/bench");
    assert.deepEqual([onlyCluster, output], [true, "/tmp/bench"]);
  });

  test("measures changes of the cluster beside other servers, as often as is said", () => {
    const coredns = ["--server", "coredns=/opt/coredns -conf {config}"];
    const { onlyCluster, others, rounds } = options("--cluster", ...coredns, "--rounds", "2");
    assert.deepEqual([onlyCluster, others.map(({ name }) => name), rounds], [true, ["coredns"], 2]);
    assert.throws(() => options("--cluster", ...coredns, "--seconds", "5"), OptionError);
  });

  test("measures a large zone alone, for as long and as often as is said", () => {
    const { onlyZones, seconds, rounds } = options("--zones", "--seconds", "1", "--rounds", "2");
    assert.deepEqual([onlyZones, seconds, rounds], [true, 1, 2]);
    assert.throws(() => options("--zones", "--servers", "portolan"), OptionError);
  });

  test("measures the console alone, for a minute unless told otherwise", () => {
    const { onlyConsole, seconds, rounds } = options("--console");
    assert.deepEqual([onlyConsole, seconds, rounds], [true, 60, 20]);
    assert.equal(options("--console", "--seconds", "5").seconds, 5);
    assert.throws(() => options("--console", "--workloads", "cached-1k"), OptionError);
  });

  test("asks for help", () => assert.equal(parseOptions(["--help"]), "help"));

  for (const [argv, message] of [
    [["--seconds", "0"], /--seconds: expected a whole number/],
    [["--rounds", "two"], /--rounds: expected a whole number/],
    [["--workloads", "forwards"], /no workload "forwards"; there are: cached-1k/],
    [["--servers", "bind"], /no server "bind"; there are: portolan/],
    [["--server", "coredns"], /--server: expected NAME=/],
    [["--server", "unbound=x"], /"unbound" is a server of the benchmark itself/],
    [["--server-config", "coredns=x"], /no --server coredns=COMMAND/],
    [["--cluster", "--rounds", "3"], /--cluster and --rounds do not go together/],
    [["--frobnicate"], /Unknown option/],
  ] as const)
    test(`refuses ${argv.join(" ")}`, () => {
      assert.throws(
        () => parseOptions(argv),
        (error) => error instanceof OptionError && message.test(error.message),
      );
    });
});
