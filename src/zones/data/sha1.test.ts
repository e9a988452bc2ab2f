import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { Sha1 } from "./sha1.ts";

test("every length has OpenSSL's digest, whatever was hashed before", () => {
  const sha1 = new Sha1();
  for (let length = 0; length <= 510; length++) {
    const message = Uint8Array.from({ length }, (_, index) => (index * 167 + length * 31) & 0xff);
    sha1.message.set(message);
    sha1.hash(length);
    assert.equal(Buffer.from(sha1.digest).toString("hex"), createHash("sha1").update(message).digest("hex"));
  }
});
