import assert from "node:assert/strict";
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { describe, test } from "node:test";
import { Access } from "./access.ts";
import { RequestError } from "./request-error.ts";

const TOKEN = "a token that is hard to guess";
const HOUR = 3_600_000;

interface Headers {
  readonly [name: string]: string;
}

function request(headers: Headers = {}, address = "127.0.0.1"): IncomingMessage {
  const socket = new Socket();
  Object.defineProperty(socket, "remoteAddress", { value: address });
  const made = new IncomingMessage(socket);
  Object.assign(made.headers, { host: "127.0.0.1:8184", "content-type": "application/json" }, headers);
  return made;
}

function makeAccess(options: { isLoopback?: boolean; token?: string | undefined } = {}) {
  let now = 0;
  const { isLoopback = true } = options;
  const token = "token" in options ? options.token : TOKEN;
  const access = new Access({ token: () => token, isLoopback, now: () => now });
  return { access, pass: (milliseconds: number) => (now += milliseconds) };
}

function refuses(status: number, action: () => unknown): void {
  assert.throws(action, (error) => error instanceof RequestError && error.status === status);
}

function signedIn(access: Access, host = "127.0.0.1:8184"): Headers {
  const cookie = access.signIn(request({ host }), TOKEN);
  const sent = cookie.split(";", 1)[0] ?? "";
  return { host, cookie: sent, "portolan-csrf": access.view(request({ host, cookie: sent })).csrf };
}

describe("a session", () => {
  test("ends after twelve hours", () => {
    const { access, pass } = makeAccess();
    const headers = signedIn(access);
    pass(12 * HOUR - 1);
    access.checkAction(request(headers));
    pass(1);
    refuses(401, () => access.checkAction(request(headers)));
  });

  test("who reads on and on with it may do so no longer than it lasts", () => {
    const { access, pass } = makeAccess({ isLoopback: false });
    const mayRead = access.checkRead(request(signedIn(access)));
    const byToken = access.checkRead(request({ authorization: `Bearer ${TOKEN}` }));
    pass(12 * HOUR - 1);
    assert.deepEqual([mayRead(), byToken()], [true, true]);
    pass(1);
    assert.deepEqual([mayRead(), byToken()], [false, true]);
    const headers = signedIn(access);
    const beforeSignOut = access.checkRead(request(headers));
    access.signOut(request(headers));
    assert.equal(beforeSignOut(), false);
    const { access: free } = makeAccess();
    assert.equal(free.checkRead(request())(), true);
  });

  test("ends with signing out", () => {
    const { access } = makeAccess();
    const headers = signedIn(access);
    assert.match(access.signOut(request(headers)), /^portolan_session_8184=; .*Max-Age=0$/);
    refuses(401, () => access.checkAction(request(headers)));
  });

  test("acts with its own header alone", () => {
    const { access } = makeAccess();
    const { cookie = "", ...headers } = signedIn(access);
    const other = signedIn(access);
    refuses(403, () => access.checkAction(request({ cookie })));
    refuses(403, () =>
      access.checkAction(request({ cookie, "portolan-csrf": other["portolan-csrf"] ?? "" })),
    );
    refuses(401, () => access.checkAction(request(headers)));
    access.checkAction(request({ cookie, ...headers }));
  });

  test("of one port is none of another", () => {
    const { access } = makeAccess();
    const one = signedIn(access, "127.0.0.1:8184");
    const other = signedIn(access, "127.0.0.1:8185");
    const both = `${one.cookie}; ${other.cookie}`;
    access.checkAction(request({ ...one, cookie: both }));
    access.checkAction(request({ ...other, cookie: both }));
    refuses(403, () => access.checkAction(request({ ...other, cookie: both, host: "127.0.0.1:8184" })));
  });

  test("there are at most sixty-four: the oldest is dropped", () => {
    const { access } = makeAccess();
    const first = signedIn(access);
    const others = Array.from({ length: 64 }, () => signedIn(access));
    refuses(401, () => access.checkAction(request(first)));
    for (const each of others) access.checkAction(request(each));
  });
});

describe("a token", () => {
  test("is asked for by actions always, and by reading where others can come in", () => {
    const open = makeAccess({ isLoopback: false }).access;
    const host = "dns.example:8184";
    refuses(401, () => open.checkRead(request({ host })));
    open.checkRead(request({ host, authorization: `Bearer ${TOKEN}` }));
    const { access } = makeAccess();
    access.checkRead(request());
    refuses(401, () => access.checkAction(request()));
    access.checkAction(request({ authorization: `bearer ${TOKEN}` }));
  });

  test("without a token there are no actions and no sign-in", () => {
    const { access } = makeAccess({ token: undefined });
    refuses(403, () => access.checkAction(request({ authorization: "Bearer undefined" })));
    refuses(403, () => access.signIn(request(), "undefined"));
  });

  test("a client that guesses is locked out for a minute, and no other", () => {
    const { access, pass } = makeAccess();
    for (let count = 0; count < 10; count++)
      refuses(401, () => access.signIn(request({}, "10.0.0.1"), `${TOKEN}${count}`));
    refuses(429, () => access.signIn(request({}, "10.0.0.1"), TOKEN));
    access.signIn(request({}, "10.0.0.2"), TOKEN);
    pass(60_001);
    access.signIn(request({}, "10.0.0.1"), TOKEN);
  });
});

describe("requests of other pages", () => {
  for (const [title, status, headers] of [
    ["a name that was made to point here", 403, { host: "evil.example" }],
    ["no host", 400, { host: "" }],
    ["another origin", 403, { origin: "http://evil.example" }],
    ["no origin that can be told", 403, { origin: "null" }],
    ["another port of this machine", 403, { origin: "http://127.0.0.1:9999" }],
    ["another site", 403, { "sec-fetch-site": "cross-site" }],
    ["another part of this site", 403, { "sec-fetch-site": "same-site" }],
  ] as const) {
    test(`are refused: ${title}`, () => {
      const { access } = makeAccess();
      refuses(status, () => access.checkRead(request(headers)));
      refuses(status, () => access.signIn(request(headers), TOKEN));
      refuses(status, () => access.checkAction(request({ ...headers, authorization: `Bearer ${TOKEN}` })));
    });
  }

  test("those of this page are not", () => {
    const { access } = makeAccess();
    for (const headers of [
      {},
      { origin: "http://127.0.0.1:8184" },
      { "sec-fetch-site": "same-origin" },
      { host: "[::1]:8184" },
    ])
      access.checkRead(request(headers));
  });

  test("a form is refused, whatever it contains", () => {
    const { access } = makeAccess();
    const authorization = `Bearer ${TOKEN}`;
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "", "application/json-patch+json"])
      refuses(415, () => access.checkAction(request({ authorization, "content-type": type })));
    access.checkAction(request({ authorization, "content-type": "application/json; charset=utf-8" }));
  });
});
