/** Which zone a file holds, where the command line does not say. */
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { Name } from "../../dns/name.ts";
import { copyOctets } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import { readZoneText, type ZoneTextFiles } from "../../dns/zone-text/read.ts";
import { STANDARD_INPUT } from "./zone-text-files.ts";

/** Ends the reading: what comes behind the SOA record is not asked for. */
class FoundSoa extends Error {
  override readonly name = "FoundSoa";
  readonly owner: Name;

  constructor(owner: Name) {
    super(`SOA record of ${owner}`);
    this.owner = owner;
  }
}

/**
 * The owner of the first SOA record. The name of the file completes a relative one, and stands in where there is no SOA record, and for what can
 * be read only once: standard input and pipes. `undefined` where the file's name is none of a zone.
 */
export async function zoneApex(
  file: string,
  files: ZoneTextFiles,
  pause: () => Promise<void>,
): Promise<Name | undefined> {
  const origin = originOf(file);
  if (origin === undefined || !(await isRegular(file))) return origin;
  try {
    const sink = {
      record({
        type,
        owner,
        ownerLength,
      }: {
        type: number;
        owner: Uint8Array;
        ownerLength: number;
      }): undefined {
        if (type === RecordType.SOA)
          throw new FoundSoa(Name.fromCheckedWire(copyOctets(owner, 0, ownerLength)));
      },
    };
    await readZoneText({ file, files, origin, sink, pause });
    return origin;
  } catch (error) {
    if (error instanceof FoundSoa) return error.owner;
    throw error;
  }
}

async function isRegular(file: string): Promise<boolean> {
  return file !== STANDARD_INPUT && (await stat(file)).isFile();
}

function originOf(file: string): Name | undefined {
  if (file === STANDARD_INPUT) return undefined;
  const text = basename(file).replace(/^db\.|\.(zone|db|signed)$/g, "");
  return text === "" ? undefined : Name.tryParse(absolute(text));
}

/** Text of the command line names a zone with or without its final dot. */
export function absolute(text: string): string {
  return text.endsWith(".") ? text : `${text}.`;
}
