/** The cost of reading and writing messages. Run with `node bench/in-process/wire.ts`. */
import { bench, do_not_optimize, group, run } from "mitata";
import { decodeMessage, EncodedSections, encodeMessage, makeQuery, Name } from "../../src/dns/index.ts";
import { Query } from "../../src/plugin/index.ts";
import { makeTestQuery, records } from "../../src/plugin/testing.ts";
import { writeReply } from "../../src/server/serving/reply-writer.ts";

const NAME = "storefront.shop.svc.cluster.local.";
const plain = makeTestQuery({ name: NAME });
const withEdns = makeTestQuery({ name: NAME, edns: { udpSize: 1232 } });
const answer = records(`${NAME} 30 IN A 192.0.2.1`, `${NAME} 30 IN A 192.0.2.2`, `${NAME} 30 IN A 192.0.2.3`);
const sections = { answer, authority: [], additional: [] };
const message = { ...makeQuery({ name: Name.parse(NAME), type: 1 }), answer };
const wire = encodeMessage(message);
const encoded = plain.reply({ answer });
// Records are encoded on the first read.
do_not_optimize(encoded.encoded);
const target = new Uint8Array(4096);
const buffers = { buffer: () => target };

group("a query", () => {
  bench("view over it", () => do_not_optimize(Query.read(plain.bytes, plain.length, plain)));
  bench("view over it, with EDNS", () =>
    do_not_optimize(Query.read(withEdns.bytes, withEdns.length, withEdns)),
  );
  bench("view and name", () => do_not_optimize(Query.read(plain.bytes, plain.length, plain)?.name));
  bench("decoded as a whole", () => do_not_optimize(decodeMessage(plain.bytes)));
});

group("a reply of three addresses", () => {
  bench("records encoded", () => do_not_optimize(EncodedSections.encode(plain.question, sections)));
  bench("encoded sections written", () => do_not_optimize(writeReply(plain, encoded, buffers)));
  bench("encoded as a whole", () => do_not_optimize(encodeMessage(message)));
  bench("scanned", () => do_not_optimize(EncodedSections.scan(wire, wire.length)));
  bench("decoded as a whole", () => do_not_optimize(decodeMessage(wire)));
});

await run();
