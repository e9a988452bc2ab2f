/** How long the page of the console takes to load in Chromium, beside an empty page: in turns, each in a browser that has nothing of it yet. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { type Browser, chromium } from "playwright-core";
import type { PageLoad, PageSample } from "./console-results.ts";

export interface PageOptions {
  /** Of the page. */
  readonly url: string;
  readonly pairs: number;
}

/** Milliseconds. */
const PAUSE = 500;

/** Shows what {@link PROBE} waits for, and nothing else. */
const EMPTY_PAGE = `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>Empty</title><link rel="icon" href="data:,"></head>
  <body><dl class="tiles"></dl></body>
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
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(EMPTY_PAGE);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = Object(server.address()) as AddressInfo;
  const emptyUrl = `http://127.0.0.1:${port}/`;
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  });
  try {
    // The first ones start parts of the browser.
    for (const first of [emptyUrl, url]) await load(browser, first);
    const page: PageLoad[] = [];
    const empty: PageLoad[] = [];
    for (let pair = 0; pair < pairs; pair++) {
      const both = [
        async () => page.push(await load(browser, url)),
        async () => empty.push(await load(browser, emptyUrl)),
      ];
      // Who is first changes: what gets slower or faster meanwhile is nobody's.
      for (const take of pair % 2 === 0 ? both : both.reverse()) await take();
    }
    return { chromium: browser.version(), page, empty };
  } finally {
    await browser.close();
    server.close();
  }
}

async function load(browser: Browser, url: string): Promise<PageLoad> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  try {
    const page = await context.newPage();
    await page.addInitScript(PROBE);
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
