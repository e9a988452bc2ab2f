/** The LOC row of the record table (RFC 1876). */
import { u8, u32 } from "./fields.ts";
import type { RdataScanner } from "./rdata-scanner.ts";
import { type RecordKind, recordWith } from "./record-kind.ts";
import { RecordType } from "./type-names.ts";
import type { WireReader } from "./wire-reader.ts";

/** The data of a LOC record (RFC 1876). */
export interface Location {
  /** 0, the only version. */
  readonly version: number;
  /** Mantissa and exponent of centimetres in one octet each (RFC 1876 section 2). */
  readonly size: number;
  readonly horizontalPrecision: number;
  readonly verticalPrecision: number;
  /** Thousandths of a second of arc; 2^31 is the equator or the prime meridian. */
  readonly latitude: number;
  readonly longitude: number;
  /** Centimetres above 100,000 m below the reference spheroid. */
  readonly altitude: number;
}

export const loc: RecordKind<Location> = recordWith(
  "LOC",
  RecordType.LOC,
  ["version", "size", "horizontalPrecision", "verticalPrecision", "latitude", "longitude", "altitude"],
  {
    read(reader) {
      const version = reader.u8();
      if (version !== 0) throw reader.bad(`LOC of unknown version ${version}`);
      return {
        version,
        size: readPrecision(reader),
        horizontalPrecision: readPrecision(reader),
        verticalPrecision: readPrecision(reader),
        latitude: readAngle(reader, 90),
        longitude: readAngle(reader, 180),
        altitude: reader.u32(),
      };
    },
    write(writer, data) {
      for (const octet of [data.version, data.size, data.horizontalPrecision, data.verticalPrecision])
        u8.write(writer, octet);
      for (const word of [data.latitude, data.longitude, data.altitude]) u32.write(writer, word);
    },
    print: (data) =>
      [
        printAngle(data.latitude, "N", "S"),
        printAngle(data.longitude, "E", "W"),
        printMetres(data.altitude - ALTITUDE_ORIGIN),
        printMetres(precisionCentimetres(data.size)),
        printMetres(precisionCentimetres(data.horizontalPrecision)),
        printMetres(precisionCentimetres(data.verticalPrecision)),
      ].join(" "),
    parse: (scanner) => ({
      version: 0,
      latitude: parseAngle(scanner, "N", "S", 90),
      longitude: parseAngle(scanner, "E", "W", 180),
      altitude: parseAltitude(scanner),
      size: parsePrecision(scanner, 100),
      horizontalPrecision: parsePrecision(scanner, 1_000_000),
      verticalPrecision: parsePrecision(scanner, 1_000),
    }),
  },
);

const ANGLE_ORIGIN = 0x8000_0000;
const ALTITUDE_ORIGIN = 10_000_000;
const DEGREE = 3_600_000;
const MINUTE = 60_000;

function readAngle(reader: WireReader, mostDegrees: number): number {
  const value = reader.u32();
  if (Math.abs(value - ANGLE_ORIGIN) > mostDegrees * DEGREE) throw reader.bad("LOC angle out of range");
  return value;
}

function printAngle(value: number, positive: string, negative: string): string {
  const distance = Math.abs(value - ANGLE_ORIGIN);
  const degrees = Math.floor(distance / DEGREE);
  const minutes = Math.floor((distance % DEGREE) / MINUTE);
  const secondsOfArc = ((distance % MINUTE) / 1000).toFixed(3);
  return `${degrees} ${minutes} ${secondsOfArc} ${value < ANGLE_ORIGIN ? negative : positive}`;
}

/** Degrees, minutes and seconds; the latter two may be missing. Decimals of seconds after the third are dropped, as in CoreDNS. */
function parseAngle(scanner: RdataScanner, positive: string, negative: string, mostDegrees: number): number {
  let distance = scanner.integer("degrees", mostDegrees) * DEGREE;
  let unit = MINUTE;
  for (;;) {
    const word = scanner.word(`${positive} or ${negative}`).toUpperCase();
    if (word === positive || word === negative) {
      if (distance > mostDegrees * DEGREE) throw scanner.fail(`more than ${mostDegrees} degrees`);
      return word === positive ? ANGLE_ORIGIN + distance : ANGLE_ORIGIN - distance;
    }
    const form = unit === MINUTE ? /^(\d{1,3})$/ : /^(?=\.?\d)(\d{0,3})(?:\.(\d{0,15}))?$/;
    const [, whole, decimals = ""] = form.exec(word) ?? [];
    if (unit < 1000 || whole === undefined || Number(whole) >= 60)
      throw scanner.fail(`not an angle: "${word}"`);
    distance += Number(whole) * unit + Number(decimals.slice(0, 3).padEnd(3, "0"));
    unit /= 60;
  }
}

function printMetres(centimetres: number): string {
  return `${(centimetres / 100).toFixed(2)}m`;
}

/** Altitudes may have more decimals than are kept, as in CoreDNS. */
const ALTITUDE_TEXT = /^[-+]?(\d{1,8}(\.\d{0,15})?|\.\d{1,15})m?$/i;
const PRECISION_TEXT = /^(\d{1,8}(\.\d{0,2})?|\.\d{1,2})m?$/i;

function parseMetres(scanner: RdataScanner, form: RegExp, least: number, most: number): number {
  const word = scanner.word("a distance in metres");
  const centimetres = form.test(word) ? Math.round(Number.parseFloat(word) * 100) : Number.NaN;
  if (!(centimetres >= least && centimetres <= most))
    throw scanner.fail(`not a distance in range: "${word}"`);
  return centimetres;
}

function parseAltitude(scanner: RdataScanner): number {
  const most = 0xffffffff - ALTITUDE_ORIGIN;
  return parseMetres(scanner, ALTITUDE_TEXT, -ALTITUDE_ORIGIN, most) + ALTITUDE_ORIGIN;
}

/** Mantissa and exponent, one digit each; the mantissa may be 0. */
function readPrecision(reader: WireReader): number {
  const octet = reader.u8();
  const mantissa = octet >>> 4;
  if (octet !== 0 && (mantissa === 0 || mantissa > 9 || (octet & 0xf) > 9))
    throw reader.bad("LOC precision out of range");
  return octet;
}

function precisionCentimetres(octet: number): number {
  return (octet >>> 4) * 10 ** (octet & 0xf);
}

/** As in RFC 1876's appendix, digits after the first are dropped and not rounded. */
function parsePrecision(scanner: RdataScanner, fallback: number): number {
  let mantissa = scanner.hasMore ? parseMetres(scanner, PRECISION_TEXT, 0, 9_000_000_000) : fallback;
  let exponent = 0;
  while (mantissa > 9) {
    mantissa = Math.floor(mantissa / 10);
    exponent++;
  }
  return (mantissa << 4) | exponent;
}
