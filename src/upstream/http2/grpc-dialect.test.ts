import assert from "node:assert/strict";
import { test } from "node:test";
import { Rcode } from "../../dns/numbers.ts";
import { UpstreamRequest } from "../exchange/exchange.ts";
import { GrpcDialect } from "./grpc-dialect.ts";

/** Octets of pending queries are in Node's pool, as a `Buffer`, whose `slice` does not copy. */
class PooledRequest extends UpstreamRequest {
  readonly bytes: Uint8Array = Buffer.from("04d20110000100000000000001610000010001", "hex");
  readonly questionEnd: number = this.bytes.length;
  readonly length: number = this.bytes.length;

  answered(): void {
    assert.fail("nothing is sent");
  }

  failed(): void {
    assert.fail("nothing is sent");
  }
}

test("the status NotFound makes a reply, and does not change the query", () => {
  const request = new PooledRequest();
  const asked = Uint8Array.from(request.bytes);
  const reader = new GrpcDialect(undefined, "ns.example").reader(request);
  reader.tail({ "grpc-status": "5" });
  const reply = reader.message(new Uint8Array(0));
  assert.ok(reply instanceof Uint8Array);
  assert.equal((reply[3] ?? 0) & 0xf, Rcode.NXDOMAIN);
  assert.deepEqual(Uint8Array.from(request.bytes), asked);
});
