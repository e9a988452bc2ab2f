/** The tables of docs/plugins.md about `query`, `site` and `config`, out of the declarations of the contract. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript-5.9";

export const PLUGIN_PAGE = "docs/plugins.md";
/** The command that writes the page. */
const COMMAND = "npx node scripts/write-plugin-reference.ts";

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2024,
  lib: ["lib.es2024.d.ts", "lib.esnext.d.ts"],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: ["node"],
  strict: true,
  allowImportingTsExtensions: true,
  skipLibCheck: true,
  noEmit: true,
};

/** The page with its tables as the declarations have them. @throws for a member without a comment */
export function currentPluginPage(root: string): string {
  const page = readFileSync(join(root, PLUGIN_PAGE), "utf8");
  const declarations = new Declarations(root);
  return withTables(page, {
    query: declarations.members("Query", "query"),
    site: declarations.members("Site", "site"),
    block: declarations.membersOfMember("Site", "block", "site.block"),
    config: declarations.values(),
  });
}

/**
 * Puts each table between `<!-- NAME: ... -->` and `<!-- end of NAME -->`.
 * @throws where the page lacks a place
 */
export function withTables(page: string, tables: Readonly<Record<string, readonly string[]>>): string {
  let result = page;
  for (const [name, rows] of Object.entries(tables)) {
    const place = new RegExp(`<!-- ${name}:[^>]*-->\n[\\s\\S]*?<!-- end of ${name} -->`);
    if (!place.test(result)) throw new Error(`${PLUGIN_PAGE} has no place for the table "${name}"`);
    const table = `<!-- ${name}: written by ${COMMAND} -->\n\n${rows.join("\n")}\n\n<!-- end of ${name} -->`;
    result = result.replace(place, () => table);
  }
  return result;
}

/** What a declaration reads, by its type. */
const PLACES: Readonly<Record<string, string>> = {
  Argument: "the line",
  Option: "a line of the block",
  Value: "a word",
};

class Declarations {
  readonly #checker: ts.TypeChecker;
  readonly #exports: ReadonlyMap<string, ts.Symbol>;

  constructor(root: string) {
    const entry = join(root, "src", "plugin", "index.ts");
    const program = ts.createProgram([entry], { ...OPTIONS, typeRoots: [join(root, "node_modules/@types")] });
    this.#checker = program.getTypeChecker();
    const file = program.getSourceFile(entry);
    const module = file && this.#checker.getSymbolAtLocation(file);
    if (module === undefined) throw new Error(`${entry} exports nothing`);
    const resolve = (symbol: ts.Symbol): ts.Symbol =>
      (symbol.flags & ts.SymbolFlags.Alias) === 0 ? symbol : this.#checker.getAliasedSymbol(symbol);
    this.#exports = new Map(
      this.#checker.getExportsOfModule(module).map((symbol) => [symbol.name, resolve(symbol)]),
    );
  }

  members(name: string, variable: string): string[] {
    return this.#table(this.#checker.getDeclaredTypeOfSymbol(this.#export(name)), name, variable);
  }

  membersOfMember(name: string, member: string, variable: string): string[] {
    const type = this.#checker.getDeclaredTypeOfSymbol(this.#export(name));
    const property = type.getProperty(member);
    if (property === undefined) throw new Error(`${name} has no ${member}`);
    return this.#table(this.#checker.getTypeOfSymbol(property), `${name}.${member}`, variable);
  }

  /** What a declaration of an argument or option becomes in `config`. */
  values(): string[] {
    const rows = [...this.#exports].flatMap(([name, symbol]) => {
      const declaration = symbol.valueDeclaration;
      if (declaration === undefined || !ts.isFunctionDeclaration(declaration)) return [];
      const signature = this.#checker.getSignatureFromDeclaration(declaration);
      const returned = signature && this.#checker.getReturnTypeOfSignature(signature);
      const [, kind, value] =
        /^(Value|Option|Argument)<(.*)>$/s.exec(
          returned === undefined ? "" : this.#checker.typeToString(returned),
        ) ?? [];
      if (kind === undefined || value === undefined) return [];
      const parameters = declaration.parameters.map(
        (parameter) =>
          parameter.name.getText() + ((parameter.questionToken ?? parameter.initializer) ? "?" : ""),
      );
      const place = PLACES[kind] ?? "";
      return [
        `| \`${name}(${parameters.join(", ")})\` | ${place} | \`${cell(value)}\` | ${this.#summary(symbol, name)} |`,
      ];
    });
    return ["| declared with | reads | in `config` | |", "|---|---|---|---|", ...rows];
  }

  #table(type: ts.Type, owner: string, variable: string): string[] {
    const rows = this.#checker
      .getPropertiesOfType(type)
      .filter((member) => this.#isForAuthors(member))
      .map((member) => {
        const call = this.#checker.getTypeOfSymbol(member).getCallSignatures()[0];
        const isMethod = (member.flags & ts.SymbolFlags.Method) !== 0 && call !== undefined;
        const parameters = isMethod ? call.parameters.map(({ name }) => name).join(", ") : "";
        const shown = isMethod ? `${variable}.${member.name}(${parameters})` : `${variable}.${member.name}`;
        const value = isMethod ? call.getReturnType() : this.#checker.getTypeOfSymbol(member);
        return `| \`${shown}\` | \`${cell(this.#checker.typeToString(value))}\` | ${this.#summary(member, `${owner}.${member.name}`)} |`;
      });
    return ["| | type | |", "|---|---|---|", ...rows];
  }

  #isForAuthors(member: ts.Symbol): boolean {
    const [declaration] = member.declarations ?? [];
    if (declaration === undefined) return false;
    const { name } = declaration as ts.NamedDeclaration;
    if (name !== undefined && ts.isPrivateIdentifier(name)) return false;
    const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
    if ((ts.getCombinedModifierFlags(declaration) & hidden) !== 0) return false;
    return !member.getJsDocTags(this.#checker).some(({ name }) => name === "internal");
  }

  /** The first sentence of a comment, without links. */
  #summary(symbol: ts.Symbol, name: string): string {
    const comment = ts
      .displayPartsToString(symbol.getDocumentationComment(this.#checker))
      .replaceAll(/\s+/g, " ");
    const [sentence = ""] = /^.*?\.(?= [A-Z]|$)|^.*$/.exec(comment) ?? [];
    if (sentence === "")
      throw new Error(`${name} has no comment, and ${PLUGIN_PAGE} shows its first sentence`);
    return cell(
      sentence
        .replaceAll(/\{@link ([^}]*)\}/g, "`$1`")
        .replaceAll(/ \(docs\/[^)]*\)/g, "")
        .replace(/\.$/, ""),
    );
  }

  #export(name: string): ts.Symbol {
    const symbol = this.#exports.get(name);
    if (symbol === undefined) throw new Error(`portolan/plugin has no ${name}`);
    return symbol;
  }
}

function cell(text: string): string {
  return text.replaceAll(/\s+/g, " ").replaceAll("<ArrayBufferLike>", "").replaceAll("|", "\\|");
}
