import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { PageFiles } from "./page-files.ts";

async function documentWith(view: object | undefined): Promise<{ text: string; headers: Headers }> {
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
  const attribute = /<div id="app" data-first-view='([^']*)'><\/div>/.exec(text)?.[1];
  return attribute?.replaceAll("&#39;", "'").replaceAll("&amp;", "&") ?? "none";
}

test("the document has in it what the page shows first, whatever stands there", async () => {
  const view = { text: `'"><script>alert(1)</script>&amp;&#39; $& $' $1`, more: [1, null] };
  const { text, headers } = await documentWith(view);
  assert.deepEqual(JSON.parse(viewIn(text)), view);
  assert.equal(headers.get("cache-control"), "no-store");
  assert.equal(headers.get("content-encoding"), null);
});

test("a long one is compressed", async () => {
  const view = { points: Array.from({ length: 720 }, (_, time) => ({ time, queries: 1_000 + time })) };
  const { text, headers } = await documentWith(view);
  assert.deepEqual(JSON.parse(viewIn(text)), view);
  assert.equal(headers.get("content-encoding"), "gzip");
  assert.ok(Number(headers.get("content-length")) < text.length / 3);
});

test("for who may not read it there is nothing in the document", async () => {
  assert.equal(viewIn((await documentWith(undefined)).text), "");
});
