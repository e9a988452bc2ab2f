import type { Argument } from "../../plugin/config/arguments.ts";
import {
  type ConfigSchema,
  choice,
  directive,
  flag,
  integer,
  optionList,
  required,
  rest,
  single,
  text,
  type ZoneList,
  zones,
} from "../../plugin/index.ts";

export interface DnssecConfig {
  readonly zones: ZoneList;
  readonly key: readonly { readonly from: SigningKeySource; readonly name: readonly string[] }[];
  readonly cache_capacity: number;
  readonly compact: boolean;
}

export type SigningKeySource = "file" | "aws_secretsmanager";

const source: Argument<SigningKeySource> = required(choice(["file", "aws_secretsmanager"]));

export const dnssecConfig: ConfigSchema<DnssecConfig> = directive({
  args: { zones: zones() },
  options: {
    key: optionList({ from: source, name: rest(text("the name of a pair of key files, or of a secret"), 1) }),
    cache_capacity: single(integer({ min: 1, max: 10_000_000 }), 10_000),
    compact: flag(),
  },
});
