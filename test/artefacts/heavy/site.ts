/** The documentation site: made as `npm run docs` makes it, then read to the last link. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { extname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { skipWithout } from "../../../scripts/lib/system-tools.mjs";
import { MAKE_PATIENCE } from "../../support/artefacts.ts";
import { projectRoot } from "../../support/portolan.ts";
import { run } from "../../support/program.ts";

const dist = join(projectRoot, "site", "dist");
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".json": "application/json",
  ".txt": "text/plain; charset=utf-8",
};

/** The file that a static web server would send for a path; undefined for 404. */
function fileOf(path: string): string | undefined {
  const file = join(dist, decodeURIComponent(path));
  const found = existsSync(file) && statSync(file).isDirectory() ? join(file, "index.html") : file;
  return existsSync(found) ? found : undefined;
}

/** Opens a page and collects all that goes wrong in it. */
class Reader {
  readonly problems: string[] = [];
  readonly page: Page;
  readonly #origin: string;

  constructor(page: Page, origin: string) {
    this.page = page;
    this.#origin = origin;
    page.on("pageerror", (error) => this.problems.push(`${page.url()}: ${error.message}`));
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type()))
        this.problems.push(`${page.url()}: ${message.text()}`);
    });
    page.on("request", (request) => {
      if (!request.url().startsWith(origin) && !request.url().startsWith("data:"))
        this.problems.push(`${page.url()} asks another server: ${request.url()}`);
    });
    page.on("response", (response) => {
      if (response.status() >= 400)
        this.problems.push(`${page.url()}: ${response.status()} ${response.url()}`);
    });
  }

  /** Goes there, and waits until the page's own code runs. */
  async open(path: string): Promise<void> {
    await this.page.goto(`${this.#origin}/${path}`, { waitUntil: "load" });
    await this.page.waitForFunction("document.querySelector('#app')?.__vue_app__ !== undefined");
  }
}

describe("the documentation site", { skip: skipWithout("chromium"), timeout: MAKE_PATIENCE }, () => {
  const pages = (): string[] =>
    globSync("**/*.html", { cwd: dist })
      .filter((name) => name !== "404.html")
      .sort();
  let server: Server;
  let browser: Browser;
  let origin = "";

  before(async () => {
    const made = await run(process.execPath, [join(projectRoot, "scripts", "docs.mjs")], {
      cwd: projectRoot,
      patience: MAKE_PATIENCE,
    });
    assert.equal(made.code, 0, `${made.output}${made.errors}`);
    server = createServer((request, response) => {
      const file = fileOf(new URL(request.url ?? "/", "http://site").pathname);
      response.statusCode = file === undefined ? 404 : 200;
      response.setHeader("Content-Type", TYPES[extname(file ?? ".html")] ?? "application/octet-stream");
      response.end(file === undefined ? "" : readFileSync(file));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    assert.ok(address !== null && typeof address === "object");
    origin = `http://127.0.0.1:${address.port}`;
    browser = await chromium.launch({
      executablePath: "/usr/bin/chromium",
      args: [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
      ],
    });
  });
  after(async () => {
    await browser.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  test("has a page for every README of a plugin, every file of docs/, and the API", () => {
    const plugins = globSync("src/plugins/*/README.md", { cwd: projectRoot });
    assert.ok(plugins.length > 50);
    const docs = globSync("docs/**/*.md", { cwd: projectRoot });
    const expected = [
      ...plugins.map((file) => file.replace(/^src\/(.*)\/README\.md$/, "$1.html")),
      ...docs.map((file) => file.replace(/README\.md$/, "index.md").replace(/\.md$/, ".html")),
      ...["index.html", "CHANGELOG.html", "SECURITY.html", "deploy/index.html", "plugins/index.html"],
      ...["plugin", "testing", "dns"].map((name) => `api/portolan/${name}/index.html`),
    ];
    const made = new Set(pages());
    assert.deepEqual(
      expected.filter((page) => !made.has(page)),
      [],
    );
  });

  test("opens in a browser, each page without an error, and no link leads nowhere", async () => {
    const context = await browser.newContext();
    const reader = new Reader(await context.newPage(), origin);
    const anchors = new Map<string, ReadonlySet<string>>();
    const links: { from: string; to: URL }[] = [];
    for (const name of pages()) {
      await reader.open(name);
      assert.equal(await reader.page.locator("h1").count(), 1, `headings of ${name}`);
      const ids = await reader.page.$$eval("[id]", (elements) => elements.map(({ id }) => id));
      anchors.set(join(dist, name), new Set(ids));
      const targets = await reader.page.$$eval("a[href]", (elements) =>
        elements.map((element) => element.getAttribute("href") ?? ""),
      );
      for (const target of targets) links.push({ from: name, to: new URL(target, `${origin}/${name}`) });
    }
    assert.deepEqual(reader.problems, []);
    const dead = links.filter(({ to }) => {
      if (to.origin !== origin) return false;
      const file = fileOf(to.pathname);
      const anchor = decodeURIComponent(to.hash.slice(1));
      return file === undefined || (anchor !== "" && anchors.get(file)?.has(anchor) === false);
    });
    assert.deepEqual([...new Set(dead.map(({ from, to }) => `${from} -> ${to.pathname}${to.hash}`))], []);
    assert.ok(links.length > 1000, `${links.length} links`);
    await context.close();
  });

  test("finds a word by its search, and goes there", async () => {
    const context = await browser.newContext();
    const reader = new Reader(await context.newPage(), origin);
    await reader.open("");
    await reader.page.locator("#local-search button").click();
    await reader.page.locator("#localsearch-input").fill("serve_stale");
    const first = reader.page.locator(".VPLocalSearchBox .results a").first();
    await first.waitFor();
    await reader.page.locator(".VPLocalSearchBox .results a", { hasText: "cache" }).first().click();
    await reader.page.waitForURL(/\/plugins\/cache\.html/);
    assert.match(await reader.page.locator("main").innerText(), /serve_stale/);
    assert.deepEqual(reader.problems, []);
    await context.close();
  });

  for (const [title, options] of [
    ["in light", { colorScheme: "light", viewport: { width: 1280, height: 900 } }],
    ["in dark", { colorScheme: "dark", viewport: { width: 1280, height: 900 } }],
    ["on a phone", { colorScheme: "light", viewport: { width: 390, height: 844 } }],
  ] as const) {
    test(`fits its window ${title}`, async () => {
      const context = await browser.newContext(options);
      const reader = new Reader(await context.newPage(), origin);
      for (const name of [
        "index.html",
        "plugins/cache.html",
        "docs/compatibility.html",
        "api/portolan/plugin/index.html",
      ]) {
        await reader.open(name);
        const { width } = options.viewport;
        const wide = await reader.page.evaluate("document.documentElement.scrollWidth");
        assert.ok(typeof wide === "number" && wide <= width, `${name} is ${String(wide)} wide`);
        const folder = process.env.PORTOLAN_PICTURES;
        if (folder !== undefined)
          await reader.page.screenshot({ path: join(folder, `${title}-${name.replaceAll("/", "-")}.png`) });
      }
      assert.deepEqual(reader.problems, []);
      await context.close();
    });
  }
});
