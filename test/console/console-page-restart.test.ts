/** The page of the console while its server is away, and where all places in the stream are taken. */
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, test } from "node:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { skipWithout } from "../../scripts/lib/system-tools.mjs";
import { ask } from "../support/dns-client.ts";
import { Portolan, portolan } from "../support/portolan.ts";
import { untilTrue } from "../support/until-true.ts";

describe("the page", { skip: skipWithout("chromium") }, () => {
  let server: Portolan;
  let browser: Browser;
  let page: Page;

  before(async () => {
    server = await Portolan.start(
      (port) => `.:${port("dns")} {
    bind 127.0.0.1
    console 127.0.0.1:${port("console")}
    whoami
}
`,
    );
    browser = await chromium.launch({
      executablePath: "/usr/bin/chromium",
      args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
    });
    page = await browser.newPage();
  });
  after(async () => {
    await browser?.close();
    await server?.[Symbol.asyncDispose]();
  });

  function shows(name: string): Promise<void> {
    return untilTrue(async () => {
      if ((await page.getByText(name).count()) === 0) await ask(server, name);
      return (await page.getByText(name).count()) > 0;
    });
  }

  const open = async (): Promise<void> => {
    await page.goto(`http://127.0.0.1:${server.portOf("console")}/#/queries`);
  };

  test("gets a place in the stream once one is free", async () => {
    const followers = Array.from({ length: 24 }, () =>
      request({ port: server.portOf("console"), path: "/api/v1/events" }),
    );
    const answered = followers.map(
      (follower) => new Promise((resolve) => follower.on("error", () => undefined).once("response", resolve)),
    );
    for (const follower of followers) follower.end();
    await Promise.all(answered);
    await open();
    await page.waitForSelector(".connection.lost");
    for (const follower of followers) follower.destroy();
    await page.waitForSelector(".connection.live");
    await shows("free.example.");
  });

  test("waits for its server, and goes on with what it had", async () => {
    await open();
    await page.waitForSelector(".connection.live");
    await shows("before.example.");
    await server.stop();
    await page.getByText("Waiting for the server.").waitFor();
    await page.getByRole("link", { name: "Configuration" }).click();
    await page.getByText("the server does not answer").waitFor();
    await page.getByRole("link", { name: "Queries" }).click();
    await using again = portolan(["-conf", "Corefile"], { cwd: server.folder });
    await again.waitForOutput(/^\w+\/\w+, node\d/m);
    await page.waitForSelector(".connection.live");
    await shows("after.example.");
    assert.ok((await page.getByText("before.example.").count()) > 0);
  });

  test("asks for the token again when its server has started anew", async () => {
    await using guarded = await Portolan.start(
      (port) => `.:${port("dns")} {
    bind 127.0.0.1
    console :${port("console")} {
        token_file token
    }
    whoami
}
`,
      { files: { token: "a token of the console\n" } },
    );
    const signIn = async (): Promise<void> => {
      await page.getByLabel("Token").fill("a token of the console");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.waitForSelector(".connection.live");
    };
    await page.goto(`http://127.0.0.1:${guarded.portOf("console")}/#/now`);
    await signIn();
    await page.getByText("in the last minute").waitFor();
    await guarded.stop();
    await page.waitForSelector(".connection.lost");
    await using again = portolan(["-conf", "Corefile"], { cwd: guarded.folder });
    await again.waitForOutput(/^\w+\/\w+, node\d/m);
    await signIn();
    await page.getByText("in the last minute").waitFor();
  });
});
