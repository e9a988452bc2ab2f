/** gRPC messages that contain a `coredns.dns.DnsPacket`: `message DnsPacket { bytes msg = 1; }`. */

/** Flag and length in front of each message. */
export const PREFIX_OCTETS = 5;
/** The longest packet: a DNS message and the head of its field. */
export const MAX_PACKET = 65_539;
const FIELD_1 = 0x0a;

/** The reason why a message cannot be read. */
export class GrpcProblem {
  /** A status code of gRPC. */
  readonly status: number;
  readonly message: string;

  constructor(status: number, message: string) {
    this.status = status;
    this.message = message;
  }
}

/** The status codes used here (gRPC, "Status codes and their use in gRPC"). */
export const GrpcStatus = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  UNAUTHENTICATED: 16,
} as const;

const STATUS_NAMES = [
  "OK",
  "Canceled",
  "Unknown",
  "InvalidArgument",
  "DeadlineExceeded",
  "NotFound",
  "AlreadyExists",
  "PermissionDenied",
  "ResourceExhausted",
  "FailedPrecondition",
  "Aborted",
  "OutOfRange",
  "Unimplemented",
  "Internal",
  "Unavailable",
  "DataLoss",
  "Unauthenticated",
];

/** As gRPC for Go spells it; `Code(99)` for an unknown one. */
export function statusName(status: number): string {
  return STATUS_NAMES[status] ?? `Code(${status})`;
}

/** Decodes `grpc-message`, which percent-encodes characters that a header cannot contain. */
export function textOfStatus(text: string | readonly string[] | undefined): string {
  const reason = String(text ?? "");
  try {
    return decodeURIComponent(reason);
  } catch {
    return reason;
  }
}

/** Encodes `grpc-message`: printable ASCII as is, everything else percent-encoded. */
export function statusText(text: string): string {
  return text.replace(/[^ -$&-~]/gu, (character) =>
    Buffer.from(character).toString("hex").replace(/../g, "%$&").toUpperCase(),
  );
}

/** The DNS message of a packet, prefix included. */
export function readPacket(octets: Uint8Array): Uint8Array | GrpcProblem {
  if (octets.length < PREFIX_OCTETS) return new GrpcProblem(GrpcStatus.INTERNAL, "unexpected EOF");
  if (octets[0] !== 0)
    return new GrpcProblem(
      GrpcStatus.UNIMPLEMENTED,
      "grpc: Decompressor is not installed for the encoding of the message",
    );
  const length = lengthOf(octets);
  if (octets.length !== PREFIX_OCTETS + length) return new GrpcProblem(GrpcStatus.INTERNAL, "unexpected EOF");
  return readFields(octets.subarray(PREFIX_OCTETS));
}

/** Octets of the message behind a prefix. */
export function lengthOf(prefix: Uint8Array): number {
  return new DataView(prefix.buffer, prefix.byteOffset).getUint32(1);
}

/** The last of repeated fields counts, and unknown fields are skipped (Protocol Buffers, "Encoding"). */
function readFields(octets: Uint8Array): Uint8Array | GrpcProblem {
  let message: Uint8Array = NO_OCTETS;
  let at = 0;
  const broken = new GrpcProblem(GrpcStatus.INTERNAL, "grpc: error unmarshalling request");
  const varint = (): number => {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const octet = octets[at++];
      if (octet === undefined) return -1;
      value += (octet & 0x7f) * 2 ** shift;
      if (octet < 0x80) return value;
    }
    return -1;
  };
  while (at < octets.length) {
    const tag = varint();
    const wireType = tag % 8;
    if (tag < 8) return broken;
    if (wireType === 0) {
      if (varint() < 0) return broken;
      continue;
    }
    const length = wireType === 2 ? varint() : wireType === 1 ? 8 : wireType === 5 ? 4 : -1;
    if (length < 0 || at + length > octets.length) return broken;
    if (tag === FIELD_1) message = octets.subarray(at, at + length);
    at += length;
  }
  return message;
}

const NO_OCTETS = new Uint8Array(0);

/** Octets in front of a DNS message of this length: the prefix of gRPC, the field, and its length. */
export function writePacketHead(length: number): Uint8Array {
  const head = [0, 0, 0, 0, 0, FIELD_1];
  for (let rest = length; ; rest >>>= 7) {
    if (rest < 0x80) {
      head.push(rest);
      break;
    }
    head.push((rest & 0x7f) | 0x80);
  }
  const octets = Uint8Array.from(head);
  new DataView(octets.buffer).setUint32(1, head.length - PREFIX_OCTETS + length);
  return octets;
}
