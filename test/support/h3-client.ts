/** The least of an HTTP/3 client (RFC 9114), written out by hand so that it shares no coder with the server. */
import type { QuicCall } from "./quic-client.ts";

export interface H3Response {
  readonly status: number;
  /** The octets of the header block. */
  readonly header: Buffer;
  readonly body: Buffer;
}

/** `:path` as a literal behind its name in the static table, without Huffman's code. */
function literal(head: readonly number[], text: string): Buffer {
  const octets = Buffer.from(text, "latin1");
  const length = octets.length < 127 ? [octets.length] : [127, ...continued(octets.length - 127)];
  return Buffer.concat([Buffer.from([...head, ...length]), octets]);
}

function continued(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...continued(value >>> 7)];
}

export function h3Frame(type: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head[0] = type;
  head.writeUInt32BE(0x8000_0000 + payload.length, 1);
  return Buffer.concat([head, payload]);
}

/** Fields of a request: GET (17) or POST (20), https, the path, an authority, and an unknown one. */
export function requestFields(
  method: "GET" | "POST" | "PUT",
  path: string,
  more: Readonly<Record<string, string>> = {},
): Buffer {
  const methods = { GET: 17, POST: 20, PUT: 21 };
  return Buffer.concat([
    Buffer.from([0, 0, 0xc0 | methods[method], 0xc0 | 23]),
    literal([0x51], path),
    literal([0x50], "example.org"),
    literal([0x20 | 3, ...Buffer.from("x-a")], "b"),
    ...Object.entries(more).map(([name, value]) =>
      // A name of seven octets or more needs a second one for its length.
      literal([0x27, name.length - 7, ...Buffer.from(name)], value),
    ),
  ]);
}

export function request(method: "GET" | "POST" | "PUT", path: string, body?: Uint8Array): Buffer {
  const header = h3Frame(1, requestFields(method, path));
  return body === undefined ? header : Buffer.concat([header, h3Frame(0, body)]);
}

/** The settings of a client, on the stream that begins with them. */
export function settings(call: QuicCall): void {
  call.open(Buffer.from([0, 4, 0]), false, true);
}

const STATUSES: ReadonlyMap<number, number> = new Map([
  [25, 200],
  [27, 404],
  [67, 400],
  [71, 500],
]);

export async function fetchH3(call: QuicCall, octets: Uint8Array): Promise<H3Response | undefined> {
  const heard = await call.ask(octets);
  if (heard === undefined) return undefined;
  const [header, body] = [1, 0].map((type) =>
    Buffer.concat(
      framesIn(heard)
        .filter((each) => each.type === type)
        .map(({ payload }) => payload),
    ),
  );
  if (header === undefined || body === undefined) return undefined;
  const index = (header[2] ?? 0) & 0x3f;
  return { status: STATUSES.get(index < 63 ? index : 63 + (header[3] ?? 0)) ?? 0, header, body };
}

export function framesIn(octets: Buffer): { readonly type: number; readonly payload: Buffer }[] {
  const frames = [];
  let at = 0;
  const integer = (): number => {
    const length = 1 << ((octets[at] ?? 0) >> 6);
    let value = (octets[at] ?? 0) & 0x3f;
    for (let index = 1; index < length; index++) value = value * 256 + (octets[at + index] ?? 0);
    at += length;
    return value;
  };
  while (at < octets.length) {
    const [type, length] = [integer(), integer()];
    frames.push({ type, payload: octets.subarray(at, at + length) });
    at += length;
  }
  return frames;
}
