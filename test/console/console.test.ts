/** The console against a server that runs: its API, who may do what, and the page in a browser. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { type Browser, chromium, type Page } from "playwright-core";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import type {
  CacheAnswer,
  NamesView,
  NowView,
  QueryRow,
  SessionView,
  WhoView,
} from "../../src/console/api-types.ts";
import { ask } from "../support/dns-client.ts";
import { schemaProblems } from "../support/json-schema.ts";
import { Portolan, portolan, projectRoot, runPortolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

const FIXTURE = join(projectRoot, "test", "fixtures", "kubernetes");
const TOKEN = "a token that is hard to guess";

let server: Portolan;

before(async () => {
  server = await Portolan.start(
    (port) => `cluster.local:${port("dns")} {
    bind 127.0.0.1
    console 127.0.0.1:${port("console")} {
        token_file token
    }
    ready 127.0.0.1:${port("ready")}
    cache 30
    kubernetes cluster.local {
        manifests ${FIXTURE}
        pods verified
    }
}
.:${port("dns")} {
    bind 127.0.0.1
    cache 30
    template IN A example.org {
        answer "{{ .Name }} 60 IN A 192.0.2.1"
    }
}
`,
    { files: { token: `${TOKEN}\n` } },
  );
  // Until all kinds of objects are listed, answers about the cluster do not stay.
  const isReady = `http://127.0.0.1:${server.portOf("ready")}/ready`;
  await untilTrue(async () => (await fetch(isReady)).ok, { what: "/ready says 200", log: () => server.log });
  for (const name of [
    "kubernetes.default.svc.cluster.local.",
    "nope.shop.svc.cluster.local.",
    "www.example.org.",
  ])
    for (let count = 0; count < 3; count++) await ask(server, name);
});

after(() => server[Symbol.asyncDispose]());

interface Answer {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
}

function send(
  path: string,
  {
    method = "GET",
    headers = {},
    body = "",
  }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(
      { host: "127.0.0.1", port: server.portOf("console"), path, method, headers },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () =>
          resolve({
            status: response.statusCode ?? 0,
            headers: response.headers,
            body: Buffer.concat(chunks).toString(),
          }),
        );
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

async function get<T>(path: string): Promise<T> {
  const { status, body } = await send(`/api/v1/${path}`);
  assert.equal(status, 200, body);
  return JSON.parse(body);
}

/** Asks until the answer is as wanted: the stream is read four times a second. */
async function eventually<T>(path: string, isWanted: (answer: T) => boolean): Promise<T> {
  const signal = AbortSignal.timeout(10_000);
  for (;;) {
    const answer = await get<T>(path);
    if (isWanted(answer)) return answer;
    signal.throwIfAborted();
  }
}

/** Asks ten times a second for as long as something takes that waits to hear of it. */
async function whileAsked<T>(name: string, task: () => Promise<T>): Promise<T> {
  const timer = setInterval(() => void ask(server, name), 100);
  try {
    return await task();
  } finally {
    clearInterval(timer);
  }
}

describe("the API", () => {
  test("answers as its schema says", async () => {
    const { properties } = await get<{ properties: Record<string, object> }>("schema");
    const parameters: Record<string, string> = { names: "?namespace=shop", cache: "?name=local" };
    for (const [path, schema] of Object.entries(properties)) {
      if (path.startsWith("POST")) continue;
      const { body } = await send(`${path}${parameters[path.replace("/api/v1/", "")] ?? ""}`);
      assert.deepEqual(schemaProblems(schema, JSON.parse(body), path), []);
    }
  });

  test("tells of every query, cache hits included, and finds those that are wanted", async () => {
    const of = async (filter: string) => {
      const { queries } = await get<{ queries: QueryRow[] }>(`queries?${filter}`);
      return queries.map(({ name, type, rcode, plugin }) => `${name} ${type} ${rcode} ${plugin}`);
    };
    assert.deepEqual(await of("name=www.example.org."), [
      "www.example.org. A NOERROR cache",
      "www.example.org. A NOERROR cache",
      "www.example.org. A NOERROR template",
    ]);
    assert.deepEqual(await of("rcode=nxdomain&by=cache"), [
      "nope.shop.svc.cluster.local. A NXDOMAIN cache",
      "nope.shop.svc.cluster.local. A NXDOMAIN cache",
    ]);
    assert.deepEqual(await of("name=example&client=192.0.2.0/24"), []);
    assert.equal((await of("client=127.0.0.0/8&type=A&slower=0ms&name=kubernetes.default")).length, 3);
    assert.equal((await send("/api/v1/queries?type=QQ")).status, 400);
  });

  test("has the queries of a time alone, and exports them as CSV", async () => {
    const rows = async (query: string): Promise<readonly QueryRow[]> =>
      (await get<{ queries: QueryRow[] }>(`queries?${query}`)).queries;
    const all = await rows("rows=1000");
    const middle = all[Math.floor(all.length / 2)]?.time ?? 0;
    const later = await rows(`rows=1000&from=${Math.ceil(middle)}`);
    assert.ok(later.length > 0 && later.length < all.length && later.every(({ time }) => time >= middle));
    const earlier = await rows(`rows=1000&to=${encodeURIComponent(new Date(middle).toISOString())}`);
    assert.ok(earlier.length > 0 && earlier.every(({ time }) => time <= middle));
    assert.equal((await send("/api/v1/queries?from=yesterday")).status, 400);
    assert.equal((await send("/api/v1/queries?format=xml")).status, 400);
    const { status, headers, body } = await send("/api/v1/queries?format=csv&name=nope.shop");
    assert.deepEqual([status, headers["content-disposition"]], [200, 'attachment; filename="queries.csv"']);
    const [heading, ...lines] = body.trimEnd().split("\r\n");
    assert.match(heading ?? "", /^time,name,type,rcode,client,/);
    assert.ok(lines.length >= 3, body);
    for (const line of lines)
      assert.match(line, /^\d{4}-\S+Z,nope\.shop\.svc\.cluster\.local\.,A,NXDOMAIN,127\.0\.0\.1,/);
  });

  test("shows the largest zones of the cache and its freshest answers without a name", async () => {
    const { answers, overview } = await get<CacheAnswer>("cache");
    assert.deepEqual(answers, []);
    assert.ok((overview?.looked ?? 0) >= 2, JSON.stringify(overview));
    assert.ok(overview?.zones.some(({ zone, answers }) => zone === "cluster.local." && answers >= 2));
    const ages = overview?.newest.map(({ age }) => age) ?? [];
    assert.deepEqual(
      ages,
      ages.toSorted((one, other) => one - other),
    );
    assert.equal((await get<CacheAnswer>("cache?name=example.org")).overview, undefined);
  });

  test("counts", async () => {
    const now = await eventually<NowView>("now", ({ minute }) => minute.queries >= 9);
    assert.ok((now.minute.rcodes.NXDOMAIN ?? 0) >= 3, JSON.stringify(now.minute));
    assert.ok((now.minute.hitRatio ?? 0) > 0.3 && now.minute.p50 !== null);
    const [cluster] = now.clusters;
    assert.deepEqual([cluster?.domain, cluster?.families], ["cluster.local", ["IPv4", "IPv6"]]);
    assert.ok((cluster?.services ?? 0) > 10);
    const who = await get<WhoView>("who");
    const client = who.clients.find(({ key }) => key === "127.0.0.1");
    assert.ok((client?.queries ?? 0) >= 9 && (client?.of.length ?? 0) >= 3);
    const name = who.names.find(({ key }) => key === "nope.shop.svc.cluster.local.");
    assert.deepEqual([name?.nxdomain, name?.of[0]?.key], [name?.queries, "127.0.0.1"]);
  });

  test("knows the names of the cluster", async () => {
    const { clusters, services } = await get<NamesView>("names?text=db.shop");
    assert.ok(clusters[0]?.namespaces.some((each) => each.name === "shop" && each.services > 10));
    const [db] = services.filter(({ name }) => name === "db");
    assert.deepEqual([db?.type, db?.ready, db?.notReady], ["headless", 2, 1]);
  });

  test("lists the services of all namespaces where nothing is asked for, in order and without endpoints", async () => {
    const { clusters, services, more } = await get<NamesView>("names");
    const places = services.map(({ namespace, name }) => `${namespace}/${name}`);
    assert.ok(places.includes("shop/db") && places.includes("default/kubernetes"), places.join(" "));
    assert.deepEqual(places, places.toSorted());
    const count = (clusters[0]?.namespaces ?? []).reduce((sum, each) => sum + each.services, 0);
    assert.deepEqual([services.length, more], [count, false]);
    assert.ok(services.every(({ endpoints }) => endpoints.length === 0));
  });

  test("sends queries as they are answered", async () => {
    const controller = new AbortController();
    const base = `http://127.0.0.1:${server.portOf("console")}`;
    const response = await fetch(`${base}/api/v1/events?streams=queries&name=live.example.org.`, {
      signal: controller.signal,
    });
    await ask(server, "other.example.org.");
    await ask(server, "live.example.org.");
    let text = "";
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString();
      if (text.includes("event: queries")) break;
    }
    controller.abort();
    assert.match(text, /"name":"live\.example\.org\."/);
    assert.doesNotMatch(text, /other\.example/);
  });

  test("explains", async () => {
    const { status, body } = await send("/api/v1/explain", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"name":"nope.shop.svc.cluster.local."}',
    });
    assert.deepEqual([status, JSON.parse(body).message.rcode], [200, "NXDOMAIN"]);
  });
});

describe("who may do what", () => {
  const json = { "content-type": "application/json" };
  const forget = { method: "POST", body: '{"name":"www.example.org."}' };
  for (const [title, path, options, status, reason] of [
    [
      "a name that was made to point here",
      "/api/v1/now",
      { headers: { host: "evil.example" } },
      403,
      /no loopback/,
    ],
    [
      "a page of another site",
      "/api/v1/now",
      { headers: { origin: "http://evil.example" } },
      403,
      /other web pages/,
    ],
    [
      "an image of another site",
      "/api/v1/now",
      { headers: { "sec-fetch-site": "cross-site" } },
      403,
      /other web pages/,
    ],
    ["a form", "/api/v1/explain", { method: "POST", body: "name=a" }, 415, /application\/json/],
    ["an action of a form", "/api/v1/cache/forget", forget, 415, /application\/json/],
    ["an action without token", "/api/v1/cache/forget", { ...forget, headers: json }, 401, /need the token/],
    [
      "an action with a wrong token",
      "/api/v1/cache/forget",
      { ...forget, headers: { ...json, authorization: "Bearer wrong" } },
      401,
      /need the token/,
    ],
    [
      "a wrong token",
      "/api/v1/session",
      { method: "POST", headers: json, body: '{"token":"wrong"}' },
      401,
      /wrong token/,
    ],
    ["another method", "/api/v1/now", { method: "PUT" }, 405, /use GET/],
  ] as const) {
    test(`keeps out ${title}`, async () => {
      const answer = await send(path, options);
      assert.equal(answer.status, status, answer.body);
      assert.match(answer.body, reason);
    });
  }

  test("another method is told which one there is", async () => {
    assert.equal((await send("/api/v1/now", { method: "PUT" })).headers.allow, "GET");
    assert.equal((await send("/api/v1/explain")).headers.allow, "POST");
    assert.equal((await send("/", { method: "POST" })).headers.allow, "GET, HEAD");
  });

  test("a program acts with the token", async () => {
    const headers = { ...json, authorization: `Bearer ${TOKEN}` };
    await ask(server, "gone.example.org.");
    const answer = await send("/api/v1/cache/forget", {
      method: "POST",
      headers,
      body: '{"name":"gone.example.org.","type":"A"}',
    });
    assert.deepEqual([answer.status, JSON.parse(answer.body)], [200, { forgotten: 1 }]);
    assert.equal((await get<CacheAnswer>("cache?name=gone.example.org")).answers.length, 0);
  });

  test("a session acts with its own header alone, and ends", async () => {
    const signedIn = await send("/api/v1/session", {
      method: "POST",
      headers: json,
      body: JSON.stringify({ token: TOKEN }),
    });
    const [cookie = ""] = signedIn.headers["set-cookie"] ?? [];
    assert.match(cookie, /HttpOnly; SameSite=Strict/);
    const { csrf }: SessionView = JSON.parse(signedIn.body);
    const headers = { ...json, cookie: cookie.split(";", 1)[0] ?? "" };
    assert.equal((await send("/api/v1/cache/forget", { ...forget, headers })).status, 403);
    const withHeader = { ...headers, "portolan-csrf": csrf };
    assert.equal((await send("/api/v1/cache/forget", { ...forget, headers: withHeader })).status, 200);
    await send("/api/v1/session", { method: "DELETE", headers: withHeader });
    assert.equal((await send("/api/v1/cache/forget", { ...forget, headers: withHeader })).status, 401);
  });
});

describe("commands", () => {
  const address = () => `127.0.0.1:${server.portOf("console")}`;

  test("portolan tail prints what is wanted, as text and as JSON", async () => {
    for (const json of [false, true]) {
      const flags = [
        "-server",
        address(),
        "-name",
        "tailed.example.org.",
        "-count",
        "1",
        ...(json ? ["-json"] : []),
      ];
      await using program = portolan(["tail", ...flags]);
      // It receives events from here on.
      const [line] = await whileAsked("tailed.example.org.", () => program.waitForOutput(/.*\n/, 0));
      if (json) assert.equal(JSON.parse(line).name, "tailed.example.org.");
      else
        assert.match(
          line,
          /^[\d:.]+ tailed\.example\.org\. A NOERROR from 127\.0\.0\.1 by (template|cache) in [\d.]+ ms$/m,
        );
    }
  });

  test("portolan top shows names and clients", async () => {
    const { code, output, errors } = await runPortolan(["top", "-server", address(), "-count", "1"]);
    assert.deepEqual([code, errors], [0, ""]);
    assert.match(output, /queries\/s/);
    assert.match(output, / www\.example\.org\.\n/);
    assert.match(output, / 127\.0\.0\.1\n/);
  });

  test("end silently when their last reader is gone", async () => {
    const script = `{ "$0" top -json -server "$1"; echo "code $?" >&2; } | head -c 1`;
    const program = join(projectRoot, "bin", "portolan");
    const { stdout, stderr } = await promisify(execFile)("sh", ["-c", script, program, address()]);
    assert.deepEqual([stdout, stderr], ["{", "code 0\n"]);
  });

  test("say where the token comes from", async () => {
    await using locked = await Portolan.start(
      (port) => `.:${port("dns")} {
    bind 127.0.0.1
    console :${port("console")} {
        token_file token
    }
    whoami
}
`,
      { files: { token: `${TOKEN}\n`, wrong: "not the token at all", odd: "one line\nand another" } },
    );
    const flags = ["-server", `127.0.0.1:${locked.portOf("console")}`, "-count", "1"];
    for (const [more, code, message] of [
      [[], 2, /the console needs a token: give -token-file FILE/],
      [["-token-file", join(locked.folder, "wrong")], 2, /the token is wrong/],
      [["-token-file", join(locked.folder, "odd")], 2, /odd: holds no token: one line/],
      [["-token-file", join(locked.folder, "token")], 0, /^$/],
    ] as const) {
      const ended = await runPortolan(["top", ...flags, ...more]);
      assert.equal(ended.code, code);
      assert.match(ended.errors, message);
    }
  });

  test("say what to do where no server can be asked", async () => {
    for (const command of ["tail", "top"]) {
      const { code, errors } = await runPortolan([command, "-server", "127.0.0.1:1"]);
      assert.equal(code, 2);
      assert.match(
        errors,
        /^-server 127\.0\.0\.1:1: nothing listens there .* with 'console' in its Corefile\?.*port-forward/,
      );
    }
  });
});

describe("the page", { skip: skipWithout("chromium") }, () => {
  const PAGES = ["now", "queries", "who", "names", "cache", "configuration", "fleet"];
  const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core"), "utf8");
  let browser: Browser;

  before(async () => {
    browser = await chromium.launch({
      executablePath: "/usr/bin/chromium",
      args: [
        ...["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
        ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
      ],
    });
  });

  after(() => browser.close());

  async function open(page: Page, path: string): Promise<void> {
    await page.goto(`http://127.0.0.1:${server.portOf("console")}/#/${path}`);
    await page.waitForSelector("h1");
    await page.waitForSelector(".connection.live");
  }

  /** Of WCAG's rules, as far as axe can tell. */
  async function violationsIn(page: Page): Promise<string[]> {
    await page.evaluate(axe);
    return page.evaluate(
      "axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ target }) => target).join(', ')))",
    );
  }

  for (const [scheme, width] of [
    ["light", 1280],
    ["dark", 390],
  ] as const) {
    test(`has all its parts, reads well and fits, ${scheme}, ${width} wide`, async () => {
      const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: 800 } });
      const page = await context.newPage();
      const faults: string[] = [];
      page.on("console", (message) => {
        if (message.type() === "error") faults.push(message.text());
      });
      page.on("pageerror", (error) => faults.push(error.message));
      for (const path of PAGES) {
        await open(page, path);
        assert.equal(
          await page.locator("h1").innerText(),
          await page.locator("nav [aria-current]").innerText(),
          "the heading is not that of the navigation",
        );
        if (path === "names") {
          await page.waitForSelector(".namespace tbody tr");
          const tooWide = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
          assert.equal(tooWide, 0, "the overview of the names scrolls sideways");
          assert.deepEqual(await violationsIn(page), [], "the overview of the names");
          await page.selectOption("select", "shop");
        }
        if (path === "names") await page.waitForSelector(".services .card");
        const excess = await page.evaluate("document.documentElement.scrollWidth - innerWidth");
        assert.equal(excess, 0, `${path} scrolls sideways`);
        assert.deepEqual(await violationsIn(page), [], path);
      }
      assert.deepEqual(faults, []);
      await context.close();
    });
  }

  test("opens a name from the list of all services", async () => {
    const page = await browser.newPage();
    await open(page, "names");
    await page.waitForSelector(".namespace tbody tr");
    assert.match(await page.locator("main").innerText(), /\d+ Services in \d+ namespaces/);
    await page.getByRole("button", { name: "Answers of db.shop.svc.cluster.local." }).click();
    await page.waitForSelector(".verdict");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "hidden" });
    await page.getByRole("button", { name: "Endpoints of shop" }).click();
    await page.waitForSelector(".services .card");
    await page.close();
  });

  test("shows queries live, and says why", async () => {
    const page = await browser.newPage();
    await open(page, "queries");
    await page.fill("input[name=name]", "shown.example.org");
    await page.click("button[type=submit]");
    // It receives events from here on.
    const why = page.getByRole("button", { name: "Why: shown.example.org. A" });
    await whileAsked("shown.example.org.", () => why.first().click());
    await page.waitForSelector(".verdict");
    assert.match(await page.locator(".verdict").innerText(), /^NOERROR by (cache|template)/);
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "hidden" });
    await page.close();
  });

  test("looks up a name of any type through a listener and a transport", async () => {
    const page = await browser.newPage();
    await open(page, "names");
    await page.click("text=Look up any name");
    await page.fill("input[name=any]", "db.shop.svc.cluster.local");
    await page.selectOption("select[name=type]", "AAAA");
    await page.selectOption("select[name=transport]", "tcp");
    await page.selectOption("select[name=listener]", { index: 1 });
    const sent = page.waitForRequest("**/api/v1/explain");
    await page.click("text=Ask");
    const question = (await sent).postDataJSON();
    assert.deepEqual(
      [question.name, question.type, question.transport],
      ["db.shop.svc.cluster.local", "AAAA", "tcp"],
    );
    assert.match(question.listener, /^dns:\/\/127\.0\.0\.1:\d+$/);
    await page.waitForSelector(".verdict");
    await page.close();
  });

  test("says what was counted at the pointer, and shows the most frequent names on the first page", async () => {
    const page = await browser.newPage();
    await open(page, "now");
    await page.getByRole("heading", { name: "Most frequent names" }).waitFor();
    await page.getByRole("heading", { name: "Most frequent clients" }).waitFor();
    await page.locator(".plot").first().hover();
    await page.waitForFunction(
      "/^\\d\\d:\\d\\d:\\d\\d: all .*, NXDOMAIN .*, errors /.test(document.querySelector('.readout').textContent)",
    );
    await page.close();
  });

  test("removes an answer after sign-in", async () => {
    await ask(server, "kept.example.org.");
    const page = await browser.newPage();
    await open(page, "cache");
    await page.click("summary");
    await page.fill("input[type=password]", TOKEN);
    await page.click("text=Sign in >> nth=-1");
    await page.waitForSelector("text=Sign out");
    await page.fill("input[name=name]", "kept.example.org");
    await page.click("text=Look");
    await page.getByRole("button", { name: "Remove kept.example.org. A" }).click();
    await page.waitForSelector("text=1 answer removed");
    await ask(server, "a.below.example.org.");
    await ask(server, "b.below.example.org.");
    await page.fill("input[name=name]", "below.example.org");
    await page.fill("input[name=type]", "txt");
    await page.click("text=Look");
    await page.getByRole("button", { name: "Remove TXT of below.example.org and all below" }).click();
    await page.waitForSelector("text=0 answers removed");
    await page.fill("input[name=type]", "a");
    await page.click("text=Look");
    await page.getByRole("button", { name: "Remove A of below.example.org and all below" }).click();
    await page.waitForSelector("text=2 answers removed");
    await page.close();
  });

  test("sets the level of the log after sign-in", async () => {
    const page = await browser.newPage();
    await open(page, "configuration");
    await page.click("summary");
    await page.fill("input[type=password]", TOKEN);
    await page.click("text=Sign in >> nth=-1");
    await page.getByLabel("Level of the log").selectOption("warning");
    await page.getByText("The log begins at warning.").waitFor();
    assert.deepEqual(await violationsIn(page), []);
    await page.getByLabel("Level of the log").selectOption("info");
    await page.getByText("The log begins at info.").waitFor();
    await page.close();
  });

  test("goes by keys alone", async () => {
    const page = await browser.newPage();
    await open(page, "now");
    const focused = (): Promise<string> => page.evaluate("document.activeElement?.textContent ?? ''");
    await page.keyboard.press("Tab");
    assert.match(await focused(), /^Skip to the content$/);
    await page.keyboard.press("Tab");
    assert.equal(await focused(), "Overview");
    await page.keyboard.press("Tab");
    assert.equal(await focused(), "Queries");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Queries" }).waitFor();
    await page.fill("input[name=name]", "by-keys.example.org");
    await page.keyboard.press("Enter");
    await whileAsked("by-keys.example.org.", async () => {
      const why = page.getByRole("button", { name: "Why: by-keys.example.org. A" }).first();
      await why.waitFor();
      await why.focus();
      // Others come in front meanwhile, and the button keeps the focus.
      const count = await page.getByRole("row").count();
      await page
        .getByRole("row")
        .nth(count + 1)
        .waitFor();
    });
    assert.equal(await focused(), "Why");
    await page.keyboard.press("Enter");
    await page.waitForSelector(".verdict");
    await page.keyboard.press("Escape");
    await page.waitForSelector("dialog", { state: "hidden" });
    assert.equal(await focused(), "Why");
    await page.close();
  });

  test("says that it asks the replicas until the fleet is known", async () => {
    const page = await browser.newPage();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await page.route("**/api/v1/fleet", async (route) => {
      await released;
      await route.continue();
    });
    await open(page, "fleet");
    await page.getByText("Asking the replicas").waitFor();
    assert.equal(await page.locator(".tiles").count(), 0);
    release();
    await page.getByText("none away").waitFor();
    await page.close();
  });

  test("has its first figures in the document, for clients with read access only", async () => {
    const has = async (headers: Record<string, string>): Promise<boolean> =>
      /data-view='\{"session":.*"now":/.test((await send("/", { headers })).body);
    assert.ok(await has({}));
    for (const headers of [
      { host: "evil.example" },
      { "sec-fetch-site": "cross-site" },
      { origin: "http://evil.example" },
    ])
      assert.ok(!(await has(headers)), JSON.stringify(headers));
    const page = await browser.newPage();
    const asked: string[] = [];
    // The stream does not begin before the figures are shown.
    await page.route("**/api/**", async (route) => {
      asked.push(new URL(route.request().url()).pathname);
      await page.waitForSelector(".tiles");
      await route.continue();
    });
    await open(page, "now");
    assert.equal(asked[0], "/api/v1/events");
    await page.close();
  });

  test("opens from a link of another site, whose visitors bring no cookie", async () => {
    const page = await browser.newPage();
    const url = `http://127.0.0.1:${server.portOf("console")}/#/now`;
    await page.setContent(`<a href="${url}">Console</a>`);
    await page.click("a");
    await page.waitForSelector(".connection.live");
    await page.waitForSelector(".tiles");
    await page.close();
  });

  test("is a script and its styles, which browsers fetch before they read the page", async () => {
    const { headers } = await send("/");
    assert.equal(headers.link, "<app.css>; rel=preload; as=style, <app.js>; rel=modulepreload");
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${server.portOf("console")}/`);
    await page.waitForSelector(".tiles");
    const paths: string[] = await page.evaluate(
      "performance.getEntriesByType('resource').map(({ name }) => new URL(name).pathname)",
    );
    assert.deepEqual(paths.filter((path) => /\.(js|css)$/.test(path)).sort(), ["/app.css", "/app.js"]);
    const display = await page.evaluate("getComputedStyle(document.querySelector('.tiles')).display");
    assert.equal(display, "grid");
    await page.close();
  });

  test("shows its figures before its script has come, and goes on with what the server has drawn", async () => {
    const page = await browser.newPage();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await page.route("**/app.js", async (route) => {
      await released;
      await route.continue();
    });
    await page.goto(`http://127.0.0.1:${server.portOf("console")}/`, { waitUntil: "commit" });
    const tile = page.locator(".tiles dd").first();
    await tile.waitFor({ state: "attached" });
    const drawn = await tile.innerText();
    assert.match(drawn, /\d\/s/);
    await tile.evaluate((element) => element.setAttribute("data-seen", ""));
    release();
    await page.waitForSelector(".connection.live");
    assert.equal(await page.locator(".tiles dd[data-seen]").count(), 1);
    assert.equal(await page.locator(".tiles").count(), 1);
    assert.equal(await page.getByRole("navigation").count(), 1);
    await page.close();
  });

  test("another page that is asked for is the first that is shown", async () => {
    const page = await browser.newPage();
    // Each frame says what it shows.
    await page.addInitScript(`
      window.titles = new Set();
      const look = () => {
        const title = document.querySelector("h1")?.textContent;
        if (title !== undefined) window.titles.add(title);
        requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    `);
    await open(page, "configuration");
    assert.deepEqual(await page.evaluate("[...window.titles]"), ["Configuration"]);
    await page.close();
  });

  test("is sent of the history what it does not have", async () => {
    const point = (await get<NowView>("now")).history.points.at(-1);
    const page = await browser.newPage();
    const wanted = page.waitForRequest("**/api/v1/events*");
    await open(page, "now");
    const since = Number(new URL((await wanted).url()).searchParams.get("since"));
    assert.ok(since >= (point?.time ?? Number.NaN), `${since}`);
    await page.close();
    const first = async (query: string): Promise<NowView> => {
      const url = `http://127.0.0.1:${server.portOf("console")}/api/v1/events?streams=now${query}`;
      const { body } = await fetch(url);
      let text = "";
      for await (const chunk of body ?? []) {
        text += Buffer.from(chunk).toString();
        const data = /event: now\ndata: (.*)\n\n/.exec(text)?.[1];
        if (data !== undefined) return JSON.parse(data);
      }
      return assert.fail(text);
    };
    const { points } = (await first(`&since=${since}`)).history;
    assert.ok(points[0]?.time === since && points.length <= 3, JSON.stringify(points));
    assert.ok((await first("")).history.points[0]?.time !== since);
    assert.equal((await send("/api/v1/events?since=now")).status, 400);
  });

  test("weighs less than 100 KB as it is sent", async () => {
    let octets = 0;
    for (const path of ["/", "/app.js", "/app.css", "/favicon.svg"]) {
      const { status, headers } = await send(path, { headers: { "accept-encoding": "gzip" } });
      assert.equal(status, 200);
      octets += Number(headers["content-length"]);
    }
    assert.ok(octets < 100_000, `${octets}`);
  });
});
