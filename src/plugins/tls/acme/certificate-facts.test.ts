import assert from "node:assert/strict";
import { test } from "node:test";
import { bitString, integer, objectIdentifier, sequence, Tag, tagged } from "../../../lib/net/der.ts";
import { renewalIdentifier } from "./certificate-facts.ts";

const EXTENSIONS = 0xa3;
const KEY_IDENTIFIER = 0x80;

/** A certificate that contains only what identifies it. */
function certificate(serial: Buffer, extensions: readonly Buffer[]): Buffer {
  const toBeSigned = sequence(
    tagged(0xa0, integer(Buffer.from([2]))),
    integer(serial),
    sequence(),
    tagged(EXTENSIONS, sequence(...extensions)),
  );
  return sequence(toBeSigned, sequence(), bitString(Buffer.alloc(64)));
}

test("a renewal identifier consists of issuer and serial number", () => {
  // The example of RFC 9773 section 4.1.
  const key = Buffer.from("69885b6b87464041e1b37b847ba0ae2cde01c8d4", "hex");
  const issuer = sequence(
    objectIdentifier("551d23"),
    tagged(Tag.OCTET_STRING, sequence(tagged(KEY_IDENTIFIER, key))),
  );
  const usage = sequence(
    objectIdentifier("551d0f"),
    tagged(Tag.OCTET_STRING, Buffer.from("03020780", "hex")),
  );
  const serial = Buffer.from("0087654321", "hex");
  assert.equal(
    renewalIdentifier(certificate(serial, [usage, issuer])),
    "aYhba4dGQEHhs3uEe6CuLN4ByNQ.AIdlQyE",
  );
  assert.equal(renewalIdentifier(certificate(serial, [usage])), undefined);
});

test("invalid certificates have no identifier", () => {
  for (const hex of ["", "30", "3082", "30840000000100", "3003020101", "30820fff02", "ff".repeat(40)])
    assert.equal(renewalIdentifier(Buffer.from(hex, "hex")), undefined, hex);
});
