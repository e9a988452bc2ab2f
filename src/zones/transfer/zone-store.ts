/** Copies of zones on disk, so that a server can serve them after a restart while its primaries are unreachable. */
import { mkdir, open, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Name } from "../../dns/name.ts";
import type { Clock } from "../../lib/time/clock.ts";
import type { Zone } from "../data/zone.ts";
import { ZoneFileSource } from "../files/file-source.ts";
import { zoneLines } from "../files/zone-printer.ts";

/** Size of a write. */
const CHUNK = 64 * 1024;

export class ZoneStore {
  readonly #directory: string;
  readonly #clock: Clock;

  constructor(directory: string, clock: Clock) {
    this.#directory = directory;
    this.#clock = clock;
  }

  /**
   * @returns the zone, and when a primary last confirmed it, in milliseconds since 1970; `undefined` if there is no copy
   * @throws ZoneFileError, or the error of the file system
   */
  async read(apex: Name): Promise<{ readonly zone: Zone; readonly confirmedAt: number } | undefined> {
    const path = this.#pathOf(apex);
    let confirmedAt: number;
    try {
      confirmedAt = (await stat(path)).mtimeMs;
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
      throw error;
    }
    const read = await new ZoneFileSource(path, apex, this.#clock).read();
    return read === undefined ? undefined : { zone: read.zone, confirmedAt };
  }

  /** Replaces the copy of a zone atomically. */
  async write(zone: Zone): Promise<void> {
    const path = this.#pathOf(zone.apex);
    const temporary = `${path}.new`;
    await mkdir(this.#directory, { recursive: true });
    const file = await open(temporary, "w", 0o644);
    // The zone must not change during the write.
    zone.readers++;
    try {
      let text = "";
      for await (const lines of zoneLines(zone, nextTurn)) {
        text += lines;
        if (text.length < CHUNK) continue;
        await file.write(text);
        text = "";
      }
      await file.write(text);
      await file.sync();
    } catch (error) {
      await file.close();
      await rm(temporary, { force: true });
      throw error;
    } finally {
      zone.readers--;
    }
    await file.close();
    await rename(temporary, path);
    await this.confirm(zone.apex);
  }

  /** A primary confirmed that the zone is up to date: the file's time stamp stores when. */
  async confirm(apex: Name): Promise<void> {
    const now = new Date(this.#clock.wallTime());
    await utimes(this.#pathOf(apex), now, now).catch(() => undefined);
  }

  /** Deletes the copy of a zone. */
  async remove(apex: Name): Promise<void> {
    await rm(this.#pathOf(apex), { force: true });
  }

  /** Octets with a meaning in file systems are escaped as in zone text. */
  #pathOf(apex: Name): string {
    const text = apex
      .toString()
      .replaceAll(/[^a-z0-9._-]/g, (character) => `%${character.charCodeAt(0).toString(16)}`);
    return join(this.#directory, `${text}zone`);
  }
}
