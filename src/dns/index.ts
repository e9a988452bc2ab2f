/**
 * `portolan/dns`: the DNS protocol without I/O. Names, records and their table, messages, EDNS; wire format and presentation form
 * in both directions.
 * @module portolan/dns
 */
export type { AddressRun } from "./address-runs.ts";
export { type SigningAlgorithm, signingAlgorithm } from "./dnssec/algorithms.ts";
export { type KeyPair, KeyPairError, keyTag, readKeyPair } from "./dnssec/key-pair.ts";
export {
  canonicalRrset,
  rrsetsOf,
  type SignatureFacts,
  signatureRecord,
  signRrset,
} from "./dnssec/rrset-signature.ts";
// biome-ignore lint/performance/noReExportAll: every row and option is part of the library.
export * from "./edns.ts";
export {
  EncodedSections,
  type RecordSections,
  type ScannedMessage,
  type SectionsLender,
} from "./encoded-sections.ts";
export { decodeMessage, encodeMessage, type Message, makeQuery, type Question } from "./message.ts";
export { Name, NameError } from "./name.ts";
export { className, Flag, Opcode, parseClass, parseRcode, Rcode, RecordClass, rcodeName } from "./numbers.ts";
export { PresentationError, type PresentationToken, type RdataScanner } from "./rdata-scanner.ts";
export {
  type DataOf,
  isOpaque,
  type OpaqueData,
  type RecordKind,
  type ResourceRecord,
} from "./record-kind.ts";
// biome-ignore lint/performance/noReExportAll: every row and option is part of the library.
export * from "./record-table.ts";
export type { AplItem } from "./record-table-addresses.ts";
export type { Gateway } from "./record-table-gateways.ts";
export type { HostInformation } from "./record-table-host.ts";
export type { Location } from "./record-table-location.ts";
export {
  canonicalData,
  dataFromWire,
  formatData,
  formatRecord,
  parseRecord,
  plainData,
} from "./resource-record.ts";
export { addressOfReverseName, reverseNameOfIpv4, reverseNameOfIpv6 } from "./reverse-name.ts";
export { type ServiceParameter, ServiceParameterKey } from "./service-parameters.ts";
export {
  DEFAULT_TSIG_ALGORITHM,
  TSIG_ALGORITHM_NAMES,
  type TsigAlgorithm,
  tsigAlgorithm,
} from "./tsig/algorithms.ts";
export { TsigError, TsigExchange } from "./tsig/exchange.ts";
export { type TsigKey, TsigKeyRing, type TsigKeySource } from "./tsig/keys.ts";
export { BADSIG, type QueryVerdict, ReplySigner, verifyQuery } from "./tsig/verify-query.ts";
export { parseRecordType, RecordType, type RecordTypeName, recordTypeName } from "./type-names.ts";
export { WireError, type WireErrorCode, WireReader } from "./wire-reader.ts";
export { WireWriter } from "./wire-writer.ts";
export { formatZoneTextFault, type ZoneTextFault } from "./zone-text/fault.ts";
export type { ZoneTextRecord, ZoneTextSink } from "./zone-text/parser.ts";
export {
  type ParsedZoneText,
  parseZoneText,
  type ReadZoneTextOptions,
  readZoneText,
  type ZoneTextFile,
  type ZoneTextFiles,
} from "./zone-text/read.ts";
