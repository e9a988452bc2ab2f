/** `edns0` rules: EDNS options for the plugins behind `rewrite` and for upstream servers. */
import { type Edns, type EdnsOption, EdnsOptionCode, encodeClientSubnet } from "../../dns/index.ts";
import type { Query } from "../../plugin/index.ts";
import { type Applied, NOT_APPLIED, type ReplyChange, type RewriteRule } from "./rule.ts";

export const EDNS_ACTIONS = ["set", "append", "replace", "unset"] as const;
export type EdnsAction = (typeof EDNS_ACTIONS)[number];

/** Where the data of an option comes from. */
export interface OptionSource {
  /** @returns `undefined` if there is no data: the rule does not apply */
  data(query: Query): Uint8Array | undefined;
  /** `append` adds a second option with the code beside an existing one. */
  readonly appendsAlways: boolean;
}

/** Used when the client sent no OPT. */
const NEW_OPT: Edns = Object.freeze({ udpSize: 4096, version: 0, dnssecOk: false, options: [] });

export class EdnsRule implements RewriteRule {
  readonly continues: boolean;
  readonly text: string;
  readonly #action: EdnsAction;
  readonly code: number;
  readonly #source: OptionSource;
  readonly #reply: ReplyChange;

  constructor(options: {
    continues: boolean;
    text: string;
    action: EdnsAction;
    code: number;
    source: OptionSource;
    revert: boolean;
  }) {
    this.continues = options.continues;
    this.text = options.text;
    this.#action = options.action;
    this.code = options.code;
    this.#source = options.source;
    this.#reply = options.revert ? HIDDEN : SHOWN;
  }

  apply(asked: Query): Applied | typeof NOT_APPLIED {
    const edns = asked.edns ?? NEW_OPT;
    if (this.#action === "unset") return this.#unset(asked, edns);
    const data = this.#source.data(asked);
    if (data === undefined) return NOT_APPLIED;
    const present = edns.options.findIndex(({ code }) => code === this.code);
    const option = { code: this.code, data };
    const options = this.#optionsWith(edns.options, option, present);
    if (options !== undefined) return this.#changed(asked, { ...edns, options });
    // The new OPT is still sent, as in CoreDNS.
    return asked.hasEdns ? NOT_APPLIED : this.#changed(asked, edns, true);
  }

  #optionsWith(
    options: readonly EdnsOption[],
    option: EdnsOption,
    present: number,
  ): readonly EdnsOption[] | undefined {
    if (present < 0) return this.#action === "replace" ? undefined : [...options, option];
    if (this.#action !== "append") return options.with(present, option);
    return this.#source.appendsAlways ? [...options, option] : undefined;
  }

  #unset(asked: Query, edns: Edns): Applied | typeof NOT_APPLIED {
    const options = edns.options.filter(({ code }) => code !== this.code);
    if (options.length < edns.options.length) return this.#changed(asked, { ...edns, options });
    return asked.hasEdns ? NOT_APPLIED : this.#changed(asked, edns, true);
  }

  #changed(asked: Query, edns: Edns, passedOver = false): Applied {
    const query = asked.derive({ edns });
    return { query, reply: this.#reply, ...(passedOver && { passedOver }) };
  }
}

const SHOWN: ReplyChange = Object.freeze({ showsOptions: true });
const HIDDEN: ReplyChange = Object.freeze({ showsOptions: false });

/** Data given in the Corefile. */
export class FixedData implements OptionSource {
  readonly #data: Uint8Array;
  readonly appendsAlways = true;

  constructor(data: Uint8Array) {
    this.#data = data;
  }

  data(): Uint8Array {
    return this.#data;
  }
}

/** A variable such as `{qname}`, or a metadata label. */
export class VariableData implements OptionSource {
  readonly #read: (query: Query) => Uint8Array | undefined;
  readonly appendsAlways = false;

  constructor(read: (query: Query) => Uint8Array | undefined) {
    this.#read = read;
  }

  data(query: Query): Uint8Array | undefined {
    return this.#read(query);
  }
}

/** The network of the client (RFC 7871). */
export class SubnetData implements OptionSource {
  readonly #ipv4Bits: number;
  readonly #ipv6Bits: number;
  readonly appendsAlways = false;

  constructor(ipv4Bits: number, ipv6Bits: number) {
    this.#ipv4Bits = ipv4Bits;
    this.#ipv6Bits = ipv6Bits;
  }

  data({ client }: Query): Uint8Array | undefined {
    const isIpv4 = client.family === 4;
    return encodeClientSubnet({
      family: isIpv4 ? 1 : 2,
      sourcePrefixLength: isIpv4 ? this.#ipv4Bits : this.#ipv6Bits,
      scopePrefixLength: 0,
      address: client.address,
    })?.data;
  }
}

export const NSID_CODE = EdnsOptionCode.NSID;
export const SUBNET_CODE = EdnsOptionCode.CLIENT_SUBNET;

/** Values of the variables, by name without braces. */
export const VARIABLES: ReadonlyMap<string, (query: Query) => Uint8Array> = new Map([
  ["qname", ({ name }) => Buffer.from(`${name}`)],
  ["qtype", ({ type }) => u16(type)],
  ["client_ip", ({ client }) => client.octets.slice()],
  ["client_port", ({ client }) => u16(client.port)],
  ["server_ip", ({ local }) => local.octets.slice()],
  ["server_port", ({ local }) => u16(local.port)],
  ["protocol", ({ overStream }) => Buffer.from(overStream ? "tcp" : "udp")],
]);

function u16(value: number): Uint8Array {
  return Uint8Array.of(value >>> 8, value & 0xff);
}
