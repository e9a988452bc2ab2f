/**
 * How long the page of the console takes to load in Chromium, beside an empty page: in turns, each in a browser that has nothing of it yet, and
 * each from a tab that shows a page of another site, as that of a person does, and from an empty tab.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type Browser, chromium } from "playwright-core";
import type { PageLoad, PageLoads, PageSample } from "./console-results.ts";

export interface PageOptions {
  /** Of the page. */
  readonly url: string;
  readonly pairs: number;
}

/** Milliseconds. */
const PAUSE = 500;
/** The same, between what the tab shows before and the navigation that is measured: the browser is done with the former. */
const REST = 300;

/** Shows what {@link PROBE} waits for, and nothing else. */
const EMPTY_PAGE = `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>Empty</title><link rel="icon" href="data:,"></head>
  <body><dl class="tiles"></dl></body>
</html>
`;

/** The page that the tab shows before. */
const OTHER_PATH = "/other";
const OTHER_PAGE = `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>Other</title><link rel="icon" href="data:,"></head>
  <body><p>Another site</p></body>
</html>
`;

/**
 * Takes the time of the frame that shows the tiles with the figures (what is behind the callback of a frame runs when it is done), and of the
 * frame that says that the page follows its server.
 */
const PROBE = `
  const observer = new MutationObserver(() => {
    const times = document.documentElement?.dataset;
    if (times === undefined) return;
    take(times, "shown", ".tiles");
    take(times, "live", ".connection.live");
    if (times.live !== undefined) observer.disconnect();
  });
  function take(times, name, what) {
    if (times[name] !== undefined || document.querySelector(what) === null) return;
    times[name] = "";
    requestAnimationFrame(() => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => { times[name] = performance.now(); };
      port2.postMessage(0);
    });
  }
  observer.observe(document, { childList: true, subtree: true, attributeFilter: ["class"] });
`;

export async function measurePage({ url, pairs }: PageOptions): Promise<PageSample> {
  const server = createServer(({ url: path }, response) => {
    const page = path === OTHER_PATH ? OTHER_PAGE : EMPTY_PAGE;
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(page);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = Object(server.address()) as AddressInfo;
  const emptyUrl = `http://127.0.0.1:${port}/`;
  // A site is a name: by its address the same server is another one.
  const otherUrl = `http://localhost:${port}${OTHER_PATH}`;
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  });
  try {
    // The first ones start parts of the browser.
    for (const first of [emptyUrl, url]) await load(browser, first, otherUrl);
    const fromOtherSite = new Pairs(browser, { url, emptyUrl, before: otherUrl });
    const fromEmptyTab = new Pairs(browser, { url, emptyUrl, before: undefined });
    for (let pair = 0; pair < pairs; pair++) {
      const both = [fromOtherSite, fromEmptyTab];
      // The order alternates, so that a machine that gets slower or faster favours neither side.
      for (const each of inTurns(both, pair)) await each.take(pair);
    }
    return { chromium: browser.version(), fromOtherSite: fromOtherSite.loads, ...fromEmptyTab.loads };
  } finally {
    await browser.close();
    server.close();
  }
}

interface Navigation {
  readonly url: string;
  readonly emptyUrl: string;
  /** The page that the tab shows before; empty by default. */
  readonly before: string | undefined;
}

/** The page and the empty one from the same start. */
class Pairs {
  readonly #page: PageLoad[] = [];
  readonly #empty: PageLoad[] = [];
  readonly #browser: Browser;
  readonly #navigation: Navigation;

  constructor(browser: Browser, navigation: Navigation) {
    this.#browser = browser;
    this.#navigation = navigation;
  }

  get loads(): PageLoads {
    return { page: this.#page, empty: this.#empty };
  }

  async take(pair: number): Promise<void> {
    const { url, emptyUrl, before } = this.#navigation;
    const both = [
      async () => this.#page.push(await load(this.#browser, url, before)),
      async () => this.#empty.push(await load(this.#browser, emptyUrl, before)),
    ];
    for (const take of inTurns(both, pair)) await take();
  }
}

function inTurns<T>(both: readonly T[], pair: number): readonly T[] {
  return pair % 2 === 0 ? both : both.toReversed();
}

async function load(browser: Browser, url: string, before: string | undefined): Promise<PageLoad> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  try {
    const page = await context.newPage();
    await page.addInitScript(PROBE);
    if (before !== undefined) {
      await page.goto(before, { waitUntil: "load" });
      await delay(REST);
    }
    await page.goto(url, { waitUntil: "load" });
    for (;;) {
      // To look into the page takes it some milliseconds: not before it is done, on any machine that is fit to measure.
      await delay(PAUSE);
      const { loaded, shown, live, goesLive }: Required<PageLoad> & { goesLive: boolean } =
        await page.evaluate(`({
          loaded: performance.getEntriesByType("navigation")[0].loadEventEnd,
          shown: Number(document.documentElement.dataset.shown),
          live: Number(document.documentElement.dataset.live),
          goesLive: document.querySelector(".connection") !== null,
        })`);
      if (shown > 0 && (live > 0 || !goesLive)) return goesLive ? { loaded, shown, live } : { loaded, shown };
    }
  } finally {
    await context.close();
  }
}
