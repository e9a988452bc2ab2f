/** Records of a zone as octets, outside of it: what a change takes away and adds. */

export interface PlainRecord {
  /** In lower case, as the zone has it, uncompressed. */
  readonly owner: Uint8Array;
  readonly type: number;
  readonly ttl: number;
  readonly rdata: Uint8Array;
}

export interface FileDifference {
  readonly soa: PlainRecord;
  /** Without the SOA records. */
  readonly removed: readonly PlainRecord[];
  readonly added: readonly PlainRecord[];
}
