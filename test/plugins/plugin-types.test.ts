/** Plugins of others compile strictly with declarations, in the TypeScript that most have and in the one that is new. */
import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import ts from "typescript-5.9";
import { projectRoot } from "../support/portolan.ts";
import { run } from "../support/program.ts";

/** Milliseconds: all of `src/` is half a minute of work where something else has the processors. */
const PATIENCE = 100_000;
const COMPILERS = { "5.9": "typescript-5.9", "7": "typescript" };

const MODULES = {
  plugin: "portolan/plugin",
  dns: "portolan/dns",
  testing: "portolan/testing",
  server: "portolan",
};

const PLUGIN = `
import { parseRecord, RecordType } from "portolan/dns";
import { afterwards, choice, type CounterSlot, definePlugin, directive, domainName, duration, fallthrough, flag, type Handler, integer,
  ipAddress, listenAddress, merged, type Next, option, optional, optionList, type Query, rcode, recordType, required, rest, ServiceKey,
  single, text, type Value, ValueProblem, ZoneList, zones } from "portolan/plugin";
import { PluginTest } from "portolan/testing";
import { createServer } from "portolan";

export const config = directive({
  args: { name: required(domainName()), address: optional(ipAddress()), words: rest(text()) },
  options: {
    ttl: single(integer({ min: 0, max: 3600 }), 60),
    every: single(duration(), 30_000),
    mode: single(choice(["bright", "dim"]), "dim"),
    quiet: flag(),
    fallthrough: fallthrough(),
    views: optionList({ zones: zones() }),
    one: option({ at: required(ipAddress()) }),
  },
});

export default definePlugin({
  name: "lighthouse",
  summary: "Shows a light to those who ask for it by name.",
  config,
  claims: ({ args }) => ({ zones: args.slice(0, 1) }),
  create({ name, ttl }, site) {
    const light = parseRecord(\`\${name} \${ttl} IN TXT "two flashes every ten seconds"\`);
    const asked = site.metrics.counter({ name: "lighthouse_total", help: "Queries.", labels: ["mode"] });
    return {
      handle(query, next) {
        if (query.type !== RecordType.TXT || !query.name.equals(name)) return next(query);
        asked.slot("dim").increment();
        return query.reply({ authoritative: true, answer: [light] });
      },
    };
  },
});

export const every = merged(config);
export const parts = { type: recordType(), rcode: rcode(), address: listenAddress() };
export const even: Value<number> = {
  expected: "an even number",
  parse: (word) => (Number(word) % 2 === 0 ? Number(word) : new ValueProblem(word + " is odd")),
};
export const LIGHTS = new ServiceKey<{ readonly lit: boolean }>("lights");
export const watch: Handler = afterwards((outcome) => (outcome.kind === "reply" ? outcome : outcome));
export class Keeper {
  readonly zones = new ZoneList([]);
  readonly seen: CounterSlot;
  constructor(seen: CounterSlot) {
    this.seen = seen;
  }
  handle(query: Query, next: Next) {
    this.seen.increment();
    return next(query.derive({ type: RecordType.A }));
  }
}
export const tried = async (definition: Parameters<typeof PluginTest.of>[0]) =>
  PluginTest.of(definition, "lighthouse a.example").ask({ name: "a.example." });
export const serve = (corefile: string) => createServer({ corefile });
`;

/** Members that the engine uses, and that no author sees. */
const HIDDEN = `
import type { PluginDefinition, Query, Reply } from "portolan/plugin";
${[
  ["Reply", "sections"],
  ["Reply", "basis"],
  ["Reply", "release"],
  ["Query", "pending"],
  ["Query", "link"],
  ["Query", "waiter"],
  ["PluginDefinition<unknown>", "createForEveryBlock"],
]
  .map(
    ([type, member], at) =>
      `// @ts-expect-error\nexport const hidden${at} = (value: ${type}) => value.${member};`,
  )
  .join("\n")}
`;

const OPTIONS = {
  strict: true,
  declaration: true,
  emitDeclarationOnly: true,
  outDir: "out",
  module: "nodenext",
  target: "es2024",
  exactOptionalPropertyTypes: true,
  noUncheckedIndexedAccess: true,
  noImplicitOverride: true,
  verbatimModuleSyntax: true,
  types: ["node"],
};

describe("a third-party project", () => {
  const project = mkdtempSync(join(tmpdir(), "portolan-types-"));
  const modules = join(project, "node_modules");
  after(() => rmSync(project, { recursive: true, force: true }));

  before(async () => {
    // A copy, as npm makes one: through a link the compilers would take the folder behind it.
    const portolan = join(modules, "portolan");
    mkdirSync(portolan, { recursive: true });
    cpSync(join(projectRoot, "package.json"), join(portolan, "package.json"));
    for (const name of ["re2js", "@types", "undici-types"])
      symlinkSync(join(projectRoot, "node_modules", name), join(modules, name));
    const out = ["--emitDeclarationOnly", "--outDir", join(portolan, "dist")];
    const made = await compile("7", projectRoot, ["-p", join(projectRoot, "tsconfig.build.json"), ...out]);
    assert.equal(made, "");
    writeFileSync(join(project, "package.json"), '{ "type": "module" }');
    writeFileSync(
      join(project, "tsconfig.json"),
      JSON.stringify({ compilerOptions: OPTIONS, files: ["plugin.ts"] }),
    );
    writeFileSync(join(project, "plugin.ts"), PLUGIN);
    // No author writes all of these into declarations, and not all of their types have a public name.
    const uses = { ...OPTIONS, declaration: false, emitDeclarationOnly: false, noEmit: true };
    writeFileSync(
      join(project, "uses.json"),
      JSON.stringify({ compilerOptions: uses, files: ["everything.ts", "hidden.ts"] }),
    );
    writeFileSync(join(project, "everything.ts"), everything(project));
    writeFileSync(join(project, "hidden.ts"), HIDDEN);
  });

  for (const version of ["5.9", "7"] as const) {
    test(`compiles in TypeScript ${version}, and its declarations can name what they mention`, async () => {
      assert.equal(await compile(version, project, ["-p", project]), "");
    });

    test(`reaches all that is public in TypeScript ${version}, and nothing of the engine`, async () => {
      assert.equal(await compile(version, project, ["-p", join(project, "uses.json")]), "");
    });
  }
});

/** @returns what the compiler finds wrong */
async function compile(version: keyof typeof COMPILERS, folder: string, args: string[]): Promise<string> {
  const compiler = join(projectRoot, "node_modules", COMPILERS[version], "bin", "tsc");
  const { output, errors } = await run(process.execPath, [compiler, ...args], {
    cwd: folder,
    patience: PATIENCE,
  });
  return output + errors;
}

/** A file that uses every value of the package, and every member of its types. */
function everything(folder: string): string {
  const entries = Object.entries(MODULES);
  const imports = entries.map(([name, module]) => `import * as ${name} from "${module}";`);
  const entry = join(folder, "entries.ts");
  writeFileSync(entry, [...imports, `export { ${Object.keys(MODULES).join(", ")} };`].join("\n"));
  const { options } = ts.convertCompilerOptionsFromJson(OPTIONS, folder);
  const program = ts.createProgram([entry], options);
  const checker = program.getTypeChecker();
  const uses = (program.getSourceFile(entry)?.statements ?? []).flatMap((statement) => {
    if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) return [];
    const module = statement.moduleSpecifier.text;
    const prefix = entries.find(([, each]) => each === module)?.[0] ?? "";
    const symbol = checker.getSymbolAtLocation(statement.moduleSpecifier);
    if (symbol === undefined) throw new Error(`${module} was not found`);
    return checker.getExportsOfModule(symbol).flatMap((each) => usesOf(checker, each, prefix));
  });
  assert.ok(uses.length > 700, `${uses.length} members were found`);
  return [...imports, ...uses.map((use, index) => `export const _${index} = ${use};`)].join("\n");
}

function usesOf(checker: ts.TypeChecker, exported: ts.Symbol, prefix: string): string[] {
  const name = `${prefix}.${exported.name}`;
  const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
  const value = symbol.flags & ts.SymbolFlags.Value && !isTypeOnly(exported) ? [name] : [];
  const type = checker.getDeclaredTypeOfSymbol(symbol);
  if (!(type.flags & ts.TypeFlags.Object)) return value;
  const parameters = (symbol.declarations ?? []).flatMap((each) =>
    ts.isClassDeclaration(each) || ts.isInterfaceDeclaration(each) || ts.isTypeAliasDeclaration(each)
      ? [...(each.typeParameters ?? [])]
      : [],
  );
  const generic = parameters.length === 0 ? "" : `<${parameters.map(() => "any").join(", ")}>`;
  const members = type.getProperties().filter(isNamedHere);
  return [...value, ...members.map((member) => `(x: ${name}${generic}) => x.${member.name}`)];
}

function isTypeOnly(exported: ts.Symbol): boolean {
  return (exported.declarations ?? []).some((each) => ts.isTypeOnlyExportDeclaration(each));
}

/** Public, of this package, and a name that may stand behind a dot. */
function isNamedHere(member: ts.Symbol): boolean {
  const declaration = member.valueDeclaration ?? member.declarations?.[0];
  if (declaration === undefined || !/^[a-zA-Z_]\w*$/.test(member.name)) return false;
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  if (ts.getCombinedModifierFlags(declaration) & hidden) return false;
  return declaration.getSourceFile().fileName.includes("/portolan/");
}
