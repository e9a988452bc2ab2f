import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import type { FirstView, HistoryPoint } from "./api-types.ts";
import { PageFiles } from "./page-files.ts";

const POINT: HistoryPoint = {
  time: 1_700_000_000_000,
  queries: 50,
  nxdomain: 0,
  unanswered: 0,
  errors: 0,
  hits: 0,
  p50: 0.2,
  p99: 3,
};

function makeView(hostname: string, points: readonly HistoryPoint[] = []): FirstView {
  return {
    session: { readNeedsToken: false, hasToken: false, signedIn: false, csrf: "" },
    now: {
      time: 1_700_000_060_000,
      version: "1.2.3",
      hostname,
      startedAt: 1_700_000_000_000,
      threads: 2,
      rate: 123.4,
      minute: {
        queries: 2,
        rcodes: { NOERROR: 2 },
        types: { A: 2 },
        hitRatio: null,
        p50: 0.25,
        p90: 1,
        p99: 3,
      },
      upstreams: [],
      clusters: [],
      memory: { resident: 64 * 2 ** 20, heap: 2 ** 24, limit: null },
      pauses: { p99: 1, longest: 7 },
      shed: 0,
      ...{ notReady: [], troubles: [], servedStale: 0 },
      sampling: { interval: 1, missed: 0 },
      history: { step: 5, points },
    },
  };
}

async function documentWith(view: FirstView | undefined): Promise<{ text: string; headers: Headers }> {
  const files = new PageFiles();
  const server = createServer((request, response) => void files.answerDocument(view, request, response));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const place = server.address();
  const port = typeof place === "object" && place !== null ? place.port : 0;
  try {
    const response = await fetch(`http://127.0.0.1:${port}/`);
    return { text: await response.text(), headers: response.headers };
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

function viewIn(text: string): string {
  const attribute = /<div id="first-view" data-view=(?:'([^']*)'|"([^"]*)") hidden><\/div>/.exec(text);
  return (attribute?.[1] ?? attribute?.[2])?.replaceAll("&#39;", "'").replaceAll("&amp;", "&") ?? "none";
}

test("the document has in it what the page shows first, whatever stands there", async () => {
  const view = makeView(`'"><script>alert(1)</script>&amp;&#39; $& $' $1`, [POINT, POINT, POINT]);
  const { text, headers } = await documentWith(view);
  assert.deepEqual(JSON.parse(viewIn(text)), view);
  assert.equal(headers.get("cache-control"), "no-store");
  assert.ok(
    text.includes("<span>'&quot;>&lt;script>alert(1)&lt;/script>&amp;amp;&amp;#39; $&amp; $' $1</span>"),
  );
});

test("the document shows the figures without its script", async () => {
  const { text } = await documentWith(makeView("a <host>", [POINT, { ...POINT, queries: 100 }, POINT]));
  const [, shown = ""] = /<div id="app" hidden>(.*)<\/div>\s*<noscript>/s.exec(text) ?? [];
  for (const part of [
    '<p class="brand">Portolan <span>a &lt;host></span></p>',
    '<a href="#/now" aria-current="page">Overview</a><',
    "<dt>Queries</dt><dd><strong>123/s</strong> <span>2 in the last minute</span></dd>",
    "<strong>250 µs</strong>",
    '<meter min="0" max="2" value="2" aria-label="NOERROR: 100 %"></meter>',
    '<path class="line colour-1" d="M0 120l1440-114"></path>',
  ])
    assert.ok(shown.includes(part), `${part} is not in ${shown}`);
});

test("the document shows what is wrong before anything else", async () => {
  const view = makeView("host");
  const trouble = {
    plugin: "secondary",
    block: "a.test.:53",
    subject: "a.test.",
    reason: "not transferred <yet>",
  };
  const { text } = await documentWith({
    ...view,
    now: { ...view.now, notReady: ["kubernetes"], troubles: [trouble] },
  });
  const [, shown = ""] = /<div id="app" hidden>(.*)<\/div>\s*<noscript>/s.exec(text) ?? [];
  assert.match(
    shown,
    /<h2 id="troubles">Problems<\/h2><p class="bad">Not ready: kubernetes\. .*<strong>secondary a\.test\.<\/strong> not transferred &lt;yet> <small>a\.test\.:53<\/small>.*<dl class="tiles">/s,
  );
  assert.doesNotMatch((await documentWith(view)).text, /Problems/);
});

test("a long one is compressed", async () => {
  const points = Array.from({ length: 720 }, (_, at) => ({
    ...POINT,
    time: POINT.time + 5_000 * at,
    queries: 1_000 + ((at * 7) % 50),
  }));
  const view = makeView("host", points);
  const { text, headers } = await documentWith(view);
  assert.deepEqual(JSON.parse(viewIn(text)), view);
  assert.equal(headers.get("content-encoding"), "gzip");
  assert.ok(Number(headers.get("content-length")) < text.length / 3);
});

test("for a client without read access the document has no data", async () => {
  const { text } = await documentWith(undefined);
  assert.equal(viewIn(text), "");
  assert.match(text, /<div id="app" hidden><\/div>/);
});
