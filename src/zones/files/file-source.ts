/** A zone's file on disk with all included files, and whether any has changed since it was read. */
import type { BigIntStats } from "node:fs";
import { stat } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import type { Name } from "../../dns/name.ts";
import type { ZoneTextFiles } from "../../dns/zone-text/read.ts";
import { openRegularFile } from "../../lib/files/bounded-file.ts";
import type { Clock } from "../../lib/time/clock.ts";
import { isStampSettled, stampOf } from "../../lib/time/time-stamp.ts";
import { TurnShare } from "../../lib/time/turn-share.ts";
import type { Zone } from "../data/zone.ts";
import { type FileDifference, readFileDifference } from "./file-difference.ts";
import { type ReadZone, readZoneFile, SameSerial } from "./parsed-file.ts";

/** Larger than the text of almost any zone; the largest zones of the Internet are beyond this server. */
export const MAX_ZONE_FILE_OCTETS = 4 * 1024 * 1024 * 1024;
/** Milliseconds of an event-loop turn. */
const SHARE = 1;
/** Milliseconds for which a program that writes the file may pause. */
const LONGEST_PAUSE_OF_WRITER = 60_000;

type FileStatus = Pick<BigIntStats, "dev" | "ino" | "size" | "mtimeMs">;

export class ZoneFileSource {
  readonly file: string;
  readonly origin: Name;
  /** The zone, if it does not begin at the origin. */
  apex: Name | undefined;
  readonly #clock: Clock;
  /** The stamp of each file when it was last opened; empty while the zone has to be read whatever they are. */
  #stamps = new Map<string, string>();
  /** The same files, whatever their time stamps say. */
  #seen = new Map<string, FileStatus>();
  #hasGrown = false;

  constructor(file: string, origin: Name, clock: Clock) {
    this.file = file;
    this.origin = origin;
    this.#clock = clock;
  }

  /**
   * Whether a file became longer soon after it was read, so it was incomplete then. Its serial does not cover the rest, so it is
   * read again whatever its serial. Valid after {@link hasChanged}.
   */
  get hasGrown(): boolean {
    return this.#hasGrown;
  }

  /** Whether a file differs from the one that was read, or cannot be checked. */
  async hasChanged(): Promise<boolean> {
    let hasChanged = this.#stamps.size === 0;
    this.#hasGrown = false;
    for (const [path, seen] of this.#seen) {
      try {
        const status = await stat(path, { bigint: true });
        if (stampOf(status) !== this.#stamps.get(path)) hasChanged = true;
        if (isContinuation(seen, status)) this.#hasGrown = true;
      } catch {
        return true;
      }
    }
    return hasChanged;
  }

  /** The last read was invalid or was not used: the same files are read again. */
  forget(): void {
    this.#stamps.clear();
  }

  /**
   * Reads the zone.
   * @param knownSerial reading stops at an SOA record with it
   * @param former the served zone: room is made for as much
   * @returns `undefined` if the file has this serial
   * @throws ZoneFileError, or the error of the file system
   */
  async read(knownSerial?: number, former?: Zone): Promise<ReadZone | undefined> {
    return await this.#withFiles((files) =>
      readZoneFile({
        file: this.file,
        origin: this.origin,
        apex: this.apex,
        files,
        knownSerial,
        former,
        pause: this.#pause(),
      }),
    );
  }

  /**
   * The difference between the file and a zone.
   * @returns as {@link readFileDifference}, and "same" if the file has this serial
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

  /** @returns `undefined` if the file has the known serial */
  async #withFiles<T>(read: (files: ZoneTextFiles) => Promise<T>): Promise<T | undefined> {
    const stamps = new Map<string, string>();
    const seen = new Map<string, FileStatus>();
    let isSettled = true;
    const files: ZoneTextFiles = {
      open: async (file, includedFrom) => {
        const path =
          includedFrom === undefined || isAbsolute(file) ? file : join(dirname(includedFrom), file);
        const { file: handle, status } = await openRegularFile(path, MAX_ZONE_FILE_OCTETS);
        stamps.set(path, stampOf(status));
        seen.set(path, status);
        // A second write in the same tick of the file system's clock would leave the stamp unchanged.
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
      this.#seen = seen;
    }
  }
}

/** Whether the same file has grown, and was written soon after the earlier read. */
function isContinuation(before: FileStatus, after: FileStatus): boolean {
  return (
    before.dev === after.dev &&
    before.ino === after.ino &&
    before.size < after.size &&
    after.mtimeMs - before.mtimeMs <= LONGEST_PAUSE_OF_WRITER
  );
}
