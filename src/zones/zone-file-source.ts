/** A zone's file on disk, with all that it includes, and whether it changed since it was read. */
import { stat } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import type { Name } from "../dns/name.ts";
import type { ZoneTextFiles } from "../dns/zone-text/read.ts";
import { openRegularFile } from "../lib/bounded-file.ts";
import type { Clock } from "../lib/clock.ts";
import { isStampSettled, stampOf } from "../lib/time-stamp.ts";
import { TurnShare } from "../lib/turn-share.ts";
import { type FileDifference, readFileDifference } from "./file-difference.ts";
import type { Zone } from "./zone.ts";
import { type ReadZone, readZoneFile, SameSerial } from "./zone-file.ts";

/** The largest zones of the Internet have some 15 GB of text; nothing here is made for them. */
const MAX_FILE_OCTETS = 4 * 1024 * 1024 * 1024;
/** Milliseconds of a turn. */
const SHARE = 1;

export class ZoneFileSource {
  readonly file: string;
  readonly origin: Name;
  readonly #clock: Clock;
  /** What each file looked like when it was opened last; empty while the zone has to be read whatever they look like. */
  #stamps = new Map<string, string>();

  constructor(file: string, origin: Name, clock: Clock) {
    this.file = file;
    this.origin = origin;
    this.#clock = clock;
  }

  /** Whether a file differs from what was read, or cannot be looked at. */
  async hasChanged(): Promise<boolean> {
    if (this.#stamps.size === 0) return true;
    for (const [path, stamp] of this.#stamps) {
      try {
        if (stampOf(await stat(path, { bigint: true })) !== stamp) return true;
      } catch {
        return true;
      }
    }
    return false;
  }

  /** What was read was no zone, or was not taken: the same files are read again. */
  forget(): void {
    this.#stamps.clear();
  }

  /**
   * Reads the zone.
   * @param knownSerial nothing is read behind an SOA record with it
   * @param former what is served: room is made for as much
   * @returns `undefined` where the file has this serial
   * @throws ZoneFileError, or the error of the file system
   */
  async read(knownSerial?: number, former?: Zone): Promise<ReadZone | undefined> {
    return await this.#withFiles((files) =>
      readZoneFile({
        file: this.file,
        origin: this.origin,
        files,
        knownSerial,
        former,
        pause: this.#pause(),
      }),
    );
  }

  /**
   * What the file says otherwise than a zone.
   * @returns as {@link readFileDifference}, and "same" where the file has this serial
   */
  async compare(zone: Zone, knownSerial?: number): Promise<FileDifference | "same" | undefined> {
    const options = { file: this.file, origin: this.origin, knownSerial, pause: this.#pause() };
    let isSame = true;
    const found = await this.#withFiles(async (files) => {
      const difference = await readFileDifference(zone, { ...options, files });
      isSame = false;
      return difference;
    });
    return isSame ? "same" : found;
  }

  #pause(): () => Promise<void> {
    return new TurnShare(this.#clock, SHARE).rest;
  }

  /** @returns `undefined` where the file has the known serial */
  async #withFiles<T>(read: (files: ZoneTextFiles) => Promise<T>): Promise<T | undefined> {
    const stamps = new Map<string, string>();
    let isSettled = true;
    const files: ZoneTextFiles = {
      open: async (file, includedFrom) => {
        const path =
          includedFrom === undefined || isAbsolute(file) ? file : join(dirname(includedFrom), file);
        const { file: handle, status } = await openRegularFile(path, MAX_FILE_OCTETS);
        stamps.set(path, stampOf(status));
        // A second write in the same tick of the file system's clock would leave the stamp as it is.
        if (!isStampSettled(Number(status.mtimeMs), this.#clock)) isSettled = false;
        return {
          file: path,
          text: {
            read: async (target) => (await handle.read(target, 0, target.length)).bytesRead,
            close: () => handle.close(),
          },
        };
      },
    };
    this.#stamps.clear();
    try {
      return await read(files);
    } catch (error) {
      if (error instanceof SameSerial) return undefined;
      throw error;
    } finally {
      if (isSettled) this.#stamps = stamps;
    }
  }
}
