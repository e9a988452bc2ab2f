// Makes the pictures of the README, out of a server that runs: the console in Chromium, and what `portolan explain` prints. They go into
// the folder that is named, or into docs/pictures.
//
//   npx node scripts/take-pictures.ts [--seconds N] [--every-page] [FOLDER]
//
// --seconds is how long the server is asked before (default 150: the charts want something to show). --every-page takes all pages, wide and
// narrow, light and dark, to look at them; those are not for the repository. It needs Chromium, as `npm test` does.
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Browser, chromium, type Page } from "playwright-core";
import { projectRoot, runPortolan } from "../test/support/portolan.ts";
import { DEMO_TOKEN, DemoCluster } from "./lib/demo-cluster.ts";
import { terminalPicture } from "./lib/terminal-picture.ts";

/** Octets: a clone of the repository has every version of each. */
const LARGEST = 160_000;
const QUERIES_A_SECOND = 300;
const PAGES = ["now", "queries", "who", "names", "cache", "configuration", "fleet"] as const;
const WIDE = { width: 1200, height: 800 };
const NARROW = { width: 390, height: 800 };

/** A name that is mistyped: what explain is for. No pod asks for it, so that it is in no cache. */
const EXPLAINED = "chekcout.shop.svc.cluster.local";

const { values, positionals } = parseArgs({
  options: { seconds: { type: "string", default: "150" }, "every-page": { type: "boolean", default: false } },
  allowPositionals: true,
});
const [folder = join(projectRoot, "docs", "pictures")] = positionals;
const seconds = Number(values.seconds);
if (!Number.isFinite(seconds) || seconds < 0)
  throw new RangeError(`--seconds ${values.seconds}: no number of seconds`);

mkdirSync(folder, { recursive: true });
await using demo = await DemoCluster.start(QUERIES_A_SECOND);
await new Promise((resolve) => setTimeout(resolve, 1_000 * seconds));
await pictureExplain();
await pictureConsole();

async function pictureExplain(): Promise<void> {
  const words = ["explain", EXPLAINED, "-server", `127.0.0.1:${demo.server.portOf("explain")}`];
  // The second time nothing is compiled any more.
  await runPortolan(words);
  const { code, output, errors } = await runPortolan(words);
  if (code !== 0) throw new Error(`explain ended with exit code ${code}: ${errors}`);
  // The message itself, in dig's form, would take as much room again.
  const [way = ""] = output.split("\n\n;; ->>HEADER");
  const command = `portolan ${words.join(" ")}`;
  const lines = [`$ ${command}`, ...way.trimEnd().split("\n")];
  keep("explain.svg", Buffer.from(terminalPicture(`What ${command} prints`, lines)));
}

async function pictureConsole(): Promise<void> {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  });
  try {
    for (const scheme of ["light", "dark"] as const) {
      if (values["every-page"]) {
        for (const viewport of [WIDE, NARROW]) await pictureAll(browser, scheme, viewport);
        continue;
      }
      const page = await openPage(browser, scheme, WIDE);
      await show(page, "now");
      keep(`console-${scheme}.png`, await page.screenshot());
      await page.context().close();
    }
  } finally {
    await browser.close();
  }
}

async function pictureAll(browser: Browser, scheme: "light" | "dark", viewport: typeof WIDE): Promise<void> {
  const page = await openPage(browser, scheme, viewport);
  const keepPage = async (name: string): Promise<void> =>
    keep(`${name}-${scheme}-${viewport.width}.png`, await page.screenshot());
  for (const path of PAGES) {
    await show(page, path);
    if (path === "names") {
      await page.selectOption("select", "shop");
      await page.waitForSelector(".services .card");
    }
    if (path === "cache") {
      await page.fill("input[name=name]", "example");
      await page.click("text=Look");
      await page.waitForSelector("tbody tr");
    }
    await keepPage(path);
    if (path !== "queries") continue;
    await page.getByRole("button", { name: /^Why/ }).first().click();
    await page.waitForSelector(".verdict");
    await keepPage("why");
    await page.keyboard.press("Escape");
  }
  await show(page, "configuration");
  await page.click("summary");
  await page.fill("input[type=password]", DEMO_TOKEN);
  await page.click("text=Sign in >> nth=-1");
  await page.waitForSelector("text=Sign out");
  await keepPage("signed-in");
  await page.context().close();
}

async function openPage(
  browser: Browser,
  colorScheme: "light" | "dark",
  viewport: typeof WIDE,
): Promise<Page> {
  const context = await browser.newContext({ colorScheme, viewport });
  return context.newPage();
}

async function show(page: Page, path: string): Promise<void> {
  await page.goto(`${demo.consoleUrl}#/${path}`);
  await page.waitForSelector(".connection.live");
  await page.waitForSelector("h1");
  // What is asked for when a page opens has come.
  await page.waitForLoadState("load");
  await page.waitForTimeout(1_500);
}

function keep(name: string, octets: Uint8Array): void {
  const path = join(folder, name);
  writeFileSync(path, octets);
  const { size } = statSync(path);
  if (size > LARGEST && !values["every-page"])
    throw new RangeError(`${path} has ${size} octets, and ${LARGEST} are enough for a picture`);
  process.stdout.write(`${path}: ${size} octets\n`);
}
