/** Finds the server block of a listener that takes a name. */
import type { Name } from "../dns/name.ts";
import type { LintBlock } from "./lint-block.ts";

export class Listeners {
  /** Blocks by port and zone, in the order of the Corefile. */
  readonly #blocks = new Map<string, LintBlock[]>();

  constructor(blocks: readonly LintBlock[]) {
    for (const block of blocks) {
      if (block.settings.listensNowhere) continue;
      for (const [index, { port }] of block.keys.entries()) {
        const zone = block.zones[index];
        if (zone === undefined) continue;
        const place = placeOf(port, zone);
        const others = this.#blocks.get(place);
        if (others === undefined) this.#blocks.set(place, [block]);
        else others.push(block);
      }
    }
  }

  /** The block with the longest zone for `name`, among those on `port` for which `listens` is true. */
  route(
    port: number,
    name: Name,
    listens: (block: LintBlock) => boolean,
  ): { readonly block: LintBlock; readonly zone: Name } | undefined {
    for (let zone: Name | undefined = name; zone !== undefined; zone = zone.parent) {
      const block = this.#blocks.get(placeOf(port, zone))?.find(listens);
      if (block !== undefined) return { block, zone };
    }
    return undefined;
  }
}

/** Whether a `view` decides which queries the block takes. */
export function hasView(block: LintBlock): boolean {
  return block.directives.some(({ name }) => name.text === "view");
}

function placeOf(port: number, zone: Name): string {
  return `${port} ${zone.toLowerCase()}`;
}
