/** C compilers agree with our numbers. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import {
  ControlHeader,
  ERRNO_NAMES,
  epollEvent,
  IoVector,
  Linux,
  MessageHeader,
  PacketInfo4,
  PacketInfo6,
  SegmentLength,
  SocketAddress4,
  SocketAddress6,
} from "./layouts.ts";
import { SOCKET_ADDRESS_OCTETS, writeSocketAddress } from "./socket-address.ts";

const COMPILERS = [
  {
    command: "gcc",
    target: "this machine with glibc",
    arch: process.arch,
    debianPackages: "gcc and libc6-dev",
  },
  { command: "musl-gcc", target: "this machine with musl", arch: process.arch, debianPackages: "musl-tools" },
  {
    command: "aarch64-linux-gnu-gcc",
    target: "arm64 with glibc",
    arch: "arm64",
    debianPackages: "gcc-aarch64-linux-gnu and libc6-dev-arm64-cross",
  },
] as const;

/** A field in C, where it lies, and how many octets of it we read or write. */
type Field = readonly [name: string, offset: number, octets: number];

const STRUCTURES: readonly (readonly [type: string, octets: number, fields: readonly Field[]])[] = [
  [
    "struct mmsghdr",
    MessageHeader.OCTETS,
    [
      ["msg_hdr.msg_name", MessageHeader.NAME, 8],
      ["msg_hdr.msg_namelen", MessageHeader.NAME_LENGTH, 4],
      ["msg_hdr.msg_iov", MessageHeader.VECTORS, 8],
      ["msg_hdr.msg_iovlen", MessageHeader.VECTOR_COUNT, 8],
      ["msg_hdr.msg_control", MessageHeader.CONTROL, 8],
      ["msg_hdr.msg_controllen", MessageHeader.CONTROL_LENGTH, 8],
      ["msg_hdr.msg_flags", MessageHeader.FLAGS, 4],
      ["msg_len", MessageHeader.MESSAGE_LENGTH, 4],
    ],
  ],
  [
    "struct iovec",
    IoVector.OCTETS,
    [
      ["iov_base", IoVector.BASE, 8],
      ["iov_len", IoVector.LENGTH, 8],
    ],
  ],
  [
    "struct sockaddr_in",
    SocketAddress4.OCTETS,
    [
      ["sin_family", SocketAddress4.FAMILY, 2],
      ["sin_port", SocketAddress4.PORT, 2],
      ["sin_addr", SocketAddress4.ADDRESS, 4],
    ],
  ],
  [
    "struct sockaddr_in6",
    SocketAddress6.OCTETS,
    [
      ["sin6_family", SocketAddress6.FAMILY, 2],
      ["sin6_port", SocketAddress6.PORT, 2],
      ["sin6_addr", SocketAddress6.ADDRESS, 16],
      ["sin6_scope_id", SocketAddress6.SCOPE, 4],
    ],
  ],
  [
    "struct cmsghdr",
    ControlHeader.OCTETS,
    [
      ["cmsg_len", ControlHeader.LENGTH, 8],
      ["cmsg_level", ControlHeader.LEVEL, 4],
      ["cmsg_type", ControlHeader.TYPE, 4],
    ],
  ],
  [
    "struct in_pktinfo",
    12,
    [
      ["ipi_ifindex", PacketInfo4.INTERFACE - ControlHeader.OCTETS, 4],
      ["ipi_spec_dst", PacketInfo4.ADDRESS - ControlHeader.OCTETS, 4],
    ],
  ],
  [
    "struct in6_pktinfo",
    20,
    [
      ["ipi6_addr", PacketInfo6.ADDRESS - ControlHeader.OCTETS, 16],
      ["ipi6_ifindex", PacketInfo6.INTERFACE - ControlHeader.OCTETS, 4],
    ],
  ],
];

/** Where musl has an `int` and padding, and glibc and the kernel have 8 octets. */
const PADDED: ReadonlySet<string> = new Set(["msg_hdr.msg_iovlen", "msg_hdr.msg_controllen", "cmsg_len"]);

/** Types behind the words in which `libc.ts` declares its functions. */
const TYPES = [
  ["int", 4],
  ["unsigned int", 4],
  ["socklen_t", 4],
  ["size_t", 8],
  ["void *", 8],
  ["uintptr_t", 8],
] as const;

function assertions(arch: string): string[] {
  const equal = (expression: string, value: number): string =>
    `_Static_assert((${expression}) == ${value}, "${expression} is not ${value}");`;
  const lines = ["__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__"].map(
    (text) => `_Static_assert(${text}, "${text}");`,
  );
  for (const [type, octets, fields] of STRUCTURES) {
    lines.push(equal(`sizeof(${type})`, octets));
    for (const [at, [name, offset, size]] of fields.entries()) {
      lines.push(equal(`offsetof(${type}, ${name})`, offset));
      const sizeInC = `sizeof(((${type} *)0)->${name})`;
      if (!PADDED.has(name)) lines.push(equal(sizeInC, size));
      else lines.push(`_Static_assert(${sizeInC} == 4 || ${sizeInC} == ${size}, "${name}");`);
      // What we write of a field, padding included, is nothing of the next one.
      assert.ok(offset + size <= (fields[at + 1]?.[1] ?? octets), name);
    }
  }
  const event = epollEvent(arch);
  lines.push(equal("sizeof(struct epoll_event)", event.OCTETS));
  lines.push(equal("offsetof(struct epoll_event, events)", 0));
  lines.push(equal("offsetof(struct epoll_event, data)", event.DATA));
  lines.push(equal("CMSG_SPACE(sizeof(struct in_pktinfo))", PacketInfo4.SPACE));
  lines.push(equal("CMSG_SPACE(sizeof(struct in6_pktinfo))", PacketInfo6.SPACE));
  lines.push(equal("CMSG_SPACE(sizeof(uint16_t))", SegmentLength.SPACE));
  lines.push(equal("CMSG_LEN(sizeof(uint16_t))", SegmentLength.LENGTH));
  lines.push(equal("CMSG_LEN(0)", SegmentLength.VALUE));
  for (const [type, octets] of TYPES) lines.push(equal(`sizeof(${type})`, octets));
  for (const [name, value] of Object.entries(Linux)) lines.push(equal(name, value));
  for (const [value, name] of Object.entries(ERRNO_NAMES)) lines.push(equal(name, Number(value)));
  return lines;
}

const HEADERS = [
  "errno.h",
  "netinet/in.h",
  "netinet/udp.h",
  "stddef.h",
  "stdint.h",
  "sys/epoll.h",
  "sys/socket.h",
  "sys/uio.h",
];

/** @returns what the compiler has to say; nothing where all is well */
function compile(command: string, lines: readonly string[]): string {
  const source = ["#define _GNU_SOURCE", ...HEADERS.map((header) => `#include <${header}>`), ...lines, ""];
  const { error, status, stderr } = spawnSync(command, ["-std=c11", "-fsyntax-only", "-x", "c", "-"], {
    input: source.join("\n"),
    encoding: "utf8",
  });
  if (error !== undefined) return error.message;
  return status === 0 ? "" : `ended with ${status}: ${stderr}`;
}

function whyNot(command: string, debianPackages: string): string | undefined {
  if (process.platform !== "linux") return "the structures are those of Linux";
  if (compile(command, []) === "") return undefined;
  return `${command} (Debian packages ${debianPackages}) is not installed`;
}

for (const { command, target, arch, debianPackages } of COMPILERS) {
  test(`structures and numbers are those of ${target}`, (t) => {
    const reason = whyNot(command, debianPackages);
    if (reason !== undefined) {
      t.skip(reason);
      return;
    }
    assert.equal(compile(command, assertions(arch)), "");
    // It does look: a number that is wrong is found.
    assert.match(compile(command, ['_Static_assert(AF_INET6 == 11, "found");']), /found/);
  });
}

test("a socket address is laid out as told, up to the highest number of an interface", () => {
  const out = new Uint8Array(SOCKET_ADDRESS_OCTETS);
  const address = Uint8Array.from({ length: 16 }, (_, at) => 0xa0 + at);
  assert.equal(writeSocketAddress(out, 0, 6, address, 0x1234, 0x0a0b0c0d), SocketAddress6.OCTETS);
  assert.equal(
    Buffer.from(out).toString("hex"),
    "0a00" + "1234" + "00000000" + "a0a1a2a3a4a5a6a7a8a9aaabacadaeaf" + "0d0c0b0a",
  );
  assert.equal(writeSocketAddress(out, 0, 4, Uint8Array.of(192, 0, 2, 1), 53), SocketAddress4.OCTETS);
  assert.equal(Buffer.from(out).toString("hex"), `02000035c0000201${"00".repeat(20)}`);
});
