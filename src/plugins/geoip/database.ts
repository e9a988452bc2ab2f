/** A MaxMind database in memory, as bytes; each record is decoded on lookup. */

import { createRequire } from "node:module";
import type { AsnResponse, CityResponse, Reader } from "mmdb-lib";
import { messageOf } from "../../lib/text/message-of.ts";

/** A file that is not a usable database. */
export class DatabaseError extends Error {
  override readonly name = "DatabaseError";
}

export type City = CityResponse;
export type Asn = AsnResponse;

/** `GeoLite2-City`, `GeoIP2-Country`, `GeoIP2-Enterprise`, `DBIP-Location (compat=City)`. */
const CITY_TYPES = /city|country|enterprise|location/i;
/** `GeoLite2-ASN`, `DBIP-ASN-Lite`, `GeoIP2-ISP`. */
const ASN_TYPES = /asn|isp|enterprise/i;

export class GeoDatabase {
  readonly type: string;
  readonly builtAt: Date;
  readonly hasCities: boolean;
  readonly hasNetworks: boolean;
  readonly #reader: Reader<CityResponse & AsnResponse>;

  /** @throws DatabaseError */
  constructor(content: Uint8Array) {
    this.#reader = readerOf(content);
    const { databaseType, buildEpoch } = this.#reader.metadata;
    this.type = databaseType;
    this.builtAt = buildEpoch;
    this.hasCities = CITY_TYPES.test(databaseType);
    this.hasNetworks = ASN_TYPES.test(databaseType);
    if (!this.hasCities && !this.hasNetworks)
      throw new DatabaseError("database does not provide any supported schema (city, asn)");
    // Detects a truncated file now instead of with the first client.
    this.lookup("127.0.0.1");
  }

  /** The data of an address; `undefined` without any. @throws DatabaseError for a damaged file */
  lookup(address: string): (City & Asn) | undefined {
    try {
      return this.#reader.get(address) ?? undefined;
    } catch (error) {
      throw new DatabaseError(messageOf(error));
    }
  }
}

function readerOf(content: Uint8Array): Reader<CityResponse & AsnResponse> {
  // Loaded with the first database: few Corefiles have one.
  const { Reader }: typeof import("mmdb-lib") = createRequire(import.meta.url)("mmdb-lib");
  try {
    return new Reader(Buffer.from(content.buffer, content.byteOffset, content.length));
  } catch (error) {
    const reason = messageOf(error);
    throw new DatabaseError(`error opening database: ${reason}`);
  }
}
