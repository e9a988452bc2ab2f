import assert from "node:assert/strict";
import { test } from "node:test";
import { judgeOpenSsl, QuicUnavailable } from "./availability.ts";

for (const version of ["3.5.9", "3.5.10", "3.6.0", "4.0.0", "3.5.9+quic"]) {
  test(`${version} is accepted`, () => {
    assert.equal(judgeOpenSsl(version), undefined);
  });
}

for (const version of ["3.5.7", "3.5.8"]) {
  test(`${version} gets a warning`, () => {
    assert.match(judgeOpenSsl(version) ?? "", new RegExp(`OpenSSL ${version}, which has known faults`));
  });
}

for (const [version, reason] of [
  ["3.5.6", /this Node has 3\.5\.6: update Node/],
  ["3.0.17+quic", /this Node has 3\.0\.17\+quic/],
  ["1.1.1w", /this Node has/],
  ["", /this Node has none/],
  [undefined, /this Node has none/],
] as const) {
  test(`${version} is refused`, () => {
    assert.throws(
      () => judgeOpenSsl(version),
      (error) => error instanceof QuicUnavailable && reason.test(error.message),
    );
  });
}
