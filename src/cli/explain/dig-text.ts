/** The message that a client receives, in dig's form. */
import type { Explanation } from "../../plugin/contract/explanation.ts";

/** Lines without line ends; empty if no message is sent. */
export function digLines({ name, type, class: queryClass, message }: Explanation): string[] {
  if (message === undefined) return [];
  const { rcode, flags, answer, authority, additional, edns, size } = message;
  const counts = [1, answer.length, authority.length, additional.length + (edns === undefined ? 0 : 1)];
  const [questions, answers, authorities, others] = counts;
  const question = `;${name} ${queryClass} ${type}`;
  const table = align([question, ...answer, ...authority, ...additional]);
  const lines = [
    `;; ->>HEADER<<- opcode: QUERY, status: ${rcode}`,
    `;; flags: ${["qr", ...flags].join(" ")}; QUERY: ${questions}, ANSWER: ${answers}, AUTHORITY: ${authorities}, ADDITIONAL: ${others}`,
  ];
  if (edns !== undefined) {
    const set = edns.dnssecOk ? " do" : "";
    lines.push("", ";; OPT PSEUDOSECTION:", `; EDNS: version: 0, flags:${set}; udp: ${edns.udpSize}`);
  }
  let at = 0;
  for (const [title, count] of [
    ["QUESTION", 1],
    ["ANSWER", answer.length],
    ["AUTHORITY", authority.length],
    ["ADDITIONAL", additional.length],
  ] as const) {
    if (count > 0) lines.push("", `;; ${title} SECTION:`, ...table.slice(at, at + count));
    at += count;
  }
  return [...lines, "", `;; MSG SIZE  rcvd: ${size}`];
}

/** Aligns owner, TTL, class and type. The data follows them; a question has no TTL. */
function align(records: readonly string[]): string[] {
  const rows = records.map((record) => {
    const [owner = "", ...rest] = record.split(" ");
    const fields = owner.startsWith(";") ? ["", ...rest] : rest;
    return { owner, fields: fields.slice(0, 3), data: fields.slice(3).join(" ") };
  });
  const widths = [0, 1, 2].map((at) => Math.max(...rows.map(({ fields }) => fields[at]?.length ?? 0)));
  const ownerWidth = Math.min(MAX_OWNER_WIDTH, Math.max(...rows.map(({ owner }) => owner.length)));
  return rows.map(({ owner, fields, data }) => {
    const columns = fields.map((field, at) => field.padEnd(widths[at] ?? 0));
    return `${owner.padEnd(ownerWidth)}  ${columns.join("  ")}  ${data}`.trimEnd();
  });
}

/** One long name must not push all others to the right. */
const MAX_OWNER_WIDTH = 48;
