/** A session that ends while a client reads with it, or is about to act: over the API, and in the page. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { after, before, describe, test } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import type { SessionView } from "../../src/console/api-types.ts";
import { Portolan } from "../support/portolan.ts";

const TOKEN = "a token that is hard to guess";

let open: Portolan;
let local: Portolan;

before(async () => {
  const start = (host: string): Promise<Portolan> =>
    Portolan.start(
      (port) => `.:${port("dns")} {
    bind 127.0.0.1
    console ${host}:${port("console")} {
        token_file token
    }
    whoami
}
`,
      { files: { token: TOKEN } },
    );
  [open, local] = await Promise.all([start(""), start("127.0.0.1")]);
});
after(async () => {
  await open?.[Symbol.asyncDispose]();
  await local?.[Symbol.asyncDispose]();
});

interface Question {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
}

async function send(
  server: Portolan,
  { method = "GET", path, headers, body }: Question,
): Promise<IncomingMessage> {
  const sent = request({
    host: "127.0.0.1",
    port: server.portOf("console"),
    path,
    method,
    headers: { "content-type": "application/json", ...headers },
  });
  sent.end(body && JSON.stringify(body));
  const [response]: IncomingMessage[] = await once(sent, "response");
  assert.ok(response);
  return response;
}

/** @returns the cookie */
async function signIn(server: Portolan): Promise<string> {
  const response = await send(server, { method: "POST", path: "/api/v1/session", body: { token: TOKEN } });
  const chunks: Buffer[] = await response.toArray();
  const { signedIn }: SessionView = JSON.parse(Buffer.concat(chunks).toString());
  assert.ok(signedIn);
  return response.headers["set-cookie"]?.[0]?.split(";", 1)[0] ?? "";
}

async function signOut(server: Portolan, cookie: string): Promise<void> {
  (await send(server, { method: "DELETE", path: "/api/v1/session", headers: { cookie } })).resume();
}

test("who follows the events is sent nothing more, and others are", async () => {
  const [ending, staying] = [await signIn(open), await signIn(open)];
  const path = "/api/v1/events?streams=now";
  const follow = (headers: Record<string, string>): Promise<IncomingMessage> => send(open, { path, headers });
  const ended = await follow({ cookie: ending });
  const others = [
    await follow({ cookie: staying }),
    await follow({ authorization: `Bearer ${TOKEN}`, cookie: ending }),
  ];
  assert.equal(ended.statusCode, 200);
  await signOut(open, ending);
  ended.resume();
  await once(ended, "end", { signal: AbortSignal.timeout(10_000) });
  for (const other of others) {
    assert.equal(other.statusCode, 200);
    // The events so far, and then more.
    while (other.read() !== null);
    await once(other, "readable", { signal: AbortSignal.timeout(10_000) });
    assert.equal(other.readableEnded, false);
    other.destroy();
  }
  assert.equal((await follow({ cookie: ending })).statusCode, 401);
});

describe("the page", { skip: skipWithout("chromium") }, () => {
  let browser: Browser;

  before(async () => {
    browser = await chromium.launch({
      executablePath: "/usr/bin/chromium",
      args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
    });
  });
  after(() => browser?.close());

  async function show(server: Portolan, name: string): Promise<Page> {
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${server.portOf("console")}/#/${name}`);
    return page;
  }

  async function signInAt(page: Page): Promise<void> {
    await page.getByLabel("Token").fill(TOKEN);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Sign out" }).waitFor();
    await hasFocus(page, "MAIN");
  }

  /** After the form and its button are gone, keyboard users keep their place instead of starting again at the top. */
  async function hasFocus(page: Page, tag: string): Promise<void> {
    await page.waitForFunction(`document.activeElement?.tagName === ${JSON.stringify(tag)}`);
  }

  /** Of the session of the page. */
  async function cookieOf(page: Page, server: Portolan): Promise<string> {
    const wanted = `portolan_session_${server.portOf("console")}`;
    const found = (await page.context().cookies()).find(({ name }) => name === wanted);
    assert.ok(found);
    return `${found.name}=${found.value}`;
  }

  test("asks for the token where reading needs it, and shows all again after", async () => {
    const page = await show(open, "now");
    await page.getByText("signed out").waitFor();
    await signInAt(page);
    await page.waitForSelector(".connection.live");
    await page.getByText("in the last minute").waitFor();
    await signOut(open, await cookieOf(page, open));
    await page.getByLabel("Token").waitFor();
    await page.getByText("signed out").waitFor();
    await signInAt(page);
    await page.waitForSelector(".connection.live");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("signed out").waitFor();
    await hasFocus(page, "MAIN");
    assert.equal(await page.locator(".tiles").count(), 0);
    await page.context().close();
  });

  test("offers to sign in again where an action is refused for it", async () => {
    const page = await show(local, "configuration");
    await page.getByText("Sign in to act").click();
    await signInAt(page);
    await signOut(local, await cookieOf(page, local));
    await page.getByLabel("Level of the log").selectOption("warning");
    await page.getByText("actions need the token: sign in first").waitFor();
    await page.getByText("Sign in to act").waitFor();
    assert.equal(await page.getByRole("button", { name: "Sign out" }).count(), 0);
    assert.equal(await page.locator(".connection.live").count(), 1);
    await page.context().close();
  });
});
