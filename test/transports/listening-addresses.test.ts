/** Which addresses the listeners take, alone and side by side, and that none of them is in the way of another one. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import { NetworkNamespace } from "../support/network-namespace.ts";
import { portolanWords, runPortolan } from "../support/portolan.ts";
import { Program } from "../support/program.ts";
import { askInside, type Question } from "../support/questions-inside.ts";

const whyNot = await NetworkNamespace.whyNot();

/** Portolan in a network of its own, where all ports are free. */
class Inside implements AsyncDisposable {
  readonly #network: NetworkNamespace;
  readonly #folder: string;
  readonly #program: Program;

  private constructor(network: NetworkNamespace, folder: string, env: NodeJS.ProcessEnv) {
    this.#network = network;
    this.#folder = folder;
    const [command = "", ...args] = network.words(...portolanWords("-conf", join(folder, "Corefile")));
    this.#program = new Program(command, args, { env });
  }

  static async start(
    corefile: string,
    { env = {}, hasIpv6 = true }: { env?: NodeJS.ProcessEnv; hasIpv6?: boolean } = {},
  ): Promise<Inside> {
    const network = await NetworkNamespace.make();
    if (!hasIpv6) await network.run("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1");
    const folder = mkdtempSync(join(tmpdir(), "portolan-"));
    writeFileSync(join(folder, "Corefile"), corefile);
    const inside = new Inside(network, folder, env);
    try {
      await inside.#program.waitForOutput(/^\w+\/\w+, node\d/m);
    } catch (error) {
      await inside[Symbol.asyncDispose]();
      throw error;
    }
    return inside;
  }

  async reload(corefile: string): Promise<string> {
    writeFileSync(join(this.#folder, "Corefile"), corefile);
    const start = this.#program.output.length;
    this.#program.kill("SIGUSR1");
    await this.#program.waitForOutput(/\[INFO\] Reloading complete|\[ERROR\] Restart failed.*\n/, start);
    return this.#program.output.slice(start);
  }

  get log(): string {
    return this.#program.output;
  }

  async waitForLine(line: string): Promise<void> {
    await this.#program.waitForOutput(new RegExp(`^${line.replaceAll(/[[\].{}]/g, "\\$&")}$`, "m"));
  }

  /** Asks each several times, as what is left to chance is not always wrong. @returns all answers that there were, by question */
  async ask(...questions: readonly Question[]): Promise<Record<string, string>> {
    const answers = await askInside(
      this.#network,
      questions.flatMap((question) => Array.from({ length: TIMES }, () => question)),
    );
    const entries = questions.map(({ way, address, port, what }, index) => {
      const own = new Set(answers.slice(index * TIMES, (index + 1) * TIMES));
      return [`${way} ${address} ${port} ${what}`, [...own].join(" or ")];
    });
    return Object.fromEntries(entries);
  }

  /** Local addresses of listening sockets, as `ss` prints them: `*` takes both families. */
  async sockets(): Promise<readonly string[]> {
    const lines = (await this.#network.run("ss", "-Hlntu")).trim().split("\n");
    return lines.map((line) => {
      const [kind, , , , local] = line.split(/\s+/);
      return `${kind} ${local}`;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#program[Symbol.asyncDispose]();
    await this.#network[Symbol.asyncDispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const TIMES = 6;

/** A server block that answers every TXT query with its own name. */
function block(key: string, name: string, ...lines: readonly string[]): string {
  const answer = `    template IN TXT {\n        answer "{{ .Name }} 60 IN TXT ${name}"\n    }`;
  return `${key} {\n${lines.map((line) => `    ${line}\n`).join("")}${answer}\n}\n`;
}

/** The same question over both transports at several addresses. */
function everywhere(addresses: readonly string[], port = 53, what = "a.example.org."): Question[] {
  return addresses.flatMap((address) => [
    { way: "udp", address, port, what } as const,
    { way: "tcp", address, port, what } as const,
  ]);
}

/** That each address is answered by the block of that name, over UDP and TCP. */
async function assertAnswers(
  server: Inside,
  expected: Readonly<Record<string, string>>,
  port?: number,
): Promise<void> {
  const answers = await server.ask(...everywhere(Object.keys(expected), port));
  const wanted = everywhere(Object.keys(expected), port).map(({ way, address, port, what }) => [
    `${way} ${address} ${port} ${what}`,
    expected[address],
  ]);
  assert.deepEqual(answers, Object.fromEntries(wanted));
}

const UDP_WAYS = [
  ["by the batch", {}],
  ["by the datagram", { PORTOLAN_UDP: "dgram" }],
] as const;

function inNamespace(title: string, body: (t: TestContext) => Promise<void>): void {
  test(title, { skip: whyNot ?? false }, body);
}

describe("all addresses are those of both families", () => {
  const pages = (host: string): string[] => [
    `health ${host}:8080`,
    `ready ${host}:8181`,
    `prometheus ${host}:9153`,
    `pprof ${host}:6053`,
    `dnstap listen tcp://${host === "" ? "0.0.0.0" : host}:6000`,
  ];
  const corefile = (host: string): string => {
    const bind = host === "" ? [] : [`bind ${host}`];
    return (
      block(".:53", "dns", ...bind, ...pages(host.includes(":") ? `[${host}]` : host)) +
      block("tls://.:853", "tls", ...bind) +
      block("https://.:443", "https", ...bind) +
      block("grpc://.:444", "grpc", ...bind)
    );
  };
  const PORTS = [443, 444, 53, 6000, 6053, 8080, 8181, 853, 9153];

  for (const host of ["", "0.0.0.0", "::"]) {
    for (const [way, env] of UDP_WAYS) {
      inNamespace(`written as '${host}', with UDP ${way}`, async () => {
        await using server = await Inside.start(corefile(host), { env });
        await assertAnswers(server, { "127.0.0.1": "dns", "::1": "dns" });
        const others = ["127.0.0.1", "::1"].flatMap((address): Question[] => [
          { way: "tcp", address, port: 853, what: "a.example.org." },
          { way: "http", address, port: 8080, what: "/health" },
          { way: "http", address, port: 8181, what: "/ready" },
          { way: "http", address, port: 9153, what: "/metrics" },
          { way: "http", address, port: 6053, what: "/debug/pprof/" },
        ]);
        const answers = Object.values(await server.ask(...others));
        assert.deepEqual(answers, ["tls", "200", "200", "200", "200", "tls", "200", "200", "200", "200"]);
        const sockets = (await server.sockets()).filter((socket) => socket.startsWith("tcp"));
        assert.deepEqual(
          sockets.sort(),
          PORTS.map((port) => `tcp *:${port}`),
        );
      });
    }

    inNamespace(`written as '${host}', on a machine without IPv6`, async () => {
      await using server = await Inside.start(corefile(host), { hasIpv6: false });
      await assertAnswers(server, { "127.0.0.1": "dns" });
      const answers = await server.ask({ way: "http", address: "127.0.0.1", port: 9153, what: "/metrics" });
      assert.deepEqual(Object.values(answers), ["200"]);
    });
  }

  inNamespace("one address is that address", async () => {
    await using server = await Inside.start(block(".:53", "dns", "bind 127.0.0.1", "health 127.0.0.1:8080"));
    await assertAnswers(server, { "127.0.0.1": "dns" });
    const sockets = new Set(await server.sockets());
    assert.deepEqual(
      [...sockets].filter((socket) => !socket.includes("127.0.0.1")),
      [],
    );
  });
});

describe("side by side on one port", () => {
  const all = block(".:53", "all");
  const two = block("example.org:53", "two", "bind 127.0.0.2");
  const six = block("example.org:53", "six", "bind ::1");
  const side = { "127.0.0.1": "all", "127.0.0.2": "two", "::1": "six" };

  for (const [way, env] of UDP_WAYS) {
    for (const [title, corefile, expected] of [
      ["all addresses first", all + two + six, side],
      ["all addresses last", two + six + all, side],
      ["all addresses by a bind of their own", block(".:53", "all", "bind 0.0.0.0") + two + six, side],
      ["threads for all addresses", block(".:53", "all", "multisocket 2") + two + six, side],
      [
        "threads for one address",
        all + block("example.org:53", "two", "bind 127.0.0.2", "multisocket 2") + six,
        side,
      ],
      [
        "one block with both",
        block(".:53", "all", "bind 127.0.0.1 0.0.0.0 ::"),
        { "127.0.0.1": "all", "::1": "all" },
      ],
      [
        "two spellings of all addresses: both blocks are on one listener",
        block(".:53", "all", "bind 0.0.0.0") +
          block("example.org:53", "org", "bind ::") +
          block("com:53", "com"),
        { "127.0.0.1": "org", "::1": "org" },
      ],
      [
        "two spellings of one address",
        block(".:53", "all", "bind ::1") + block("example.org:53", "org", "bind 0:0::1"),
        { "::1": "org" },
      ],
    ] as const) {
      inNamespace(`${title}, with UDP ${way}`, async () => {
        await using server = await Inside.start(corefile, { env });
        await assertAnswers(server, expected);
      });
    }
  }

  inNamespace("after a reload, from each arrangement to each", async () => {
    const arrangements: [string, Record<string, string>][] = [
      [all, { "127.0.0.1": "all", "127.0.0.2": "all", "::1": "all" }],
      [all + two, { "127.0.0.1": "all", "127.0.0.2": "two", "::1": "all" }],
      [block(".:53", "zero", "bind 0.0.0.0"), { "127.0.0.1": "zero", "127.0.0.2": "zero", "::1": "zero" }],
      [six + two, { "127.0.0.2": "two", "::1": "six" }],
      [block(".:53", "all", "multisocket 2") + six, { "127.0.0.1": "all", "::1": "six" }],
    ];
    const [[first] = [""]] = arrangements;
    await using server = await Inside.start(first);
    for (const step of [1, 2, 0, 3, 1, 4, 0, 2, 4, 3, 0]) {
      const [corefile, expected] = arrangements[step] ?? ["", {}];
      assert.match(await server.reload(corefile), /Reloading complete/);
      await assertAnswers(server, expected);
    }
  });

  inNamespace("a port changes its protocol in a reload, and back", async () => {
    await using server = await Inside.start(block(".:853", "dns"));
    for (const _round of [1, 2]) {
      assert.match(await server.reload(block("tls://.:853", "tls")), /Reloading complete/);
      const question: Question = { way: "tcp", address: "127.0.0.1", port: 853, what: "a.example.org." };
      assert.deepEqual(Object.values(await server.ask(question)), ["tls"]);
      assert.match(await server.reload(block(".:853", "dns")), /Reloading complete/);
      await assertAnswers(server, { "127.0.0.1": "dns", "::1": "dns" }, 853);
    }
  });
});

describe("HTTP endpoints of several blocks", () => {
  for (const [one, other] of [
    ["localhost", "127.0.0.1"],
    ["127.0.0.1", "localhost"],
    ["0.0.0.0", "[::]"],
    ["", "127.0.0.1"],
    ["127.0.0.1", "127.0.0.2"],
  ] as const) {
    inNamespace(`'${one}' and '${other}' have one port`, async () => {
      const lines = (host: string) => [
        `health ${host}:8080`,
        `ready ${host}:8181`,
        `prometheus ${host}:9153`,
        `pprof ${host}:6053`,
      ];
      const corefile =
        block(".:53", "one", ...lines(one)) + block("example.org:54", "other", ...lines(other));
      await using server = await Inside.start(corefile);
      const pages = [
        [8080, "/health"],
        [8181, "/ready"],
        [9153, "/metrics"],
        [6053, "/debug/pprof/"],
      ] as const;
      const answers = await server.ask(
        ...pages.map(([port, what]): Question => ({ way: "http", address: "127.0.0.1", port, what })),
      );
      assert.deepEqual(Object.values(answers), ["200", "200", "200", "200"]);
      const turned = block(".:53", "one", ...lines(other)) + block("example.org:54", "other", ...lines(one));
      assert.match(await server.reload(turned), /Reloading complete/);
      const later = await server.ask({ way: "http", address: "127.0.0.1", port: 8080, what: "/health" });
      assert.deepEqual(Object.values(later), ["200"]);
    });
  }
});

describe("the address that was asked, at a listener on all addresses", () => {
  for (const [title, more] of [
    ["on one thread", []],
    ["on two threads", ["multisocket 2"]],
  ] as const) {
    inNamespace(`is server_ip() of a view, ${title}`, async () => {
      const view = (name: string, expression: string) =>
        block(".:53", name, `view ${name} {\n expr ${expression}\n }`, ...more);
      await using server = await Inside.start(
        view("two", "server_ip() == '127.0.0.2'") +
          view("six", "server_ip() == '::1'") +
          view("net", "incidr(server_ip(), '127.0.3.0/24')") +
          block(".:53", "all", ...more),
      );
      await assertAnswers(server, {
        "127.0.0.1": "all",
        "127.0.0.2": "two",
        "::1": "six",
        "127.0.3.4": "net",
      });
    });

    inNamespace(`is {local} of log, at once and for an answer that waits, ${title}`, async () => {
      await using server = await Inside.start(
        block("now.example.:53", "now", 'log . "{local} {proto} {name}"', ...more) +
          `late.example.:53 {\n log . "{local} {proto} {name}"\n erratic {\n delay 1 20ms\n }\n ${more.join("\n")}\n}\n`,
      );
      const addresses = ["127.0.0.1", "127.0.0.2", "::1"];
      for (const name of ["now.example.", "late.example."])
        await server.ask(...everywhere(addresses, 53, name));
      for (const name of ["now.example.", "late.example."]) {
        for (const proto of ["udp", "tcp"]) {
          for (const local of ["127.0.0.1", "127.0.0.2", "[::1]"])
            await server.waitForLine(`[INFO] ${local} ${proto} ${name}`);
        }
      }
      assert.doesNotMatch(server.log, /\[INFO\] \[::\] /);
    });
  }
});

describe("two of our own that cannot be side by side", () => {
  for (const [title, corefile, message] of [
    [
      "two protocols over TCP",
      block(".:853", "dns") + block("tls://.:853", "tls"),
      /Corefile:6:1: error: cannot serve tls:\/\/\.:853 - dns:\/\/\.:853 at \S*Corefile:1:1 listens on the same port/,
    ],
    [
      "two protocols over TCP, at all addresses in two spellings",
      block("grpc://.", "grpc", "bind 0.0.0.0") + block("https://.", "https", "bind ::"),
      /Corefile:7:1: error: cannot serve https:\/\/\.:443 - grpc:\/\/\.:443 at \S*Corefile:1:1 listens on the same port/,
    ],
    [
      "an HTTP endpoint and a server block",
      block(".:8080", "dns", "health :8080"),
      /Corefile:2:5: error: cannot serve health on :8080 - dns:\/\/\.:8080 at \S*Corefile:1:1 listens on the same port/,
    ],
    [
      "an HTTP endpoint at one address and a server block at all of them",
      block(".:8080", "dns") + block(".:53", "other", "prometheus 127.0.0.1:8080"),
      /Corefile:7:5: error: cannot serve prometheus on 127\.0\.0\.1:8080 - dns:\/\/\.:8080 at \S*Corefile:1:1 listens on the same port/,
    ],
  ] as const) {
    test(`${title}: start and check name both places`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), "portolan-"));
      t.after(() => rmSync(folder, { recursive: true, force: true }));
      writeFileSync(join(folder, "Corefile"), corefile);
      const started = await runPortolan(["-conf", join(folder, "Corefile")]);
      assert.equal(started.code, 1);
      assert.match(started.errors, message);
      const checked = await runPortolan(["check", join(folder, "Corefile")]);
      assert.equal(checked.code, 1);
      assert.match(checked.output, message);
    });
  }

  inNamespace("an HTTP endpoint at a name and a server block at its address", async () => {
    await assert.rejects(
      Inside.start(block(".:8080", "dns", "bind 127.0.0.1", "health localhost:8080")),
      /cannot listen on tcp 127\.0\.0\.1:8080: the HTTP endpoint 127\.0\.0\.1:8080 of this server has the port that dns:\/\/127\.0\.0\.1:8080 \(\S*Corefile:1:1\) asks for/,
    );
  });

  inNamespace("protocols over TCP and UDP have a port together", async () => {
    await using server = await Inside.start(block("tls://.:853", "tls") + block(".:54", "dns"));
    await assertAnswers(server, { "127.0.0.1": "dns" }, 54);
  });
});
