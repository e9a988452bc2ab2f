/** Finds the zone of a file when the command line does not name it. */
import { stat } from "node:fs/promises";
import { basename } from "node:path";
import { Name } from "../../dns/name.ts";
import { copyOctets } from "../../dns/octets.ts";
import { RecordType } from "../../dns/type-names.ts";
import { readZoneText, type ZoneTextFiles } from "../../dns/zone-text/read.ts";
import { STANDARD_INPUT } from "./zone-text-files.ts";

/** Stops the parser: nothing after the SOA record is needed. */
class FoundSoa extends Error {
  override readonly name = "FoundSoa";
  readonly owner: Name;

  constructor(owner: Name) {
    super(`SOA record of ${owner}`);
    this.owner = owner;
  }
}

/**
 * The owner of the first SOA record. The file's name completes a relative owner. It also replaces the owner if there is no SOA
 * record, and for input that can only be read once: standard input and pipes. `undefined` if the file's name is not a zone's name.
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

/** A zone name on the command line may lack its final dot. */
export function absolute(text: string): string {
  return text.endsWith(".") ? text : `${text}.`;
}
